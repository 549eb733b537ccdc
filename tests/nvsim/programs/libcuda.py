# SPDX-License-Identifier: Apache-2.0
"""libcuda by ctypes: just enough of the driver API for the test programs, which also run in the virtual machine."""

import ctypes

PTX = b"""
.version 6.0
.target sm_60
.address_size 64
.visible .entry spin(.param .u64 duration, .param .u64 out)
{
	.reg .u64 %rd<4>;
	ld.param.u64 %rd1, [duration];
	ld.param.u64 %rd2, [out];
	cvta.to.global.u64 %rd3, %rd2;
	st.global.u64 [%rd3], %rd1;
	ret;
}
"""
Size = ctypes.c_size_t
Address = ctypes.c_uint64


class CudaError(Exception):
    """A call of libcuda returned something else than 0."""

    def __init__(self, call: str, code: int) -> None:
        super().__init__(f"{call} returned {code}")
        self.code = code


class IpcHandle(ctypes.Structure):
    """CUipcMemHandle, which is passed by value."""

    _fields_ = (("bytes", ctypes.c_ubyte * 64),)


class Cuda:
    """One context on one card. Calls are made by name: `cuda.call("cuMemAlloc_v2", ...)`."""

    def __init__(self, device: int = 0, flags: int = 4) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        self.device = device
        self.call("cuInit", 0)
        self.context = ctypes.c_void_p()
        self.call("cuCtxCreate_v2", ctypes.byref(self.context), flags, device)

    def status(self, name: str, *arguments: object) -> int:
        """Calls a function and returns its code."""
        return int(getattr(self.library, name)(*arguments))

    def call(self, name: str, *arguments: object) -> None:
        """Calls a function that must succeed."""
        code = self.status(name, *arguments)
        if code:
            raise CudaError(name, code)

    def has(self, name: str) -> bool:
        """True when this libcuda exports the function."""
        return hasattr(self.library, name)

    def bus(self) -> str:
        """Where the card sits, as DOMAIN:BUS:DEVICE.FUNCTION."""
        text = ctypes.create_string_buffer(32)
        self.call("cuDeviceGetPCIBusId", text, 32, self.device)
        return text.value.decode()

    def alloc(self, size: int) -> int:
        """Device memory."""
        address = Address()
        self.call("cuMemAlloc_v2", ctypes.byref(address), Size(size))
        return address.value

    def free(self, address: int) -> None:
        """Gives device memory back."""
        self.call("cuMemFree_v2", Address(address))

    def write(self, address: int, data: bytes) -> None:
        """Copies to the device."""
        self.call("cuMemcpyHtoD_v2", Address(address), data, Size(len(data)))

    def read(self, address: int, size: int) -> bytes:
        """Copies from the device."""
        buffer = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", buffer, Address(address), Size(size))
        return buffer.raw

    def sync(self) -> None:
        """Waits for everything."""
        self.call("cuCtxSynchronize")

    def memory(self) -> tuple[int, int]:
        """Free and total bytes."""
        free, total = Size(), Size()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def share(self, address: int) -> bytes:
        """The handle by which another process opens memory."""
        handle = IpcHandle()
        self.call("cuIpcGetMemHandle", ctypes.byref(handle), Address(address))
        return bytes(handle)

    def open_shared(self, handle: bytes) -> int:
        """The address of another process's memory in this one."""
        address, name = Address(), "cuIpcOpenMemHandle"
        name += "_v2" if self.has("cuIpcOpenMemHandle_v2") else ""
        self.call(name, ctypes.byref(address), IpcHandle.from_buffer_copy(handle), 1)
        return address.value

    def close_shared(self, address: int) -> None:
        """Takes another process's memory out of this one."""
        self.call("cuIpcCloseMemHandle", Address(address))

    def stream(self) -> ctypes.c_void_p:
        """A stream that does not wait for the default one."""
        stream = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(stream), 1)
        return stream

    def event(self, flags: int = 0) -> ctypes.c_void_p:
        """An event."""
        event = ctypes.c_void_p()
        self.call("cuEventCreate", ctypes.byref(event), flags)
        return event

    def elapsed_ms(self, first: ctypes.c_void_p, last: ctypes.c_void_p) -> float:
        """Milliseconds between two recorded events."""
        value = ctypes.c_float()
        self.call("cuEventElapsedTime", ctypes.byref(value), first, last)
        return value.value


class Spin:
    """The test kernel: a timed no-op that tells the simulator its duration."""

    def __init__(self, cuda: Cuda) -> None:
        self.cuda = cuda
        self.out = cuda.alloc(4096)
        module, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        cuda.call("cuModuleLoadData", ctypes.byref(module), PTX)
        cuda.call("cuModuleGetFunction", ctypes.byref(self.function), module, b"spin")

    def launch(self, duration_ns: int, stream: ctypes.c_void_p | None = None) -> None:
        """Launches one kernel of that duration."""
        self.cuda.call("cuLaunchKernel", *self.arguments(duration_ns, stream))

    def arguments(self, duration_ns: int, stream: ctypes.c_void_p | None = None) -> tuple[object, ...]:
        """What cuLaunchKernel takes; kept alive until the next call."""
        self.values = (Address(duration_ns), Address(self.out))
        self.pointers = (ctypes.c_void_p * 2)(
            *(ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in self.values)
        )
        return (self.function, 4, 3, 2, 64, 1, 1, 0, stream, self.pointers, None)
