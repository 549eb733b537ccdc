# SPDX-License-Identifier: Apache-2.0
"""Takes memory by every call of CUDA that gives some, within the limit and beyond it; prints one JSON object.

allocate.py MANAGED_MIB       # how much managed memory is tried
"""

import ctypes
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from everything import Location
from libcuda import Address, Cuda, CudaError, Size

MIB = 1 << 20
PART = 256 * MIB
BEYOND = 8 * MIB  # more than any granularity
WIDE = 1 << 15  # bytes of a row
FLOAT = 0x20
Free = Callable[[], None]


class Layered(ctypes.Structure):
    """CUDA_ARRAY3D_DESCRIPTOR."""

    _fields_ = (
        ("width", Size),
        ("height", Size),
        ("depth", Size),
        ("format", ctypes.c_int),
        ("channels", ctypes.c_uint),
        ("flags", ctypes.c_uint),
    )


def plain(cuda: Cuda, size: int) -> Free:
    address = cuda.alloc(size)
    return lambda: cuda.free(address)


def pitch(cuda: Cuda, size: int) -> Free:
    address, wide = Address(), Size()
    cuda.call(
        "cuMemAllocPitch_v2",
        ctypes.byref(address),
        ctypes.byref(wide),
        Size(WIDE),
        Size(size // WIDE),
        ctypes.c_uint(4),
    )
    return lambda: cuda.free(address.value)


def array(cuda: Cuda, size: int) -> Free:
    handle = ctypes.c_void_p()
    rows = min(size // WIDE, 32768)
    shape = Layered(size // rows // 16, rows, 0, FLOAT, 4, 0)
    cuda.call("cuArray3DCreate_v2", ctypes.byref(handle), ctypes.byref(shape))
    return lambda: cuda.call("cuArrayDestroy", handle)


def volume(cuda: Cuda, size: int) -> Free:
    handle = ctypes.c_void_p()
    shape = Layered(1024, 1024, size // MIB // 16, FLOAT, 4, 0)
    cuda.call("cuArray3DCreate_v2", ctypes.byref(handle), ctypes.byref(shape))
    return lambda: cuda.call("cuArrayDestroy", handle)


def pool(cuda: Cuda, size: int) -> Free:
    address, which = Address(), ctypes.c_void_p()
    cuda.call("cuDeviceGetDefaultMemPool", ctypes.byref(which), 0)
    cuda.call("cuMemAllocAsync", ctypes.byref(address), Size(size), None)
    cuda.sync()

    def free() -> None:
        cuda.call("cuMemFreeAsync", address, None)
        cuda.sync()
        cuda.call("cuMemPoolTrimTo", which, Size(0))

    return free


def physical(cuda: Cuda, size: int) -> Free:
    handle, properties = Address(), Location(1, 0, 1, 0)
    cuda.call("cuMemCreate", ctypes.byref(handle), Size(size), ctypes.byref(properties), Address(0))
    return lambda: cuda.call("cuMemRelease", handle)


def managed(cuda: Cuda, size: int) -> Free:
    address = Address()
    cuda.call("cuMemAllocManaged", ctypes.byref(address), Size(size), 1)
    return lambda: cuda.free(address.value)


KINDS: dict[str, tuple[str, Callable[[Cuda, int], Free]]] = {
    "malloc": ("cuMemAlloc_v2", plain),
    "pitch": ("cuMemAllocPitch_v2", pitch),
    "array": ("cuArray3DCreate_v2", array),
    "volume": ("cuArray3DCreate_v2", volume),
    "pool": ("cuMemAllocAsync", pool),
    "vmm": ("cuMemCreate", physical),
}


def code_of(take: Callable[[Cuda, int], Free], cuda: Cuda, size: int) -> int:
    """What an allocation returns; 0 when it succeeds, and then it is given back."""
    try:
        take(cuda, size)()
    except CudaError as error:
        return error.code
    return 0


@contextmanager
def held(take: Callable[[Cuda, int], Free], cuda: Cuda, size: int) -> Iterator[None]:
    """The memory, for as long as the block runs."""
    free = take(cuda, size)
    yield
    free()


def judge(cuda: Cuda, take: Callable[[Cuda, int], Free]) -> list[int]:
    """Code beyond the limit, MiB that a part takes from what is free, MiB that come back with it."""
    take(cuda, 4 * MIB)()  # what the library makes once for this kind of memory is not counted
    start = cuda.memory()[0]
    code = code_of(take, cuda, start // (16 * MIB) * 16 * MIB + 2 * 16 * MIB)
    with held(take, cuda, PART):
        during = cuda.memory()[0]
    return [code, (start - during) // MIB, (cuda.memory()[0] - during) // MIB]


def fill(cuda: Cuda) -> list[int]:
    """The code that ends a filling in ever smaller pieces, and the MiB that are free then."""
    code = 0
    for piece in (512 * MIB, 32 * MIB, 2 * MIB):
        code = 0
        while not code:
            address = Address()
            code = cuda.status("cuMemAlloc_v2", ctypes.byref(address), Size(piece))
    return [code, cuda.memory()[0] // MIB]


def main() -> None:
    cuda = Cuda()
    size = int(sys.argv[1]) * MIB
    before = cuda.memory()[0]
    facts: dict[str, object] = {name: judge(cuda, take) for name, (call, take) in KINDS.items() if cuda.has(call)}
    try:
        with held(managed, cuda, size):
            during = cuda.memory()[0]
        facts["managed"] = [0, (before - during) // MIB, (cuda.memory()[0] - during) // MIB]
    except CudaError as error:
        facts["managed"] = [error.code, 0, 0]
    facts["fill"] = fill(cuda)
    json.dump(facts, sys.stdout)


if __name__ == "__main__":
    main()
