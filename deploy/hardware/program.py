# SPDX-License-Identifier: Apache-2.0
"""What verify.py runs on the card: CUDA's driver API by ctypes, the first card that it sees.

program.py touch     # a context, an allocation, a kernel: a short program whose calls are recorded
program.py fill      # all memory that there is; prints one JSON object and keeps it until standard input ends
program.py work FILE # kernels of 5 ms until standard input ends; their number stands in FILE after each batch
"""

import ctypes
import json
import os
import select
import sys

MIB = 1 << 20
OUT_OF_MEMORY = 2
KERNEL_NS = 5_000_000
QUEUED = 8
# waits by the card's own clock; a simulated card reads the first parameter
SPIN = b"""
.version 6.0
.target sm_60
.address_size 64
.visible .entry spin(.param .u64 duration)
{
	.reg .u64 %rd<5>;
	.reg .pred %p;
	ld.param.u64 %rd1, [duration];
	mov.u64 %rd2, %globaltimer;
again:
	mov.u64 %rd3, %globaltimer;
	sub.u64 %rd4, %rd3, %rd2;
	setp.lt.u64 %p, %rd4, %rd1;
	@%p bra again;
	ret;
}
"""


class Card:
    """A context on the first card."""

    def __init__(self) -> None:
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.context, self.module, self.spin = (ctypes.c_void_p() for _ in range(3))
        self.call("cuInit", 0)
        self.call("cuCtxCreate_v2", ctypes.byref(self.context), 4, 0)

    def status(self, name: str, *arguments: object) -> int:
        """A call's result."""
        return int(getattr(self.cuda, name)(*arguments))

    def call(self, name: str, *arguments: object) -> None:
        """A call that must succeed."""
        code = self.status(name, *arguments)
        if code:
            sys.exit(f"{name}: CUDA error {code}")

    def memory(self) -> tuple[int, int]:
        """Free and total bytes."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def take(self, size: int) -> int:
        """CUDA's answer to an allocation, which is kept."""
        return self.status("cuMemAlloc_v2", ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(size))

    def launch(self, nanoseconds: int, number: int) -> None:
        """So many kernels of that length, waited for."""
        if not self.spin:
            self.call("cuModuleLoadData", ctypes.byref(self.module), SPIN)
            self.call("cuModuleGetFunction", ctypes.byref(self.spin), self.module, b"spin")
        duration = ctypes.c_uint64(nanoseconds)
        pointers = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(duration), ctypes.c_void_p))
        for _ in range(number):
            self.call("cuLaunchKernel", self.spin, 1, 1, 1, 1, 1, 1, 0, None, pointers, None)
        self.call("cuCtxSynchronize")


def touch(card: Card) -> None:
    """What every program does at least."""
    if card.take(16 * MIB):
        sys.exit("16 MiB are not to be had")
    card.launch(1000, 1)


def fill(card: Card) -> None:
    """In ever smaller pieces."""
    free, total = card.memory()
    taken, code = 0, 0
    for piece in (256 * MIB, 32 * MIB, 2 * MIB):
        while not (code := card.take(piece)):
            taken += piece
    print(json.dumps({"total": total, "free": free, "taken": taken, "code": code}), flush=True)
    sys.stdin.read()


def work(card: Card) -> None:
    """As long as somebody listens."""
    counter = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT)
    done = 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        card.launch(KERNEL_NS, QUEUED)
        done += QUEUED
        os.pwrite(counter, f"{done:12}".encode(), 0)


if __name__ == "__main__":
    {"touch": touch, "fill": fill, "work": work}[sys.argv[1]](Card())
