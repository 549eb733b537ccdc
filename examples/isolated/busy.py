# SPDX-License-Identifier: Apache-2.0
"""Keeps the GPU busy for so many seconds with kernels of 5 ms, of which some always wait; says how many ran.

busy.py [SECONDS]    default 20
"""

import ctypes
import sys
import time

KERNEL_NS = 5_000_000
ROW = 8
# the simulated driver takes a kernel's first parameter for its duration; a real card would end it at once
PTX = b"""
.version 6.0
.target sm_60
.address_size 64
.visible .entry work(.param .u64 nanoseconds)
{
    ret;
}
"""
cuda = ctypes.CDLL("libcuda.so.1")
device, context, module, function = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()


def call(name: str, *arguments: object) -> None:
    """A function of the driver, which must succeed."""
    status = getattr(cuda, name)(*arguments)
    if status:
        raise SystemExit(f"{name} ended with {status}")


call("cuInit", 0)
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
call("cuModuleLoadData", ctypes.byref(module), PTX)
call("cuModuleGetFunction", ctypes.byref(function), module, b"work")
duration = ctypes.c_uint64(KERNEL_NS)
parameters = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(duration), ctypes.c_void_p))
events = [ctypes.c_void_p(), ctypes.c_void_p()]
for event in events:
    call("cuEventCreate", ctypes.byref(event), 0)
end = time.monotonic() + float(sys.argv[1] if len(sys.argv) > 1 else 20)
rows = 0
while time.monotonic() < end:
    if rows >= len(events):
        call("cuEventSynchronize", events[rows % 2])  # of the row before the last: one more is queued behind it
    for _ in range(ROW):
        call("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, None, parameters, None)
    call("cuEventRecord", events[rows % 2], None)
    rows += 1
call("cuCtxSynchronize")
print(f"{rows * ROW} kernels of {KERNEL_NS // 1_000_000} ms")
