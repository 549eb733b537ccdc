# SPDX-License-Identifier: Apache-2.0
"""Random ioctls from programs/fuzz.c in a machine: what it is to call is read from the simulator's own tables."""

import re
from pathlib import Path
from typing import Final

from tests.nvsim import registry
from tests.vm.machine import Machine
from tests.vm.programs import compile_c

SOURCE: Final = Path(__file__).parent / "programs/fuzz.c"
# classes that end in 61 and 6f (a doorbell, channels), work classes, pinned memory, and what nobody knows
MORE: Final = {
    "escape": (211, 99),
    "uvm": (999,),
    "class": (0xC461, 0xC46F, 0xC06F, 0xC5C0, 0xC5B5, 0x71, 0xFFFF),
    "control": (0x12345678,),
}


def numbers() -> str:
    """What there is to call, as fuzz.c reads it."""
    found: dict[str, list[int]] = {
        "escape": [int(row[0].split()[0]) for row in registry.escapes()],
        "uvm": [int(row[0], 0) for row in registry.uvm()],
        "class": [int(number, 16) for row in registry.classes() for number in re.findall(r"0x\w+", row[0])],
        "control": [int(row[0], 16) for row in registry.controls()],
    }
    found["control"] += [int(number, 16) for number in registry.accepted()]
    return "".join(f"{kind} {number}\n" for kind in found for number in (*found[kind], *MORE[kind]))


def put(vm: Machine) -> None:
    """Brings the program and its numbers into the machine."""
    vm.put("/tmp/fuzz", compile_c("fuzz", [SOURCE]))
    vm.put("/tmp/numbers", numbers())


def fuzz(vm: Machine, seed: int, count: int, processes: int, timeout: float) -> tuple[int, int]:
    """At least so many random ioctls, by several programs at once; how many there were, and how many killed processes."""
    each = count // processes
    starts = " ".join(f"/tmp/fuzz {seed + number} {each} < /tmp/numbers &" for number in range(processes))
    said = re.findall(r"(\d+) calls, (\d+) kills\n", vm.run(f"{starts} wait", timeout=timeout).checked().stdout)
    assert len(said) == processes, said
    return sum(int(calls) for calls, _ in said), sum(int(kills) for _, kills in said)
