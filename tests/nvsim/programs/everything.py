# SPDX-License-Identifier: Apache-2.0
"""What a CUDA program does, once through; prints one JSON object of facts a card, which the test compares.

everything.py [CARD ...]        # indices of the cards; the first one unless told
"""

import ctypes
import json
import random
import sys
import threading
import time
from collections.abc import Callable

from libcuda import Address, Cuda, Size, Spin

MIB = 1 << 20
PATTERN = random.Random(1).randbytes(3 * MIB)
DURATION_NS = 200_000_000
OUT_OF_MEMORY = 2
BUSY = 600
facts: dict[str, object] = {}


def memory(cuda: Cuda) -> int:
    """Totals, and what allocations take from the free memory."""
    total = Size()
    cuda.call("cuDeviceTotalMem_v2", ctypes.byref(total), cuda.device)
    free, shown = cuda.memory()
    facts["total_mib"] = total.value // MIB
    facts["totals_agree"] = total.value == shown
    base = cuda.alloc(64 * MIB)
    facts["taken_mib"] = (free - cuda.memory()[0]) // MIB
    address = Address()
    facts["too_much"] = cuda.status("cuMemAlloc_v2", ctypes.byref(address), Size(200 << 30)) == OUT_OF_MEMORY
    return base


def copies(cuda: Cuda, base: int) -> None:
    """Bytes there and back, large and small, and between places of the device that are not aligned."""
    cuda.write(base, PATTERN)
    facts["copy_3_mib"] = cuda.read(base, len(PATTERN)) == PATTERN
    cuda.write(base + 5, PATTERN[:100])
    facts["copy_100_bytes"] = cuda.read(base + 5, 100) == PATTERN[:100]
    cuda.write(base, PATTERN)
    for to, source, size in (
        (32 * MIB, 0, len(PATTERN)),
        (32 * MIB + 1, 3, 2 * MIB + 7),
        (40 * MIB + 3, 3, 5000),
        (40 * MIB, 1, 33),
    ):
        cuda.call("cuMemcpyDtoD_v2", Address(base + to), Address(base + source), Size(size))
        facts[f"device_copy_{size}"] = cuda.read(base + to, size) == PATTERN[source : source + size]


def fills(cuda: Cuda, base: int) -> None:
    """Fills of every width, and of a rectangle."""
    cuda.call("cuMemsetD8_v2", Address(base), ctypes.c_ubyte(0x5A), Size(3 * MIB + 1))
    facts["fill_bytes"] = cuda.read(base, 3 * MIB + 1) == b"\x5a" * (3 * MIB + 1)
    cuda.call("cuMemsetD16_v2", Address(base), ctypes.c_ushort(0x1234), Size(5001))
    facts["fill_halves"] = cuda.read(base, 10002) == b"\x34\x12" * 5001
    cuda.call("cuMemsetD32_v2", Address(base), ctypes.c_uint(0xDEADBEEF), Size(100_000))
    facts["fill_words"] = cuda.read(base, 400_000) == b"\xef\xbe\xad\xde" * 100_000
    cuda.call("cuMemsetD2D8_v2", Address(base), Size(512), ctypes.c_ubyte(7), Size(100), Size(3))
    facts["fill_rectangle"] = [cuda.read(base + 512 * row + 99, 2) for row in range(3)] == [
        b"\x07\xef",
        b"\x07\xef",
        b"\x07\xef",
    ]


