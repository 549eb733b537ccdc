# SPDX-License-Identifier: Apache-2.0
"""Takes memory of GPU 0 in steps until CUDA refuses, and says how much there was; fails unless the refusal is error 2.

fill.py [seconds]        # keeps the memory so long
"""

import ctypes
import sys
import time

from libcuda import Address, Cuda, Size

MIB = 1 << 20
OUT_OF_MEMORY = 2


def main() -> None:
    cuda = Cuda()
    free, total = Size(), Size()
    cuda.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    taken, step = 0, 512
    while step:
        code = cuda.status("cuMemAlloc_v2", ctypes.byref(Address()), Size(step * MIB))
        if code == 0:
            taken += step
        elif code == OUT_OF_MEMORY:
            step //= 2
        else:
            sys.exit(f"cuMemAlloc of {step} MiB: error {code}")
    print(f"total {total.value // MIB} MiB, free at first {free.value // MIB} MiB, taken {taken} MiB,", end=" ")
    print("1 MiB more: CUDA error 2, out of memory", flush=True)
    if len(sys.argv) > 1:
        time.sleep(float(sys.argv[1]))


if __name__ == "__main__":
    main()
