# SPDX-License-Identifier: Apache-2.0
"""Each instance gets its share of the GPU in the virtual machine, by the engine's own counter of busy time.

The machine's clock counts instructions, so the contract's own tolerance holds however loaded the host is. A case is short:
a turn more or less in it is about a hundredth. tests/soak has the policies, lengths and ways to launch, and longer ones.
"""

from collections.abc import Iterator
from statistics import median
from typing import Final

import pytest

from tests.kmod.shares import COUNTED, FIXED, PREEMPTIVE, WEIGHTED, Case, Load, Measured, measure_counted
from tests.vm.fixtures import Pool

FIVE: Final = Load((5000,))
TURN: Final = 0.01
# a slice, two kernels of the neighbour and its own, and as much again
MOST_MS: Final = 26.0
CASES: Final = {
    "policy 3 alone with three slices": Case(FIXED, (Load((1000,), weight=3),), 4),
    "two under 1": Case(PREEMPTIVE, (FIVE, FIVE), 2),
    "weights 1 and 2": Case(WEIGHTED, (FIVE, Load((5000,), weight=2)), 2),
    "kernels of 0.1 ms against 1 ms in four streams": Case(PREEMPTIVE, (Load((100,)), Load((1000,), streams=4)), 1.5),
    "kernels of 50 ms against graphs of 1 ms": Case(PREEMPTIVE, (Load((50_000,)), Load((1000,), "graph")), 4),
}
WAKING: Final = Case(PREEMPTIVE, (FIVE, Load(highprio=True)), 1.5, wake=(1, 15, 1000))


@pytest.fixture(scope="module")
def measured(vm_pool: Pool) -> Iterator[dict[str, Measured]]:
    """All cases, measured in one go in one machine, which goes: its time runs on while nobody wants it."""
    results = measure_counted(vm_pool.get(COUNTED), [*CASES.values(), WAKING])
    yield dict(zip([*CASES, "waking"], results, strict=True))
    vm_pool.discard()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", CASES)
def test_each_gets_its_share(measured: dict[str, Measured], name: str) -> None:
    case, result = CASES[name], measured[name]
    print(f"{case}: {', '.join(f'{part:.4f}' for part in result.parts(case))}")
    assert not result.misses(case, TURN)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", CASES)
def test_the_module_counts_what_the_engine_counts(measured: dict[str, Measured], name: str) -> None:
    result = measured[name]
    assert result.told == pytest.approx(result.busy, rel=0.03)


@pytest.mark.timeout(900)
def test_a_waking_instance_of_high_priority_does_not_wait_for_a_queue(measured: dict[str, Measured]) -> None:
    """A neighbour with the GPU alone queues some hundred milliseconds of kernels; it may not, below high priority."""
    waits = [wait / 1e6 for wait in measured["waking"].waits]
    print(f"a kernel of 1 ms after a sleep took ms: {sorted(waits)}")
    assert median(waits) <= MOST_MS
