# SPDX-License-Identifier: Apache-2.0
"""Several CUDA processes of one container: memory that one hands to another, a limit that they share, a killed one.

Prints one JSON object of what the module says is used, in MiB, at each step.

together.py FOLDER_OF_THE_INSTANCE        # in /proc/cgpu_km
"""

import ctypes
import json
import subprocess
import sys
from pathlib import Path

from libcuda import Address, Cuda, Size

MIB = 1 << 20
PEER_ACCESS = 1
SHARED = 512
HALF = 1200


class Handle(ctypes.Structure):
    """CUipcMemHandle, which goes by value."""

    _fields_ = (("bytes", ctypes.c_byte * 64),)


def give(cuda: Cuda) -> str:
    """Memory, and the name under which another process finds it."""
    handle = Handle()
    cuda.call("cuIpcGetMemHandle", ctypes.byref(handle), Address(cuda.alloc(SHARED * MIB)))
    return bytes(handle.bytes).hex()


def take(cuda: Cuda, name: str) -> str:
    """Opens that memory."""
    open_ = "cuIpcOpenMemHandle_v2" if cuda.has("cuIpcOpenMemHandle_v2") else "cuIpcOpenMemHandle"
    address, handle = Address(), Handle.from_buffer_copy(bytes.fromhex(name))
    return str(cuda.status(open_, ctypes.byref(address), handle, PEER_ACCESS))


def half(cuda: Cuda, _: str) -> str:
    """Takes what fits twice into the limit, and not three times."""
    return str(cuda.status("cuMemAlloc_v2", ctypes.byref(Address()), Size(HALF * MIB)))


def serve() -> None:
    """A process that does what it is told, line by line."""
    cuda = Cuda()
    print("ready", flush=True)
    for line in sys.stdin:
        word, _, rest = line.strip().partition(" ")
        print({"give": lambda cuda, _: give(cuda), "take": take, "half": half}[word](cuda, rest), flush=True)


class Peer:
    """One such process."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        assert self.answer() == "ready"

    def answer(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def tell(self, line: str) -> str:
        assert self.process.stdin
        self.process.stdin.write(line + "\n")
        return self.answer()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def main(folder: Path) -> None:
    limit = int((folder / "memsize").read_text())

    def used() -> int:
        free = (folder / "meminfo").read_text().split()[1]
        return (limit - int(free)) // MIB

    one, two = Peer(), Peer()
    facts: dict[str, object] = {"contexts": used()}
    name = one.tell("give")
    facts["given"] = used()
    facts["taken"] = [int(two.tell(f"take {name}")), used()]
    one.kill()
    facts["giver_killed"] = used()
    two.kill()
    facts["both_killed"] = used()
    peers = [Peer() for _ in range(3)]
    facts["halves"] = [int(peer.tell("half")) for peer in peers]
    peers[0].kill()
    facts["after_one_died"] = int(peers[2].tell("half"))
    for peer in peers[1:]:
        peer.kill()
    facts["all_killed"] = used()
    json.dump(facts, sys.stdout)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        serve()
