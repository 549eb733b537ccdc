# SPDX-License-Identifier: Apache-2.0
"""The simulated driver on the kernel with every check on: random calls, random ends, coming and going.

The console is read after every call, so that a report of KASAN, lockdep or the list and object checks fails the test that
caused it; kmemleak is asked at the end of each. Sizes are multiplied by SOAK (1: hours under emulation; 0.01: a try).
"""

import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.vm.bench import Choice

PROGRAMS = "/opt/project/tests/nvsim/programs"
SCALE = float(os.environ.get("SOAK", "1"))
CHOICE = Choice("535", "T4", kernel="debug", memory_mib=4096, cgpu=False)
debug = pytest.mark.parametrize("vm", [pytest.param(CHOICE, id="the debug kernel")], indirect=True, scope="module")
Record = Callable[[str, object], None]


def times(count: int) -> int:
    """A count of the full soak at the chosen scale, at least one."""
    return max(1, round(count * SCALE))


def assert_nothing_left(vm: Any) -> None:
    """No client, no memory of a card, no kernel memory."""
    shown = vm.run("cat /proc/nvsim; check-leaks", timeout=600)
    assert (shown.code, "client" in shown.stdout, " used 0 " in shown.stdout) == (0, False, True), shown.stdout


@debug
@pytest.mark.timeout(24 * 3600)
def test_a_million_random_ioctls_are_harmless(vm: Any, record_property: Record) -> None:
    """Wrong sizes, handles, pointers, nested wrappers; another seed for each 5,000."""
    vm.run("check-leaks clear")
    for seed in range(times(200)):
        done = vm.run(f"python3 {PROGRAMS}/fuzz.py {1000 + seed} 5000", timeout=3600)
        assert done.checked().stdout == "done\n"
    assert_nothing_left(vm)
    record_property("figure", f"{5000 * times(200)} random ioctls without a report")


@debug
@pytest.mark.timeout(24 * 3600)
def test_a_thousand_killed_processes_leave_nothing(vm: Any, record_property: Record) -> None:
    """Two CUDA programs at a time, killed at any moment of their life."""
    vm.run("check-leaks clear")
    script = f"""for m in 1 2; do python3 {PROGRAMS}/everything.py > /dev/null 2>&1 & eval "P$m=$!"; done
	sleep $((RANDOM % 20)).$((RANDOM % 9)); kill -9 $P1 $P2; wait; true"""
    for _ in range(times(500)):
        vm.run(script, timeout=600).checked()
    assert_nothing_left(vm)
    record_property("figure", f"{2 * times(500)} kills without a trace")


@debug
@pytest.mark.timeout(24 * 3600)
def test_fifty_times_loaded_and_unloaded_leaves_nothing(vm: Any, record_property: Record) -> None:
    """The module comes and goes, each time with a program on it."""
    vm.run("check-leaks clear")
    for _ in range(times(50)):
        vm.run("nvidia-smi -L > /dev/null; rmmod nvsim && load-driver", timeout=900).checked()
    assert_nothing_left(vm)
    record_property("figure", f"{times(50)} times loaded and unloaded")
