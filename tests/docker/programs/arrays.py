# SPDX-License-Identifier: Apache-2.0
"""CuPy in a container: what every library says of the card, and with `fill` as many arrays as fit; one JSON object.

arrays.py [fill SECONDS]     # keeps the arrays so long after the object was printed
"""

import ctypes
import json
import subprocess
import sys
import time

import cupy
import numpy

MIB = 1 << 20


def sizes() -> dict[str, int]:
    """MiB of the card by cudaMemGetInfo, cudaGetDeviceProperties, cuDeviceTotalMem and nvidia-smi."""
    total = ctypes.c_size_t()
    driver = ctypes.CDLL("libcuda.so.1")
    assert driver.cuInit(0) == driver.cuDeviceTotalMem_v2(ctypes.byref(total), 0) == 0
    query = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    return {
        "cudaMemGetInfo": cupy.cuda.runtime.memGetInfo()[1] // MIB,
        "cudaGetDeviceProperties": cupy.cuda.runtime.getDeviceProperties(0)["totalGlobalMem"] // MIB,
        "cuDeviceTotalMem": total.value // MIB,
        "nvidia-smi": int(subprocess.check_output(query)),
    }


def fill() -> tuple[list[object], str]:
    """Arrays of 512 MiB and then of 64 until there is no room, and the exception that said so."""
    held: list[object] = []
    refused = ""
    for size in (512, 64):
        while True:
            try:
                held.append(cupy.empty(size * MIB, dtype=cupy.uint8))
            except cupy.cuda.memory.OutOfMemoryError as error:
                refused = type(error).__name__
                break
    return held, refused


def main() -> None:
    facts: dict[str, object] = {"sizes": sizes(), "free": cupy.cuda.runtime.memGetInfo()[0] // MIB}
    if "fill" in sys.argv:
        held, facts["refused"] = fill()
        facts["left"] = cupy.cuda.runtime.memGetInfo()[0] // MIB
        del held[0]  # after a refusal the program goes on
        facts["goes_on"] = int(cupy.asnumpy(cupy.asarray(numpy.arange(1000))).sum())
    print(json.dumps(facts), flush=True)
    if "fill" in sys.argv:
        time.sleep(float(sys.argv[-1]))


if __name__ == "__main__":
    main()
