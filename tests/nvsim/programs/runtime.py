# SPDX-License-Identifier: Apache-2.0
"""What a program of CUDA's runtime API does, once through; prints one JSON object of facts.

runtime.py LIBCUDART      # path or name of the library
"""

import ctypes
import json
import random
import sys
import threading

MIB = 1 << 20
TO_DEVICE, TO_HOST, ON_DEVICE = 1, 2, 3
NOT_READY, OUT_OF_MEMORY = 600, 2
DATA = random.Random(2).randbytes(3 * MIB + 5)
Size = ctypes.c_size_t


class Runtime:
    """libcudart by ctypes; calls are made by name."""

    def __init__(self, library: str) -> None:
        self.library = ctypes.CDLL(library)

    def status(self, name: str, *arguments: object) -> int:
        """Calls a function and returns its code."""
        return int(getattr(self.library, name)(*arguments))

    def call(self, name: str, *arguments: object) -> None:
        """Calls a function that must succeed."""
        code = self.status(name, *arguments)
        if code:
            raise SystemExit(f"{name} returned {code}")

    def pointer(self, name: str, *arguments: object) -> ctypes.c_void_p:
        """What a function makes that returns it by its first argument."""
        made = ctypes.c_void_p()
        self.call(name, ctypes.byref(made), *arguments)
        return made

    def number(self, name: str, *arguments: object) -> int:
        """A number that a function returns by its first argument."""
        value = ctypes.c_int()
        self.call(name, ctypes.byref(value), *arguments)
        return value.value

    def free_and_total(self) -> tuple[int, int]:
        """Bytes of the card."""
        free, total = Size(), Size()
        self.call("cudaMemGetInfo", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value


def memory(cuda: Runtime, facts: dict[str, object]) -> None:
    """Allocation, copies, fills, out of memory, and what is free before and after."""
    free, total = cuda.free_and_total()
    facts["total_mib"] = total // MIB
    one, two = (cuda.pointer("cudaMalloc", Size(64 * MIB)) for _ in range(2))
    facts["taken_mib"] = (free - cuda.free_and_total()[0]) // MIB
    back = ctypes.create_string_buffer(len(DATA))
    cuda.call("cudaMemcpy", one, DATA, Size(len(DATA)), TO_DEVICE)
    cuda.call("cudaMemcpy", two, one, Size(len(DATA)), ON_DEVICE)
    cuda.call("cudaMemset", one, 0x5A, Size(len(DATA)))
    cuda.call("cudaMemcpy", back, two, Size(len(DATA)), TO_HOST)
    facts["copied"] = back.raw == DATA
    cuda.call("cudaMemcpy", back, one, Size(len(DATA)), TO_HOST)
    facts["filled"] = back.raw == b"\x5a" * len(DATA)
    facts["too_much"] = cuda.status("cudaMalloc", ctypes.byref(ctypes.c_void_p()), Size(90 << 30))
    facts["error_is_forgotten"] = (cuda.status("cudaGetLastError"), cuda.status("cudaGetLastError")) == (
        OUT_OF_MEMORY,
        0,
    )
    for address in (one, two):
        cuda.call("cudaFree", address)
    facts["given_back"] = cuda.free_and_total()[0] == free


def streams(cuda: Runtime, facts: dict[str, object]) -> None:
    """A stream that a function of the host holds up, events around asynchronous copies, pinned and managed memory."""
    stream, first, last = (cuda.pointer(f"cuda{name}Create") for name in ("Stream", "Event", "Event"))
    pinned, device = cuda.pointer("cudaMallocHost", Size(len(DATA))), cuda.pointer("cudaMalloc", Size(len(DATA)))
    ctypes.memmove(pinned, DATA, len(DATA))
    gate = threading.Event()
    hold = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: gate.wait())
    cuda.call("cudaLaunchHostFunc", stream, hold, None)
    cuda.call("cudaEventRecord", first, stream)
    cuda.call("cudaMemcpyAsync", device, pinned, Size(len(DATA)), TO_DEVICE, stream)
    cuda.call("cudaEventRecord", last, stream)
    facts["busy"] = (cuda.status("cudaStreamQuery", stream), cuda.status("cudaEventQuery", last)) == (
        NOT_READY,
        NOT_READY,
    )
    gate.set()
    cuda.call("cudaEventSynchronize", last)
    cuda.call("cudaStreamSynchronize", stream)
    passed = ctypes.c_float(-1)
    cuda.call("cudaEventElapsedTime", ctypes.byref(passed), first, last)
    facts["in_order"] = passed.value >= 0
    back = ctypes.create_string_buffer(len(DATA))
    cuda.call("cudaMemcpy", back, device, Size(len(DATA)), TO_HOST)
    facts["asynchronous"] = back.raw == DATA
    managed = cuda.pointer("cudaMallocManaged", Size(MIB), 1)
    cuda.call("cudaMemset", managed, 9, Size(MIB))
    cuda.call("cudaDeviceSynchronize")
    facts["managed"] = ctypes.string_at(managed, MIB) == b"\x09" * MIB
    for name, made in (("FreeHost", pinned), ("Free", device), ("Free", managed), ("StreamDestroy", stream)):
        cuda.call(f"cuda{name}", made)


def main() -> None:
    cuda = Runtime(sys.argv[1])
    facts: dict[str, object] = {
        "cards": cuda.number("cudaGetDeviceCount"),
        "runtime": cuda.number("cudaRuntimeGetVersion"),
        "driver": cuda.number("cudaDriverGetVersion"),
    }
    cuda.call("cudaSetDevice", 0)
    memory(cuda, facts)
    streams(cuda, facts)
    cuda.call("cudaDeviceReset")
    json.dump(facts, sys.stdout)


if __name__ == "__main__":
    main()
