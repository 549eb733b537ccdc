# SPDX-License-Identifier: Apache-2.0
"""Sends random ioctls to the three nodes: wrong sizes, handles, pointers, nested wrappers. The kernel is the judge.

fuzz.py SEED COUNT
"""

import ctypes
import fcntl
import os
import random
import struct
import sys

ESCAPES = (
    0x27,
    0x29,
    0x2A,
    0x2B,
    0x34,
    0x35,
    0x4A,
    0x4D,
    0x4E,
    0x4F,
    0x57,
    0x58,
    0x5E,
    200,
    201,
    206,
    207,
    209,
    210,
    211,
    212,
    214,
    215,
    218,
    99,
)
SIZES = (16, 32, 40, 48, 56, 28, 24, 184, 192, 4, 8, 20, 72, 2304, 0, 3, 560)
CLASSES = (
    0,
    0x41,
    0x80,
    0x2080,
    0x40,
    0x3E,
    0x3F,
    0x71,
    0x79,
    0x50A0,
    0x9067,
    0x90F1,
    0xA06C,
    0xC46F,
    0xC5C0,
    0xC5B5,
    0xC461,
    0xDE,
    0xFFFF,
)
CONTROLS = (
    0x101,
    0x201,
    0x202,
    0x205,
    0x214,
    0x21B,
    0xD01,
    0x3D05,
    0x3D06,
    0x800201,
    0x800292,
    0x80170D,
    0x20800110,
    0x2080014A,
    0x2080018D,
    0x2080018E,
    0x20801301,
    0x20801303,
    0x2080110B,
    0x20801201,
    0x2080121B,
    0x20802A0A,
    0xA06C0101,
    0xA06C0103,
    0xA06C0105,
    0xA06F0103,
    0xC36F0101,
    0xC36F0108,
    0x2080100A,
    0x20809064,
    0x12345678,
)
UVM = (0x30000001, 23, 25, 27, 33, 34, 37, 39, 45, 47, 66, 68, 72, 73, 75, 2047, 999)


class Fuzzer:
    """Random arguments out of handles that exist, made-up ones and numbers at the edges."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.buffer = ctypes.create_string_buffer(1 << 16)
        self.control = os.open("/dev/nvidiactl", os.O_RDWR)
        self.device = os.open("/dev/nvidia0", os.O_RDWR)
        self.uvm = os.open("/dev/nvidia-uvm", os.O_RDWR)
        self.handles = [0, 1, 0xC1D00001, 0xFFFFFFFF]

    def handle(self) -> int:
        return self.random.choice(self.handles)

    def pointer(self) -> int:
        at = ctypes.addressof(self.buffer)
        return self.random.choice((at, at, at, at + 60000, 0, 8, 0xFFFF_FFFF_FFFF_F000, 0x7FFF_FFFF_0000))

    def number(self) -> int:
        return self.random.choice((0, 1, 2, 0x1000, 0x200000, 0x7FFFFFFF, 0xFFFFFFFF, self.random.getrandbits(32)))

    def words(self, size: int) -> bytearray:
        argument = bytearray(size)
        for at in range(0, size - 3, 4):
            struct.pack_into("<I", argument, at, self.number() if self.random.random() < 0.4 else 0)
        return argument

    def escape_argument(self, number: int, size: int) -> bytearray:
        argument = self.words(size)
        if size >= 32 and self.random.random() < 0.9:
            kind = self.random.choice(CONTROLS if number == 0x2A else CLASSES)
            struct.pack_into(
                "<IIII",
                argument,
                0,
                self.handle(),
                self.handle(),
                kind if number == 0x2A else self.handle(),
                0 if number == 0x2A else kind,
            )
            struct.pack_into(
                "<QI",
                argument,
                16,
                self.pointer(),
                self.random.choice((0, 4, 8, 16, 40, 268, 436, 3812, 6168, 14408, 1 << 21)),
            )
        elif size == 16 and number == 211:
            struct.pack_into(
                "<IIQ", argument, 0, self.random.choice(ESCAPES), self.random.choice(SIZES), self.pointer()
            )
        return argument

    def fill_buffer(self) -> None:
        content = self.words(512)
        struct.pack_into("<QQ", content, 8, self.pointer(), self.pointer())
        self.buffer[: len(content)] = bytes(content)

    def step(self) -> None:
        if self.random.random() < 0.2:
            self.fill_buffer()
            self.send(self.uvm, self.random.choice(UVM), self.buffer)
            return
        number, size = self.random.choice(ESCAPES), self.random.choice(SIZES)
        if number in (0x29, 0x2A, 0x2B, 0x4A, 0x4E):
            size = self.random.choice(({0x29: 16, 0x2A: 32, 0x2B: 48, 0x4A: 184, 0x4E: 56}[number], size))
        self.fill_buffer()
        argument = self.escape_argument(number, size)
        self.send(
            self.random.choice((self.control, self.control, self.device)),
            3 << 30 | size << 16 | ord("F") << 8 | number,
            argument or bytearray(1),
        )
        if number == 0x2B and size >= 32:
            self.handles = [*self.handles[-60:], struct.unpack_from("<I", argument, 8)[0]]

    def send(self, node: int, command: int, argument: object) -> None:
        try:
            fcntl.ioctl(node, command, argument)
        except OSError:
            return


def main() -> None:
    fuzzer = Fuzzer(int(sys.argv[1]))
    for _ in range(int(sys.argv[2])):
        fuzzer.step()
    print("done", flush=True)


if __name__ == "__main__":
    main()
