# SPDX-License-Identifier: Apache-2.0
"""Looks at fresh memory of the card, fills it, and ends without a word to the driver: prints what it found and what it left.

sentinel.py MIB       # how much
"""

import os
import sys

from libcuda import Cuda

MIB = 1 << 20
MARK = b"\xa5"


def main() -> None:
    size = int(sys.argv[1]) * MIB
    cuda = Cuda()
    address = cuda.alloc(size)
    found = size - cuda.read(address, size).count(b"\0")
    cuda.write(address, MARK * size)
    print(found, cuda.read(address, size).count(MARK) // MIB, flush=True)
    os._exit(0)


main()
