# SPDX-License-Identifier: Apache-2.0
"""Prints, as one JSON object, the size in MiB that every library tells of each card: total, used, free.

sizes.py [RUNTIME]        # file of CUDA's runtime, asked too
"""

import ctypes
import json
import subprocess
import sys

from libcuda import Cuda, Size

MIB = 1 << 20


class Memory(ctypes.Structure):
    """nvmlMemory_t."""

    _fields_ = (("total", ctypes.c_uint64), ("free", ctypes.c_uint64), ("used", ctypes.c_uint64))


class Process(ctypes.Structure):
    """nvmlProcessInfo_t of the first version, which every branch has."""

    _fields_ = (("pid", ctypes.c_uint), ("used", ctypes.c_uint64))


def nvml(count: int) -> dict[str, list[object]]:
    """Totals of NVML, and the processes that it shows."""
    library = ctypes.CDLL("libnvidia-ml.so.1")
    assert library.nvmlInit_v2() == 0
    seen = ctypes.c_uint()
    library.nvmlDeviceGetCount_v2(ctypes.byref(seen))
    rows: list[object] = []
    processes: list[object] = []
    for index in range(count):
        device, memory = ctypes.c_void_p(), Memory()
        assert library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device)) == 0
        assert library.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory)) == 0
        rows.append([memory.total / MIB, memory.used / MIB, memory.free / MIB])
        room, list_ = ctypes.c_uint(64), (Process * 64)()
        assert library.nvmlDeviceGetComputeRunningProcesses(device, ctypes.byref(room), list_) == 0
        processes.append([process.pid for process in list_[: room.value]])
    return {"nvml": rows, "nvml_count": [seen.value], "nvml_pids": processes}


def smi() -> list[list[int]]:
    """Totals of nvidia-smi, card by card."""
    query = ["nvidia-smi", "--query-gpu=memory.total,memory.used,memory.free", "--format=csv,noheader,nounits"]
    shown = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    return [[int(word) for word in line.split(",")] for line in shown.splitlines()]


def runtime(path: str, index: int) -> list[float]:
    """cudaMemGetInfo of one card."""
    library, free, total = ctypes.CDLL(path), Size(), Size()
    assert library.cudaSetDevice(index) == 0
    assert library.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)) == 0
    return [total.value / MIB, free.value / MIB]


def main() -> None:
    first, count = Cuda(0), ctypes.c_int()
    first.call("cuDeviceGetCount", ctypes.byref(count))
    indices = range(count.value)
    # a context takes memory, some of it of the first card: all are there before a size is read
    cards = [first, *(Cuda(index) for index in indices[1:])]
    for path in sys.argv[1:]:
        for index in indices:
            runtime(path, index)
    facts: dict[str, object] = {"cuda_count": count.value, "cuda": []}
    for index, cuda in enumerate(cards):
        cuda.call("cuCtxSetCurrent", cuda.context)
        total = Size()
        cuda.call("cuDeviceTotalMem_v2", ctypes.byref(total), index)
        free, shown = cuda.memory()
        facts["cuda"].append([total.value / MIB, shown / MIB, free / MIB])  # type: ignore[attr-defined]
    facts["runtime"] = [runtime(path, index) for path in sys.argv[1:] for index in indices]
    facts["smi"] = smi()
    facts.update(nvml(count.value))
    json.dump(facts, sys.stdout)


if __name__ == "__main__":
    main()
