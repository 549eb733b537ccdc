# SPDX-License-Identifier: Apache-2.0
"""Two processes share memory by CUDA's IPC handle; prints one JSON object of facts.

ipc.py                   # makes 256 MiB and starts the second process
ipc.py HANDLE            # internal: opens it, writes to it and asks what is free
"""

import json
import subprocess
import sys

from libcuda import Cuda

MIB = 1 << 20
WORDS = b"what the first process wrote"
ANSWER = b"what the second process wrote"


def shown() -> tuple[int, list[int]]:
    """MiB that nvidia-smi shows as used on the card, and by each process."""
    forms = ("--query-gpu=memory.used", "--query-compute-apps=used_memory")
    told = [
        subprocess.run(["nvidia-smi", form, "--format=csv,noheader,nounits"], check=True, capture_output=True)
        for form in forms
    ]
    used, processes = ([int(word) for word in one.stdout.split()] for one in told)
    return used[0], processes


def second(handle: bytes) -> None:
    """Reads what the first wrote, answers, and says what the opening took from the card."""
    cuda = Cuda()
    before = cuda.memory()[0]
    address = cuda.open_shared(handle)
    facts = {"taken_mib": (before - cuda.memory()[0]) // MIB, "read": cuda.read(address, len(WORDS)) == WORDS}
    used, processes = shown()
    facts |= {"processes": len(processes), "adds_up": sum(processes) == used > 256}
    cuda.write(address + 255 * MIB, ANSWER)
    cuda.close_shared(address)
    facts["closed_mib"] = (cuda.memory()[0] - before) // MIB
    json.dump(facts, sys.stdout)


def first() -> None:
    """Makes the memory, lets the second process use it, and reads its answer."""
    cuda = Cuda()
    base = cuda.alloc(256 * MIB)
    cuda.write(base, WORDS)
    told = subprocess.run(
        [sys.executable, __file__, cuda.share(base).hex()], check=True, capture_output=True, text=True
    )
    facts = json.loads(told.stdout)
    facts["answer"] = cuda.read(base + 255 * MIB, len(ANSWER)) == ANSWER
    json.dump(facts, sys.stdout)


if __name__ == "__main__":
    second(bytes.fromhex(sys.argv[1])) if len(sys.argv) > 1 else first()
