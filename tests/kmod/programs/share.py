# SPDX-License-Identifier: Apache-2.0
"""A CUDA program that always has work; prints its process id and its launches.

share.py KERNEL_US DEPTH SECONDS        # DEPTH kernels in flight, 1 = launch and wait
"""

import ctypes
import os
import sys
import time
from collections import deque

from libcuda import Cuda, Spin

BLOCKING_SYNC = 4


def main() -> None:
    """Launches until the time is over."""
    kernel_us, depth, seconds = (float(word) for word in sys.argv[1:4])
    cuda = Cuda(0, BLOCKING_SYNC)
    spin = Spin(cuda)
    stream = cuda.stream()
    events = [cuda.event(3) for _ in range(int(depth))]
    flying: deque[ctypes.c_void_p] = deque()
    launches = 0
    end = time.monotonic() + seconds
    print("ready", os.getpid(), flush=True)
    while time.monotonic() < end:
        if len(flying) == len(events):
            cuda.call("cuEventSynchronize", flying.popleft())
        event = events[launches % len(events)]
        spin.launch(int(kernel_us * 1000), stream)
        cuda.call("cuEventRecord", event, stream)
        flying.append(event)
        launches += 1
    cuda.sync()
    print("launches", launches, flush=True)


main()
