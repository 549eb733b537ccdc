# SPDX-License-Identifier: Apache-2.0
"""Holds memory and a long kernel; says "ready", waits, and prints the code with which the wait ended.

hold.py [SECONDS [MIB]]
"""

import ctypes
import sys

from libcuda import Address, Cuda, Size, Spin


def main() -> None:
    seconds, mib = (int(word) for word in (sys.argv[1:] + ["90", "64"][len(sys.argv) - 1 :]))
    cuda = Cuda()
    spin = Spin(cuda)
    cuda.alloc(mib << 20)
    spin.launch(seconds * 10**9)
    print("ready", flush=True)
    print("waited", cuda.status("cuCtxSynchronize"), flush=True)
    print("then", cuda.status("cuMemAlloc_v2", ctypes.byref(Address()), Size(4096)), flush=True)


if __name__ == "__main__":
    main()
