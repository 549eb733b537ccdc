# SPDX-License-Identifier: Apache-2.0
"""Churn and fuzzing of the module in a machine, for a minute here and for longer in tests/soak."""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.kmod.containers import output
from tests.vm.machine import Machine
from tests.vm.programs import compile_c

PROGRAMS: Final = Path(__file__).parent / "programs"
EMPTY: Final = """within 10 sh -c '! grep -q "^client" /proc/nvsim'; grep "^client" /proc/nvsim
awk '/^gpu 0/ { print $7, $8 }' /proc/nvsim; unload; load-cgpu && echo loaded again
# a report that stops nobody, such as of waiting below a spin lock, taints the kernel; the console may be silent
[ $(($(cat /proc/sys/kernel/tainted) & 512)) = 0 ] || { echo the kernel warned; dmesg | grep -A 40 -m 1 -e BUG: -e WARNING:; }
[ ! -e /proc/lockdep_stats ] || grep -q 'debug_locks: *1' /proc/lockdep_stats || dmesg | grep -A 90 WARNING:"""
LEFT: Final = ["used 0", "loaded again"]
Met = tuple[str, str, str]

# The module logs each refused write, which would keep the console busy: the console is silent meanwhile, and a panic
# shows the whole log. Two instances and the host call at once; each program says how often each call had which result.
FUZZ: Final = """dmesg -n 1; echo 32 > /proc/sys/kernel/panic_print; cd /tmp
share fuzz0 0:500; share fuzz1 0:500; started=$SECONDS
./fuzz {seed} {part} 2 /run/cgpu/fuzz0 > fuzz.0 & first=$!
./fuzz {next} {part} 2 /run/cgpu/fuzz1 > fuzz.1 & second=$!
./fuzz {last} {rest} 2 /dev > fuzz.2 & third=$!
for program in $first $second $third; do wait $program || {{ free -m; dmesg | tail -n 15; exit 9; }}; done
cat fuzz.?; echo "time in-seconds was $((SECONDS - started))"
echo; unshare_all; dmesg -n 5; {empty}"""


def results_of(kind: str, text: str) -> set[Met]:
    """The results that rows of `name: result result` promise."""
    rows = (line.split(":") for line in text.strip().splitlines())
    return {(kind, name.strip(), result) for name, results in rows for result in results.split()}


# What random calls must have met, or they were no test: the module's rules, and each kind of refusal.
REACHED: Final = results_of(
    "escape",
    """free: ok EINVAL EFAULT status-0x23
        control: ok EINVAL EFAULT
        alloc: ok EINVAL EFAULT
        dup: ok EINVAL EFAULT
        heap: ok EINVAL EFAULT
        map: ok EINVAL EFAULT EPERM
        attach: ok EPERM
        refused_unknown: ENOTTY
        wrapped: ok EINVAL EFAULT""",
) | results_of("file", "inst_ctl: ok EINVAL EPERM")
RARELY_REACHED: Final = results_of(
    "file",
    """inst_ctl: EEXIST ENOENT ENOSPC EBUSY E2BIG
    upgrade: ok ENOENT E2BIG EPERM
    version: ok EACCES EPERM
    policy: ok EINVAL EPERM
    max_inst: EBUSY EINVAL
    weight: ok EINVAL
    memsize: ok EINVAL ENOSPC""",
) | results_of("uvm", "999: ENOTTY")


@dataclass(frozen=True, slots=True)
class Fuzzed:
    """How often each (kind of call, call, result) was met, how many calls in which time, and what is held afterwards."""

    met: Counter[Met]
    seconds: int
    left: list[str]

    @property
    def calls(self) -> int:
        """How many calls were made."""
        return sum(count for (kind, _, result), count in self.met.items() if kind == "calls" and result == "done")


def put(vm: Machine, name: str) -> None:
    """Brings a program into the machine, below /tmp."""
    vm.put(f"/tmp/{name}", compile_c(name, [PROGRAMS / f"{name}.c"]))


def churn(vm: Machine, seconds: int, seed: int = 1) -> tuple[dict[str, Any], list[str]]:
    """Plays programs/churn.py; what it tells, and what the driver and the module hold afterwards."""
    put(vm, "restless")
    script = f"""share stay0 0:1500; share stay1 0:1500; python3 $P/churn.py {seconds} {seed} || exit 9
echo; unshare_all; {EMPTY}"""
    told, *left = output(vm, script, timeout=seconds * 3 + 600).splitlines()
    return json.loads(told), left


def churn_without(vm: Machine, seconds: int, seed: int = 1) -> dict[str, Any]:
    """The same play on the driver's own nodes, the module taken out meanwhile: what the machine itself needs for it."""
    put(vm, "restless")
    told = output(vm, f"unload; python3 $P/churn.py {seconds} {seed} without; load-cgpu", timeout=seconds * 3 + 600)
    return dict(json.loads(told))


def stall_beyond(facts: dict[str, Any], control: dict[str, Any]) -> float:
    """Seconds by which the worst step was longer than the worst of its kind without the module, less standstill."""
    beyond = (seconds - control["idle_s"].get(name, 0.0) for name, seconds in facts["idle_s"].items())
    return float(max(beyond) - facts["stood_still_s"])


def tallied(text: str) -> Fuzzed:
    """What the programs and the script after them printed."""
    told, _, left = text.partition("\n\n")
    met: Counter[Met] = Counter()
    for kind, name, result, count in map(str.split, told.splitlines()):
        met[kind, name, result] += int(count)
    return Fuzzed(met, met.pop(("time", "in-seconds", "was")), left.splitlines())


def fuzz(vm: Machine, calls: int, seed: int = 1, timeout: float | None = None) -> Fuzzed:
    """Random calls from two instances and from the host at once, two fifths of them in each instance."""
    put(vm, "fuzz")
    part = calls * 2 // 5
    script = FUZZ.format(seed=seed, next=seed + 1, last=seed + 2, part=part, rest=calls - 2 * part, empty=EMPTY)
    return tallied(output(vm, script, timeout or calls / 300 + 300))
