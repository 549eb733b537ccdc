# SPDX-License-Identifier: Apache-2.0
"""Four threads, each with a context and a stream of its own, do everything at once; every byte is compared.

stress.py THREADS ROUNDS [alone]     # prints one JSON object: rounds done, and what went wrong
stress.py peer                       # internal: opens memory of other processes by its handle, says what is in it
"""

import ctypes
import hashlib
import json
import random
import subprocess
import sys
import threading

from libcuda import Address, Cuda, CudaError, Size, Spin

MIB = 1 << 20
LAUNCHES = 20


class Peer:
    """A second process that opens memory by IPC handles; one request at a time."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.process = subprocess.Popen(
            [sys.executable, __file__, "peer"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def digest(self, handle: bytes, size: int) -> str:
        """The hash over memory as the other process sees it."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with self.lock:
            print(handle.hex(), size, file=self.process.stdin, flush=True)
            return self.process.stdout.readline().strip()

    def end(self) -> int:
        """Ends it; its exit code."""
        self.process.communicate()
        return self.process.returncode


def peer() -> None:
    """Answers a line `HANDLE SIZE` with the hash over that memory, read through this process's own mapping."""
    cuda = Cuda()
    for line in sys.stdin:
        handle, size = line.split()
        address = cuda.open_shared(bytes.fromhex(handle))
        print(hashlib.sha256(cuda.read(address, int(size))).hexdigest(), flush=True)
        cuda.close_shared(address)


def one_round(cuda: Cuda, spin: Spin, stream: ctypes.c_void_p, order: random.Random, shared: Peer | None) -> str | None:
    """Allocates, copies, launches, fills, shares and frees; what differed, or None."""
    size = order.randrange(1, 3 * MIB)
    data = order.randbytes(size)
    first, last, back = cuda.event(), cuda.event(), ctypes.create_string_buffer(size)
    base, other = cuda.alloc(size), cuda.alloc(size)
    cuda.call("cuMemcpyHtoDAsync_v2", Address(base), data, Size(size), stream)
    cuda.call("cuEventRecord", first, stream)
    for _ in range(LAUNCHES):
        spin.launch(order.randrange(1, 100_000), stream)
    cuda.call("cuEventRecord", last, stream)
    cuda.call("cuMemcpyDtoDAsync_v2", Address(other), Address(base), Size(size), stream)
    cuda.call("cuMemsetD8Async", Address(base), ctypes.c_ubyte(size & 0xFF), Size(size), stream)
    cuda.call("cuMemcpyDtoHAsync_v2", back, Address(other), Size(size), stream)
    cuda.call("cuStreamSynchronize", stream)
    wrong = None
    if back.raw != data:
        wrong = f"{size} bytes came back changed"
    elif cuda.read(base, size) != bytes([size & 0xFF]) * size:
        wrong = f"a fill of {size} bytes is not whole"
    elif cuda.elapsed_ms(first, last) < 0:
        wrong = "an event lies before an earlier one"
    if shared and shared.digest(cuda.share(other), size) != hashlib.sha256(data).hexdigest():
        wrong = wrong or f"{size} bytes differ in the second process"
    for event in (first, last):
        cuda.call("cuEventDestroy_v2", event)
    cuda.free(base)
    cuda.free(other)
    return wrong


def work(number: int, rounds: int, shared: Peer | None, done: list[int], wrong: list[str]) -> None:
    """One thread's life."""
    try:
        cuda = Cuda()
        spin, stream, order = Spin(cuda), cuda.stream(), random.Random(number)
        for _ in range(rounds):
            found = one_round(cuda, spin, stream, order, shared)
            if found:
                wrong.append(found)
            done[number] += 1
        cuda.call("cuCtxDestroy_v2", cuda.context)
    except CudaError as error:
        wrong.append(str(error))


def main() -> None:
    threads, rounds = int(sys.argv[1]), int(sys.argv[2])
    shared, done, wrong = None if "alone" in sys.argv else Peer(), [0] * threads, list[str]()
    running = [threading.Thread(target=work, args=(n, rounds, shared, done, wrong)) for n in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    json.dump({"done": done, "wrong": wrong, "peer": shared.end() if shared else 0}, sys.stdout)


if __name__ == "__main__":
    peer() if sys.argv[1] == "peer" else main()
