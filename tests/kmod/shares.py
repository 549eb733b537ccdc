# SPDX-License-Identifier: Apache-2.0
"""Cases of shared compute: what each instance does, what part of the GPU it must get, and how far off that may be.

The measuring stick is the simulated engine's own counter of busy time, a process each; the module's is compared with it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.vm.bench import Choice
from tests.vm.machine import Machine
from tests.vm.programs import compile_c

PROGRAMS: Final = Path(__file__).parent / "programs"
CHOICE: Final = Choice("535", "T4", memory_mib=3072)
# a thread of the emulated machine is woken late, by as much as the host is loaded
ALLOWANCE: Final = 0.2
MAX_INST: Final = 20
SLICE_MS: Final = 20
FAIR, PREEMPTIVE, WEIGHTED, FIXED, SOFT = range(5)
UNLOAD: Final = "rmmod $(lsmod | grep -o '^cgpu_core[^ ]*') cgpu_km"
OF_WALL_TIME: Final = (FAIR, FIXED)


@dataclass(frozen=True, slots=True)
class Load:
    """What one instance does: kernel lengths in microseconds and how they are launched; empty = it rests."""

    lengths: tuple[int, ...] = ()
    mode: str = "queued"
    weight: int = 1
    streams: int = 1
    highprio: bool = False

    def told(self) -> dict[str, Any]:
        """The load as the program in the guest reads it."""
        words = ",".join(map(str, self.lengths))
        work = {"work": f"work {words} {self.mode} {self.streams}"} if words else {}
        return {"weight": self.weight, "highprio": int(self.highprio), **work}

    def __str__(self) -> str:
        shown = "+".join(f"{length / 1000:g}" for length in sorted(set(self.lengths))[:4])
        return f"{shown} ms {self.mode}" if self.lengths else "rests"


@dataclass(frozen=True, slots=True)
class Case:
    """Loads side by side under a policy, for `seconds`, or longer where a kernel is long."""

    policy: int
    loads: tuple[Load, ...]
    seconds: float = 5.0
    wake: tuple[int, int, int] | None = None

    @property
    def longest(self) -> float:
        """Seconds of the longest kernel."""
        return max((max(load.lengths) for load in self.loads if load.lengths), default=0) / 1e6

    def told(self) -> dict[str, Any]:
        """The case as the program in the guest reads it."""
        wake = {"wake": self.wake} if self.wake else {}
        return {"policy": self.policy, "seconds": self.seconds, "loads": [load.told() for load in self.loads], **wake}

    def wanted(self) -> list[float]:
        """What part each instance must get: of all busy time, or of wall time under the policies 0 and 3."""
        if self.policy == FAIR:
            return [1 / MAX_INST if load.lengths else 0.0 for load in self.loads]
        if self.policy == FIXED:
            return [load.weight / MAX_INST if load.lengths else 0.0 for load in self.loads]
        parts = [(load.weight if self.policy == WEIGHTED else 1) if load.lengths else 0 for load in self.loads]
        return [part / sum(parts) for part in parts]

    def tolerance(self, part: float, seconds: float) -> float:
        """How far measured / wanted may be from 1; the soft policy promises no more than 10 percent."""
        return (0.1 if self.policy == SOFT else 0.01) + self.longest / (part * seconds)

    def __str__(self) -> str:
        weights = ":".join(str(load.weight) for load in self.loads[:4])
        return f"policy {self.policy}, {len(self.loads)} of weights {weights}: " + " | ".join(map(str, self.loads[:4]))


@dataclass(frozen=True, slots=True)
class Measured:
    """What a case gave: nanoseconds a program, as the engine and as the module counted, and of the wall clock."""

    busy: list[int]
    told: list[int]
    wall: int
    waits: list[int]

    def parts(self, case: Case) -> list[float]:
        """The parts that the instances got, of what the policy divides."""
        whole = self.wall if case.policy in OF_WALL_TIME else sum(self.busy)
        return [busy / whole for busy in self.busy]

    def misses(self, case: Case) -> list[str]:
        """One line for each instance whose part is out of the contract's tolerance and the allowance."""
        lines = []
        for number, (part, want) in enumerate(zip(self.parts(case), case.wanted(), strict=True)):
            if not want:
                continue
            may = case.tolerance(want, self.wall / 1e9) + ALLOWANCE
            if abs(part / want - 1) > may:
                lines.append(f"{number} got {part:.4f} instead of {want:.4f}: {part / want - 1:+.2%} of {may:.2%}")
        return lines


def measure(vm: Machine, cases: Sequence[Case], *, slice_ms: int = SLICE_MS) -> list[Measured]:
    """Runs cases one after the other in a machine with the module, loaded anew with that slice."""
    vm.put("/root/load", compile_c("load", [PROGRAMS / "load.c"]))
    vm.put("/root/shares.py", PROGRAMS / "shares.py")
    vm.put("/root/cases", json.dumps([case.told() for case in cases]))
    seconds = sum(case.seconds for case in cases)
    vm.run(f"{UNLOAD} && load-cgpu slice_ms={slice_ms}").checked()
    done = vm.run("python3 /root/shares.py /root/load /root/cases", timeout=2 * seconds + 180).checked()
    vm.run(f"{UNLOAD} && load-cgpu").checked()
    return [Measured(**json.loads(line)) for line in done.stdout.splitlines()]
