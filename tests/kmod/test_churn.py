# SPDX-License-Identifier: Apache-2.0
"""A minute in which everything changes while CUDA runs, and random calls; tests/soak has the long ones."""

import pytest

from tests.kmod.churning import LEFT, churn, fuzz
from tests.vm.bench import Choice
from tests.vm.machine import Machine

machine = pytest.mark.parametrize("vm", [pytest.param(Choice("535"), id="535")], indirect=True, scope="module")
STEPS = {"create", "mount", "kill", "umount", "destroy", "resize", "policy", "weight", "read", "kill cuda"}


@machine
def test_churn_leaves_nothing_and_never_stalls(vm: Machine) -> None:
    """Eight threads for a minute: no step takes a second, all books are zero, the kernel reports nothing."""
    facts, left = churn(vm, 60)

    assert facts["failures"] == []
    assert set(facts["done"]) == STEPS
    assert facts["stall_s"] < 1, facts
    assert left == LEFT


@machine
def test_random_calls_do_no_harm(vm: Machine) -> None:
    """Malformed and half-valid calls and writes from two instances at once; afterwards all books are zero."""
    shown = fuzz(vm, 20000, 2)

    assert shown == ["10000 calls", "10000 calls", *LEFT]
