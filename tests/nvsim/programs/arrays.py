# SPDX-License-Identifier: Apache-2.0
"""CuPy on the simulated driver; prints one JSON object of facts. Kernels do not compute, so no sum is compared.

arrays.py [elementwise]      # with kernels that CuPy generates and compiles, which takes long under emulation
"""

import json
import sys

import cupy
import numpy

MIB = 1 << 20


def memory(facts: dict[str, object]) -> None:
    """Arrays there and back, the pool, and out of memory as CuPy's own exception."""
    pool = cupy.get_default_memory_pool()
    host = numpy.random.default_rng(3).integers(0, 1 << 32, 1 << 20, dtype=numpy.uint32)
    device = cupy.asarray(host)
    facts["round_trip"] = bool((cupy.asnumpy(device) == host).all())
    other = cupy.empty_like(device)
    other.data.copy_from_device_async(device.data, device.nbytes, cupy.cuda.get_current_stream())
    facts["copy"] = bool((cupy.asnumpy(other) == host).all())
    facts["zeros"] = not cupy.asnumpy(cupy.zeros(host.shape, host.dtype)).any()
    facts["slice"] = bool((cupy.asnumpy(device[1000:2000]) == host[1000:2000]).all())
    again = cupy.empty_like(device)  # where the zeros were
    facts["pool_reuses"] = pool.total_bytes() == 3 * host.nbytes == 3 * again.nbytes
    free = cupy.cuda.runtime.memGetInfo()[0]
    big = cupy.empty(256 * MIB, dtype=cupy.uint8)
    facts["taken_mib"] = (free - cupy.cuda.runtime.memGetInfo()[0]) // MIB
    del big
    pool.free_all_blocks()
    facts["given_back"] = cupy.cuda.runtime.memGetInfo()[0] >= free
    try:
        cupy.empty(90 << 30, dtype=cupy.uint8)
    except cupy.cuda.memory.OutOfMemoryError:
        facts["too_much"] = True
    facts["works_after"] = bool((cupy.asnumpy(cupy.asarray(host)) == host).all())


def kernels(facts: dict[str, object]) -> None:
    """A kernel from source by NVRTC with a duration, between events on a stream of its own."""
    source = 'extern "C" __global__ void spin(unsigned long long ns, unsigned* out) { *out = (unsigned)ns; }'
    spin, out = cupy.RawKernel(source, "spin"), cupy.empty(1, dtype=cupy.uint32)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        first, last = cupy.cuda.Event(), cupy.cuda.Event()
        spin((1,), (1,), (numpy.uint64(400_000_000), out))  # the time of the submissions is hidden behind it
        first.record()
        spin((1,), (1,), (numpy.uint64(50_000_000), out))
        last.record()
        facts["busy"] = not last.done
        stream.synchronize()
    facts["kernel_ms"] = cupy.cuda.get_elapsed_time(first, last)


def elementwise(facts: dict[str, object]) -> None:
    """An addition of arrays: compiled, launched and waited for."""
    total = cupy.ones(1000, dtype=cupy.float32) + cupy.ones(1000, dtype=cupy.float32)
    cupy.cuda.Device().synchronize()
    facts["elementwise"] = total.shape == (1000,)


def main() -> None:
    facts: dict[str, object] = {"cards": cupy.cuda.runtime.getDeviceCount()}
    memory(facts)
    kernels(facts)
    if "elementwise" in sys.argv:
        elementwise(facts)
    json.dump(facts, sys.stdout)


if __name__ == "__main__":
    main()
