# SPDX-License-Identifier: Apache-2.0
"""Keeps the GPU busy until it is killed: kernels of 1 ms, a few of them always queued."""

from itertools import count

from libcuda import Cuda, Spin

KERNEL_NS = 1_000_000
QUEUED = 8


def main() -> None:
    cuda = Cuda()
    spin = Spin(cuda)
    ends = (cuda.event(), cuda.event())
    for batch in count():
        for _ in range(QUEUED):
            spin.launch(KERNEL_NS)
        cuda.call("cuEventRecord", ends[batch % 2], None)
        if batch:
            cuda.call("cuEventSynchronize", ends[(batch - 1) % 2])


if __name__ == "__main__":
    main()
