# SPDX-License-Identifier: Apache-2.0
"""Fills and copies of every shape that makes libcuda choose another kernel of its own; says which before each."""

import ctypes
import os
from pathlib import Path

from libcuda import Address, Cuda, Size

MIB = 1 << 20
PLACES = ((0, 0), (1, 0), (0, 4), (3, 3), (8, 0), (4, 4), (16, 16), (2, 6))


class Copy2D(ctypes.Structure):
    """CUDA_MEMCPY2D."""

    _fields_ = (
        ("src_x", Size),
        ("src_y", Size),
        ("src_type", ctypes.c_uint),
        ("src_host", ctypes.c_void_p),
        ("src", Address),
        ("src_array", ctypes.c_void_p),
        ("src_pitch", Size),
        ("dst_x", Size),
        ("dst_y", Size),
        ("dst_type", ctypes.c_uint),
        ("dst_host", ctypes.c_void_p),
        ("dst", Address),
        ("dst_array", ctypes.c_void_p),
        ("dst_pitch", Size),
        ("width", Size),
        ("height", Size),
    )


def main() -> None:
    cuda = Cuda()
    base = cuda.alloc(64 * MIB)
    log = Path(os.environ["NVSIM_LOG"]).open("a", encoding="utf-8")  # noqa: SIM115 - as long as the program runs

    def say(*facts: object) -> None:
        print("operation", *facts, file=log, flush=True)

    for size in (5000, 4097, 65537, 3 * MIB, 3 * MIB + 1, 1000):
        for place in (0, 1):
            say("fill", size, 1, 0)
            cuda.call("cuMemsetD8_v2", Address(base + place), ctypes.c_ubyte(0x5A), Size(size))
            cuda.sync()
    for width, height, pitch in ((10, 10, 64), (100, 33, 512), (1001, 77, 1031)):
        say("fill", width, height, pitch)
        cuda.call("cuMemsetD2D8_v2", Address(base), Size(pitch), ctypes.c_ubyte(0x5A), Size(width), Size(height))
        cuda.sync()
    for size in (1, 100, 4096, 5000, 65537, MIB, 3 * MIB + 5):
        for to, source in PLACES:
            say("copy", size, hex(base + 32 * MIB + to), hex(base + source))
            cuda.call("cuMemcpyDtoD_v2", Address(base + 32 * MIB + to), Address(base + source), Size(size))
            cuda.sync()
    for width, height, to, source, pitch, source_pitch in (
        (100, 33, 0, 0, 512, 1024),
        (1001, 100, 1, 3, 2048, 1024),
        (1000, 100, 0, 0, 2048, 1024),
        (1024, 64, 0, 0, 4096, 1024),
    ):
        say("copy2d", width, height, pitch, source_pitch)
        shape = Copy2D(
            src_type=2,
            src=base + source,
            src_pitch=source_pitch,
            dst_type=2,
            dst=base + 32 * MIB + to,
            dst_pitch=pitch,
            width=width,
            height=height,
        )
        cuda.call("cuMemcpy2D_v2", ctypes.byref(shape))
        cuda.sync()


if __name__ == "__main__":
    main()
