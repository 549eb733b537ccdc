# SPDX-License-Identifier: Apache-2.0
"""Long churn and fuzzing of the kernel module on the debug kernel (KASAN, lockdep, kmemleak); prints its figures.

CHURN_SECONDS and FUZZ_CALLS choose how long; the defaults are ten minutes and ten million calls.
"""

import os
from collections.abc import Callable

import pytest

from tests.kmod.churning import LEFT, churn, fuzz
from tests.vm.bench import Choice
from tests.vm.fixtures import vm, vm_pool
from tests.vm.machine import Machine

__all__ = ["vm", "vm_pool"]
SECONDS = int(os.environ.get("CHURN_SECONDS", "600"))
CALLS = int(os.environ.get("FUZZ_CALLS", "10000000"))
machine = pytest.mark.parametrize(
    "vm", [pytest.param(Choice("535", kernel="debug"), id="535 on the debug kernel")], indirect=True, scope="module"
)


@machine
@pytest.mark.timeout(SECONDS * 4 + 900)
def test_churn_on_the_debug_kernel(vm: Machine, record_property: Callable[[str, object], None]) -> None:
    """No step stalls for a second, nothing is left, nothing is leaked, no report."""
    vm.run("check-leaks clear").checked()
    facts, left = churn(vm, SECONDS)
    figure = f"churn, {SECONDS} s: {dict(facts['done'])}; longest {facts['longest_s']}; stood still {facts['stood_still_s']} s"
    record_property("figure", figure)
    print(f"soak: {figure}")

    assert (facts["failures"], left) == ([], LEFT)
    assert facts["stall_s"] < 1, facts
    vm.run("check-leaks").checked()


@machine
@pytest.mark.timeout(CALLS / 200 + 900)
def test_fuzzing_on_the_debug_kernel(vm: Machine, record_property: Callable[[str, object], None]) -> None:
    """Random calls and writes from two instances at once."""
    vm.run("check-leaks clear").checked()
    shown = fuzz(vm, CALLS, 2, seed=7)
    record_property("figure", f"fuzzing: {CALLS} calls")
    print(f"soak: fuzzing: {CALLS} calls, {shown}")

    assert shown == [f"{CALLS // 2} calls"] * 2 + LEFT
    vm.run("check-leaks").checked()
