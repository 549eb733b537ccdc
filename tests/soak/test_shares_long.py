# SPDX-License-Identifier: Apache-2.0
"""Compute shares at length: every policy with every pair of weights and kernel lengths, and the rows of ResNet50."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations_with_replacement
from typing import Final

import pytest

from tests.kmod.shares import COUNTED, FAIR, FIXED, PREEMPTIVE, SOFT, WEIGHTED, Case, Load, measure_counted
from tests.vm.fixtures import Pool

LENGTHS: Final = (100, 1000, 5000, 20_000, 50_000, 200_000)
WEIGHTS: Final = ((1, 2), (1, 1), (2, 1), (8, 4), (2, 18))
LEAST_SECONDS: Final = 3.0
LEAST_MICROSECONDS: Final = 100
MOST_SECONDS: Final = 100.0
# microseconds of a batch on the engine, and images a second of the two containers in the original's tables
RESNET: Final = {
    "TensorFlow, batch 16": (34_900, 151, 307),
    "TensorFlow, batch 32": (51_400, 204, 418),
    "TensorFlow, batch 64": (85_300, 247, 503),
    "TensorFlow, batch 128": (165_600, 257, 516),
    "TensorRT, batch 1": (590, 568.05, 1132.08),
    "TensorRT, batch 2": (710, 940.36, 1884.12),
    "TensorRT, batch 4": (1030, 1304.03, 2571.91),
    "TensorRT, batch 8": (1720, 1586.87, 3055.66),
    "TensorRT, batch 16": (3100, 1783.91, 3381.72),
    "TensorRT, batch 32": (5630, 1989.28, 3695.88),
    "TensorRT, batch 64": (10_700, 2105.81, 3889.35),
    "TensorRT, batch 128": (21_000, 2205.25, 3901.94),
}
# what the layers of ResNet50 cost beside each other: the first one, then four stages of bottlenecks, then the last one
LAYERS: Final = (8, *(3, 4, 5) * 3, *(3, 4, 4) * 4, *(3, 4, 3) * 6, *(3, 5, 3) * 3, 1)


def batch_of(microseconds: int) -> tuple[int, ...]:
    """The kernels of one batch: a layer each, or several where a layer is shorter than the emulation can follow."""
    count = min(len(LAYERS), microseconds // LEAST_MICROSECONDS)
    groups = [LAYERS[number * len(LAYERS) // count : (number + 1) * len(LAYERS) // count] for number in range(count)]
    return tuple(round(sum(group) * microseconds / sum(LAYERS)) for group in groups)


def lasting(case: Case) -> Case:
    """The same for as long as its tolerance needs."""
    return replace(case, seconds=case.lasting(LEAST_SECONDS, MOST_SECONDS))


def pairs(policy: int) -> Iterator[Case]:
    """All pairs of weights and lengths under a policy, each as long as the contract's tolerance needs."""
    for first, second in WEIGHTS:
        for one, other in combinations_with_replacement(LENGTHS, 2):
            modes = ["graph" if length < 1000 else "queued" for length in (one, other)]
            loads = (Load((one,), modes[0], first), Load((other,), modes[1], second))
            yield lasting(Case(policy, loads))


def run(vm_pool: Pool, cases: Sequence[Case]) -> list[str]:
    """Runs cases and returns what misses."""
    missed = []
    for case, result in zip(cases, measure_counted(vm_pool.get(COUNTED), cases), strict=True):
        print(f"{case}: {', '.join(f'{part:.4f}' for part in result.parts(case))}", flush=True)
        missed += [f"{case}: {line}" for line in result.misses(case, 0.0)]
    return missed


@pytest.mark.timeout(36_000)
@pytest.mark.parametrize("policy", [FAIR, PREEMPTIVE, WEIGHTED, FIXED, SOFT])
def test_every_pair_gets_its_shares(vm_pool: Pool, policy: int) -> None:
    assert run(vm_pool, list(pairs(policy))) == []


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("policy", [FAIR, PREEMPTIVE])
def test_twenty_instances_get_their_shares(vm_pool: Pool, policy: int) -> None:
    lengths = [(1000,), (5000,), (20_000,), (50_000,)] * 5
    assert run(vm_pool, [Case(policy, tuple(Load(length) for length in lengths), 100)]) == []


@pytest.mark.timeout(3600)
def test_resnet50_at_weights_1_and_2(vm_pool: Pool, record_property: Callable[[str, object], None]) -> None:
    cases = []
    for microseconds, *_ in RESNET.values():
        mode = "graphs" if microseconds < 20_000 else "batch"
        loads = tuple(Load(batch_of(microseconds), mode, weight) for weight in (1, 2))
        cases.append(Case(WEIGHTED, loads, 8))
    for (name, row), case, result in zip(
        RESNET.items(), cases, measure_counted(vm_pool.get(COUNTED), cases), strict=True
    ):
        ratio = result.busy[1] / result.busy[0]
        print(f"| {name} | {row[2] / row[1]:.2f} | {ratio:.2f} |", flush=True)
        record_property(name, ratio)
        assert result.misses(case, 0.0) == []
