# SPDX-License-Identifier: Apache-2.0
"""Cases of shared compute: what each instance does, what part of the GPU it must get, and how far off that may be.

The measuring stick is the simulated engine's own counter of busy time, a process each; the module's is compared with it.
A machine by the host's clock needs an allowance; by counted time the contract's own tolerance counts, however loaded the
host is, but a second takes many.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.vm.bench import Choice
from tests.vm.machine import Machine
from tests.vm.programs import compile_c

PROGRAMS: Final = Path(__file__).parent / "programs"
CHOICE: Final = Choice("535", "T4", memory_mib=3072)
COUNTED: Final = Choice("535", "T4", memory_mib=3072, cpus=1, clock="counted")
# a thread of a machine by the host's clock is woken late, by as much as the host is loaded
ALLOWANCE: Final = 0.2
SLICE_MS: Final = 20
FAIR, PREEMPTIVE, WEIGHTED, FIXED, SOFT, NATIVE = range(6)
UNLOAD: Final = "rmmod $(lsmod | grep -o '^cgpu_core[^ ]*') cgpu_km"
OF_WALL_TIME: Final = (FAIR, FIXED)
BY_WEIGHT: Final = (WEIGHTED, FIXED)
HOST_SECONDS: Final = 36_000.0
# of rows of short kernels, under counted time: a launch takes the emulated processor long
COUNTED_ROW_US: Final = 2000
# between kernels of which each is waited for: the simulated engine looks for doorbells every 50 us, and is not woken
GAP_SECONDS: Final = 1e-4


@dataclass(frozen=True, slots=True)
class Load:
    """What one instance does: kernel lengths in microseconds and how they are launched; empty = it rests."""

    lengths: tuple[int, ...] = ()
    mode: str = "queued"
    weight: int = 1
    streams: int = 1
    highprio: bool = False

    @property
    def gaps(self) -> float:
        """What part of the time nothing is queued, at most, since kernels, or a row of them, are waited for."""
        if self.mode in ("queued", "graph") or not self.lengths:
            return 0.0
        return GAP_SECONDS * 1e6 / (min(self.lengths) if self.mode == "waited" else sum(self.lengths))

    def told(self) -> dict[str, Any]:
        """The load as the program in the guest reads it."""
        words = ",".join(map(str, self.lengths))
        work = {"work": f"work {words} {self.mode} {self.streams}"} if words else {}
        return {"weight": self.weight, "highprio": int(self.highprio), **work}

    def __str__(self) -> str:
        shown = "+".join(f"{length / 1000:g}" for length in sorted(set(self.lengths))[:4])
        streams = f" in {self.streams} streams" if self.streams > 1 else ""
        high = ", high priority" if self.highprio else ""
        return f"{shown} ms {self.mode}{streams}{high}" if self.lengths else f"rests{high}"


@dataclass(frozen=True, slots=True)
class Case:
    """Loads side by side under a policy, for `seconds` of the guest.

    `before`: policy and weights under which they work first; `wake`: number of an instance, how often it wakes, and for a
    kernel of how many microseconds.
    """

    policy: int
    loads: tuple[Load, ...]
    seconds: float = 5.0
    wake: tuple[int, int, int] | None = None
    before: tuple[int, tuple[int, ...]] | None = None
    max_inst: int = 20
    prio_ratio: int = 80

    @property
    def longest(self) -> float:
        """Seconds of the longest kernel."""
        return max((max(load.lengths) for load in self.loads if load.lengths), default=0) / 1e6

    def told(self) -> dict[str, Any]:
        """The case as the program in the guest reads it."""
        told: dict[str, Any] = {"policy": self.policy, "prio_ratio": self.prio_ratio, "max_inst": self.max_inst}
        told |= {"seconds": self.seconds, "loads": [load.told() for load in self.loads]}
        if self.wake:
            told["wake"] = self.wake
        if self.before:
            policy, weights = self.before
            told["before"] = {"policy": policy, "loads": [{"weight": weight} for weight in weights]}
        return told

    def slices(self, number: int) -> int:
        """How many slices of a round an instance has."""
        return self.loads[number].weight if self.policy in BY_WEIGHT else 1

    def of_round(self, numbers: Sequence[int], whole: float) -> dict[int, float]:
        """What the policy gives each of these instances of `whole`."""
        if self.policy in OF_WALL_TIME:
            return {number: whole * self.slices(number) / self.max_inst for number in numbers}
        return {number: whole * self.slices(number) / sum(map(self.slices, numbers)) for number in numbers}

    def wanted(self) -> list[float]:
        """What part each instance must get: of all busy time, or of wall time under the policies 0 and 3."""
        works = [number for number, load in enumerate(self.loads) if load.lengths]
        high = [number for number in works if self.loads[number].highprio]
        low = [number for number in works if number not in high]
        if high and low:
            parts = self.of_round(high, self.prio_ratio / 100) | self.of_round(low, 1 - self.prio_ratio / 100)
        else:
            parts = self.of_round(works, 1.0)
        return [parts.get(number, 0.0) for number in range(len(self.loads))]

    def tolerance(self, part: float, seconds: float) -> float:
        """How far measured / wanted may be from 1; the soft policy promises no more than 10 percent.

        Who waits for each kernel does not always have work queued: the gaps before its kernels are not the module's.
        """
        gaps = max(load.gaps for load in self.loads)
        return (0.1 if self.policy == SOFT else 0.01) + gaps + self.longest / (part * seconds)

    def lasting(self, least: float, most: float) -> float:
        """Seconds after which the longest kernel is a hundredth of the least share, within bounds."""
        return min(most, max(least, 100 * self.longest / min(part for part in self.wanted() if part)))

    def __str__(self) -> str:
        weights = ":".join(str(load.weight) for load in self.loads[:4])
        return f"policy {self.policy}, {len(self.loads)} of weights {weights}: " + " | ".join(map(str, self.loads[:4]))


@dataclass(frozen=True, slots=True)
class Measured:
    """What a case gave: nanoseconds a program, as the engine and as the module counted, and of the guest's clock.

    `waits` are what a waking instance's kernels took, `turns` is how often the GPU was given to an instance, `free` is
    what free_weight said.
    """

    busy: list[int]
    told: list[int]
    wall: int
    waits: list[int]
    turns: int
    free: int

    @property
    def used(self) -> float:
        """What part of the time the engine worked."""
        return sum(self.busy) / self.wall

    def parts(self, case: Case) -> list[float]:
        """The parts that the instances got, of what the policy divides."""
        whole = self.wall if case.policy in OF_WALL_TIME else sum(self.busy)
        return [busy / whole for busy in self.busy]

    def misses(self, case: Case, allowance: float = ALLOWANCE) -> list[str]:
        """One line for each instance whose part is out of the contract's tolerance and the allowance."""
        lines = []
        for number, (part, want) in enumerate(zip(self.parts(case), case.wanted(), strict=True)):
            if not want:
                continue
            may = case.tolerance(want, self.wall / 1e9) + allowance
            if abs(part / want - 1) > may:
                lines.append(f"{number} got {part:.4f} instead of {want:.4f}: {part / want - 1:+.2%} of {may:.2%}")
        return lines


