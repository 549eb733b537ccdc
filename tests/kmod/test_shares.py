# SPDX-License-Identifier: Apache-2.0
"""Each instance gets its share of the GPU in the virtual machine, by the engine's own counter of busy time.

The machine is emulated: a thread that is woken late rings late, and the engine hears it late, by as much as the host is
loaded. So the contract's tolerance has an allowance here; without one it is kept in simulated time (test_host.py). A
module that does not charge what outlives a slice is off by a multiple of it.
"""

from statistics import median
from typing import Final

import pytest

from tests.kmod.shares import CHOICE, PREEMPTIVE, WEIGHTED, Case, Load, Measured, measure
from tests.vm.fixtures import Pool

FIVE: Final = Load((5000,))
CASES: Final = {
    "two under 1": Case(PREEMPTIVE, (FIVE, FIVE)),
    "weights 1 and 2": Case(WEIGHTED, (FIVE, Load((5000,), weight=2)), 6),
    "weights 2 and 18": Case(WEIGHTED, (Load((5000,), weight=2), Load((5000,), weight=18)), 8),
    "kernels of 20 ms against 5 ms": Case(PREEMPTIVE, (Load((20_000,)), FIVE), 6),
    "kernels of 50 ms against graphs of 1 ms": Case(PREEMPTIVE, (Load((50_000,)), Load((1000,), "graph")), 8),
}
WAKING: Final = Case(PREEMPTIVE, (FIVE, Load(highprio=True)), 4, wake=(1, 15, 1000))


@pytest.fixture(scope="module")
def measured(vm_pool: Pool) -> dict[str, Measured]:
    """All cases, measured in one go in one machine."""
    results = measure(vm_pool.get(CHOICE), [*CASES.values(), WAKING])
    return dict(zip([*CASES, "waking"], results, strict=True))


@pytest.mark.timeout(480)
@pytest.mark.parametrize("name", CASES)
def test_each_gets_its_share(measured: dict[str, Measured], name: str) -> None:
    case, result = CASES[name], measured[name]
    print(f"{case}: {', '.join(f'{part:.4f}' for part in result.parts(case))}")
    assert not result.misses(case)


@pytest.mark.timeout(480)
def test_a_waking_instance_of_high_priority_does_not_wait_for_a_queue(measured: dict[str, Measured]) -> None:
    """A neighbour with the GPU alone queues some hundred milliseconds of kernels; it may not, below high priority."""
    waits = [wait / 1e6 for wait in measured["waking"].waits]
    print(f"a kernel of 1 ms after a sleep took ms: {sorted(waits)}")
    assert median(waits) <= 150
