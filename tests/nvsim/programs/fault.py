# SPDX-License-Identifier: Apache-2.0
"""Kills the channels of this very process by an Xid while it waits for a kernel; prints the codes of the wait and after.

fault.py XID        # in user space only: the injection is a function of the preloaded driver
"""

import ctypes
import sys
import threading

from libcuda import Address, Cuda, Size, Spin


def main() -> None:
    cuda = Cuda()
    Spin(cuda).launch(60 * 10**9)
    inject = threading.Timer(0.2, ctypes.CDLL(None).nvsim_inject, (0, int(sys.argv[1]), 0))
    inject.start()
    print(cuda.status("cuCtxSynchronize"), cuda.status("cuMemAlloc_v2", ctypes.byref(Address()), Size(4096)))


if __name__ == "__main__":
    main()