class Progress:
    """Shows each case's parts as they arrive: a case takes long, and there are many."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self.cases = iter(cases)
        self.line = b""

    def take(self, data: bytes) -> None:
        """More of the output of the program in the guest."""
        *lines, self.line = (self.line + data).split(b"\n")
        for line in lines:
            case, result = next(self.cases), Measured(**json.loads(line))
            told = (said / busy - 1 if busy else 0.0 for said, busy in zip(result.told, result.busy, strict=True))
            print(
                f"{case}, {case.seconds:g} s: {' : '.join(f'{part:.4f}' for part in result.parts(case)[:4])},"
                f" used {result.used:.4f}, turns {result.turns}, told off by {', '.join(f'{off:+.4f}' for off in told)}"
                f"{''.join(f'; {missed}' for missed in result.misses(case, 0.0)[:4])}",
                file=sys.stderr,
                flush=True,
            )


def measure(
    vm: Machine, cases: Sequence[Case], *, slice_ms: int = SLICE_MS, row_us: int | None = None, timeout: float = 0.0
) -> list[Measured]:
    """Runs cases one after the other in a machine with the module, loaded anew with that slice (0 = its own).

    Those with equal instances follow each other, since programs start slowly under emulation. `timeout`: seconds of the
    host, 0 = by those of the cases.
    """
    order = sorted(range(len(cases)), key=lambda number: (cases[number].max_inst, len(cases[number].loads)))
    vm.put("/root/load", compile_c("load", [PROGRAMS / "load.c"]))
    vm.put("/root/shares.py", PROGRAMS / "shares.py")
    vm.put("/root/cases", json.dumps([cases[number].told() for number in order]))
    load = f"/root/load {row_us}" if row_us else "/root/load"
    seconds = timeout or 2 * sum(case.seconds for case in cases) + 180
    vm.run(f"{UNLOAD} && load-cgpu slice_ms={slice_ms}").checked()
    progress = Progress([cases[number] for number in order])
    run = f"python3 /root/shares.py '{load}' /root/cases"
    done = vm.run(run, timeout=seconds, sinks=(progress.take, None)).checked()
    vm.run(f"{UNLOAD} && load-cgpu").checked()
    found = dict(zip(order, map(json.loads, done.stdout.splitlines()), strict=True))
    return [Measured(**found[number]) for number in range(len(cases))]


def measure_counted(vm: Machine, cases: Sequence[Case]) -> list[Measured]:
    """The same in a machine by counted time, with the module's own slices, on an engine that is as prompt as a GPU."""
    vm.run("echo 1 > /sys/module/nvsim/parameters/prompt").checked()
    return measure(vm, cases, slice_ms=0, row_us=COUNTED_ROW_US, timeout=HOST_SECONDS)