def kernels(cuda: Cuda, spin: Spin) -> None:
    """Timed kernels between events, several queued, waits that sleep and waits that look."""
    stream, first, last = cuda.stream(), cuda.event(), cuda.event()
    hidden = DURATION_NS // 4  # of a kernel behind which the time of the submissions themselves is hidden
    while True:
        started = time.monotonic()
        spin.launch(hidden, stream)
        cuda.call("cuEventRecord", first, stream)
        spin.launch(DURATION_NS, stream)
        cuda.call("cuEventRecord", last, stream)
        if time.monotonic() - started < hidden / 1e9 or hidden > 16 * DURATION_NS:
            break
        cuda.sync()
        hidden *= 4  # a busy host took longer
    busy = cuda.status("cuStreamQuery", stream) == cuda.status("cuEventQuery", last) == BUSY
    late = time.monotonic() - started > DURATION_NS / 1e9  # on a busy host the question may come too late
    facts["busy"] = busy or late
    cuda.call("cuStreamSynchronize", stream)
    facts["kernel_ms"] = cuda.elapsed_ms(first, last)
    started = time.monotonic()
    for _ in range(3):
        spin.launch(DURATION_NS // 10)
    cuda.sync()
    facts["three_kernels_ms"] = (time.monotonic() - started) * 1000


def streams(cuda: Cuda, spin: Spin) -> None:
    """A stream that waits for another one's event, and a function of the host in a stream."""
    one, two, done, end = cuda.stream(), cuda.stream(), cuda.event(2), cuda.event()
    begin = cuda.event()
    cuda.call("cuEventRecord", begin, one)
    spin.launch(DURATION_NS // 10, one)
    cuda.call("cuEventRecord", done, one)
    cuda.call("cuStreamWaitEvent", two, done, 0)
    spin.launch(DURATION_NS // 10, two)
    cuda.call("cuEventRecord", end, two)
    cuda.call("cuEventSynchronize", end)
    facts["chained_ms"] = cuda.elapsed_ms(begin, end)
    called = threading.Event()
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: called.set())
    cuda.call("cuLaunchHostFunc", one, callback, None)
    cuda.call("cuStreamSynchronize", one)
    facts["host_function"] = called.is_set()


def host_memory(cuda: Cuda, base: int) -> None:
    """Pinned, registered and managed memory."""
    stream, pinned = cuda.stream(), ctypes.c_void_p()
    cuda.call("cuMemAllocHost_v2", ctypes.byref(pinned), Size(len(PATTERN)))
    ctypes.memmove(pinned, PATTERN, len(PATTERN))
    cuda.call("cuMemcpyHtoDAsync_v2", Address(base), pinned, Size(len(PATTERN)), stream)
    cuda.call("cuStreamSynchronize", stream)
    facts["pinned"] = cuda.read(base, len(PATTERN)) == PATTERN
    own = ctypes.create_string_buffer(3 * MIB)
    start = (ctypes.addressof(own) + 4095) & ~4095
    cuda.call("cuMemHostRegister_v2", ctypes.c_void_p(start), Size(MIB), 0)
    cuda.call("cuMemcpyDtoHAsync_v2", ctypes.c_void_p(start), Address(base), Size(MIB), stream)
    cuda.call("cuStreamSynchronize", stream)
    facts["registered"] = ctypes.string_at(start, MIB) == PATTERN[:MIB]
    cuda.call("cuMemHostUnregister", ctypes.c_void_p(start))
    managed = Address()
    cuda.call("cuMemAllocManaged", ctypes.byref(managed), Size(MIB), 1)
    cuda.call("cuMemsetD8_v2", managed, ctypes.c_ubyte(9), Size(MIB))
    cuda.sync()
    facts["managed"] = ctypes.string_at(managed.value or 0, MIB) == b"\x09" * MIB
    cuda.free(managed.value)


class Location(ctypes.Structure):
    """CUmemAllocationProp, as far as it is used."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("handles", ctypes.c_int),
        ("place", ctypes.c_int),
        ("device", ctypes.c_int),
        ("rest", ctypes.c_ubyte * 48),
    )


def virtual_memory(cuda: Cuda) -> None:
    """Memory without an address, mapped, filled and exported; not in the oldest branch."""
    properties, grain, handle, address = Location(1, 1, 1, cuda.device), Size(), Address(), Address()
    cuda.call("cuMemGetAllocationGranularity", ctypes.byref(grain), ctypes.byref(properties), 0)
    cuda.call("cuMemCreate", ctypes.byref(handle), grain, ctypes.byref(properties), Address(0))
    cuda.call("cuMemAddressReserve", ctypes.byref(address), grain, Size(0), Address(0), Address(0))
    cuda.call("cuMemMap", address, grain, Size(0), handle, Address(0))
    access = (ctypes.c_int * 3)(1, cuda.device, 3)
    cuda.call("cuMemSetAccess", address, grain, access, Size(1))
    cuda.call("cuMemsetD32_v2", address, ctypes.c_uint(0x1234), Size(grain.value // 4))
    facts["mapped"] = cuda.read(address.value, grain.value) == b"\x34\x12\0\0" * (grain.value // 4)
    exported = ctypes.c_int(-1)
    cuda.call("cuMemExportToShareableHandle", ctypes.byref(exported), handle, 1, Address(0))
    facts["exported"] = exported.value >= 0
    cuda.call("cuMemUnmap", address, grain)
    cuda.call("cuMemRelease", handle)


def graphs(cuda: Cuda, spin: Spin) -> None:
    """A captured graph with a kernel in it."""
    stream, graph, ready = cuda.stream(), ctypes.c_void_p(), ctypes.c_void_p()
    capture = "cuStreamBeginCapture_v2" if cuda.has("cuStreamBeginCapture_v2") else "cuStreamBeginCapture"
    cuda.call(capture, stream, *((0,) if capture.endswith("_v2") else ()))
    spin.launch(DURATION_NS // 10, stream)
    cuda.call("cuStreamEndCapture", stream, ctypes.byref(graph))
    cuda.call("cuGraphInstantiate", ctypes.byref(ready), graph, None, None, Size(0))
    started = time.monotonic()
    cuda.call("cuGraphLaunch", ready, stream)
    cuda.call("cuStreamSynchronize", stream)
    facts["graph_ms"] = (time.monotonic() - started) * 1000


def everything(device: int, meanwhile: Callable[[], None] = lambda: None) -> dict[str, object]:
    """All steps on one card; `meanwhile` is called once while 64 MiB are held on it."""
    facts.clear()
    cuda = Cuda(device)
    facts["bus"] = cuda.bus()
    base = memory(cuda)
    spin = Spin(cuda)
    steps: list[Callable[[], None]] = [
        meanwhile,
        lambda: copies(cuda, base),
        lambda: fills(cuda, base),
        lambda: kernels(cuda, spin),
        lambda: streams(cuda, spin),
        lambda: host_memory(cuda, base),
        lambda: graphs(cuda, spin),
    ]
    if cuda.has("cuMemCreate"):
        steps.append(lambda: virtual_memory(cuda))
    for step in steps:
        step()
    facts["ipc_handle"] = any(cuda.share(base))
    before = cuda.memory()[0]
    cuda.free(base)
    facts["given_back_mib"] = (cuda.memory()[0] - before) // MIB
    cuda.call("cuCtxDestroy_v2", cuda.context)
    return dict(facts)


def main() -> None:
    for word in sys.argv[1:] or ["0"]:
        print(json.dumps(everything(int(word))), flush=True)


if __name__ == "__main__":
    main()
