# SPDX-License-Identifier: Apache-2.0
"""Takes GPU memory in steps of 256 MiB by CUDA's driver API until it is refused, and says what the last answer was."""

import ctypes

STEP = 256 << 20
cuda = ctypes.CDLL("libcuda.so.1")
device, context, address = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
for name, *arguments in (
    ("cuInit", 0),
    ("cuDeviceGet", ctypes.byref(device), 0),
    ("cuCtxCreate_v2", ctypes.byref(context), 0, device),
):
    status = getattr(cuda, name)(*arguments)
    if status:
        raise SystemExit(f"{name} ended with {status}")
taken = 0
while not (status := cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(STEP))):
    taken += STEP
print(f"{taken >> 20} MiB taken, then CUDA error {status}")
