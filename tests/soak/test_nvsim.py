# SPDX-License-Identifier: Apache-2.0
"""The simulated driver on the kernel with every check on: random calls, random ends, coming and going.

The console is read after every call, so that a report of KASAN, lockdep or the list and object checks fails the test that
caused it; kmemleak is asked at the end of each. Sizes are multiplied by SOAK (1: hours under emulation; 0.01: a try).
"""

import os
import random
import time
from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.nvsim import fuzzing
from tests.vm.bench import Choice

PROGRAMS = "/opt/project/tests/nvsim/programs"
ROUND: Final = 20_000  # ioctls between two looks at the console
KILLS_A_CALL: Final = 40
PROGRAM: Final = f"python3 {PROGRAMS}/everything.py > /dev/null 2>&1"
LIFE: Final = f"""since=${{EPOCHREALTIME/./}}
for lane in $lanes; do {PROGRAM} & done; for lane in $lanes; do wait -n || exit; done
took=$((${{EPOCHREALTIME/./}} - since)); echo $((took / 1000000)).$(printf %06d $((took % 1000000)))"""
LANE: Final = f"""lane() {{
	for moment; do timeout -s KILL $moment {PROGRAM}; [ $? = 137 ] && echo killed; done
}} 2> /dev/null"""
SCALE = float(os.environ.get("SOAK", "1"))
CHOICE = Choice("535", "T4", kernel="debug", memory_mib=4096, cgpu=False)
PLAIN = Choice("535", "T4", cgpu=False)
debug = pytest.mark.parametrize("vm", [pytest.param(CHOICE, id="the debug kernel")], indirect=True, scope="module")
Record = Callable[[str, object], None]


def times(count: int) -> int:
    """A count of the full soak at the chosen scale, at least one."""
    return max(1, round(count * SCALE))


def assert_nothing_left(vm: Any, leaks: bool = True) -> None:
    """No client, no memory of a card and, where the kernel can tell, no kernel memory."""
    shown = vm.run(f"cat /proc/nvsim; {'check-leaks' if leaks else 'true'}", timeout=600)
    assert (shown.code, "client" in shown.stdout, " used 0 " in shown.stdout) == (0, False, True), shown.stdout


@debug
@pytest.mark.timeout(3600)
def test_the_debug_kernel_runs_on_every_processor(vm: Any) -> None:
    """Else its checks would not see two processors at once in the module."""
    assert vm.run("nproc").checked().stdout == f"{CHOICE.cpus}\n"


@debug
@pytest.mark.timeout(24 * 3600)
def test_a_million_random_ioctls_are_harmless(vm: Any, record_property: Record) -> None:
    """Wrong sizes, handles, pointers, nested wrappers, by programs that are killed after a thousand calls or so."""
    total, calls, kills, started = times(1_000_000), 0, 0, time.monotonic()
    vm.run("check-leaks clear").checked()
    fuzzing.put(vm)
    while calls < total:
        more, killed = fuzzing.fuzz(vm, 1000 + calls, min(ROUND, total - calls), 2, timeout=3600)
        calls, kills = calls + more, kills + killed
        print(f"soak: {calls} random ioctls, {kills} kills in {time.monotonic() - started:.0f} s", flush=True)
    assert_nothing_left(vm)
    record_property("figure", f"{calls} random ioctls and {kills} kills without a report")


@pytest.mark.timeout(24 * 3600)
@pytest.mark.parametrize(
    ("vm", "kills", "lanes", "leaks"),
    [
        pytest.param(PLAIN, 1000, 4, False, id="a thousand"),
        pytest.param(CHOICE, 200, 2, True, id="two hundred on the debug kernel"),
    ],
    indirect=["vm"],
)
def test_killed_processes_leave_nothing(vm: Any, kills: int, lanes: int, leaks: bool, record_property: Record) -> None:
    """So many CUDA programs at a time as `lanes`, each killed at a random moment of the life that such a program has among them.

    What is lost once is seen by the debug kernel's kmemleak after any number; a thousand of its lives would take hours.
    """
    vm.run("check-leaks clear" if leaks else "true").checked()
    order, started, done = random.Random(9), time.monotonic(), 0
    while done < times(kills):
        # anew, for the host's load changes
        life = vm.run(LIFE, {"lanes": " ".join(map(str, range(lanes)))}, timeout=900).checked().stdout
        moments = [f"{order.uniform(0, float(life)):.2f}" for _ in range(KILLS_A_CALL)]
        started_lanes = "".join(f"lane {' '.join(moments[lane::lanes])} & " for lane in range(lanes))
        done += vm.run(f"{LANE}\n{started_lanes}wait", timeout=3600).checked().stdout.count("killed")
        print(
            f"soak: {done} kills in {time.monotonic() - started:.0f} s, the last lives of {life.strip()} s", flush=True
        )
    assert_nothing_left(vm, leaks)
    record_property("figure", f"{done} kills without a trace")


@debug
@pytest.mark.timeout(24 * 3600)
def test_fifty_times_loaded_and_unloaded_leaves_nothing(vm: Any, record_property: Record) -> None:
    """The module comes and goes, each time with a program on it."""
    vm.run("check-leaks clear")
    for _ in range(times(50)):
        vm.run("nvidia-smi -L > /dev/null; rmmod nvsim && load-driver", timeout=900).checked()
    assert_nothing_left(vm)
    record_property("figure", f"{times(50)} times loaded and unloaded")
