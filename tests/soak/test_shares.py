# SPDX-License-Identifier: Apache-2.0
"""Each instance gets its share of the GPU in the virtual machine, by the engine's own counter of busy time.

Policies, weights, numbers of instances, kernel lengths and ways to launch meet pairwise; what a policy promises beyond
shares has rows of its own. All of it is measured by counted time, with the contract's own tolerance.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import pytest

from tests.kmod.pairwise import Row, pairwise
from tests.kmod.shares import (
    COUNTED,
    FAIR,
    FIXED,
    NATIVE,
    OF_WALL_TIME,
    PREEMPTIVE,
    SOFT,
    WEIGHTED,
    Case,
    Load,
    Measured,
    measure_counted,
)
from tests.vm.fixtures import Pool

LENGTHS: Final = (100, 1000, 5000, 20_000, 50_000, 200_000)
LAUNCHES: Final = {"queued": ("queued", 1), "waited": ("waited", 1), "graph": ("graph", 1), "streams": ("queued", 4)}
FACTORS: Final = {
    "policy": range(NATIVE),
    "weights": ((1, 1), (1, 2), (2, 1), (8, 4), (2, 18)),
    "instances": (2, 3),
    "length": LENGTHS,
    "other": (100, 1000, 20_000),
    "launch": tuple(LAUNCHES)[:3],
    "other_launch": tuple(LAUNCHES),
}
FURTHER: Final = (Load((5000,)),)
SLICE_NS: Final = 2_000_000
# launch, switch of the GPU, and the simulated engine noticing a doorbell and its program the end
HANDLING_MS: Final = 1.0
MS: Final = Load((1000,))
FIVE: Final = Load((5000,))
REST: Final = Load()


def fits(row: Row) -> bool:
    """Weights are slices of a round, of which there are twenty; who waits for short kernels leaves the GPU mostly idle."""
    waited = [
        row[length] for length, launch in (("length", "launch"), ("other", "other_launch")) if row[launch] == "waited"
    ]
    return sum(row["weights"]) + row["instances"] - 2 <= 20 and min(waited, default=5000) >= 5000


def long_enough(case: Case) -> Case:
    """The same, as long as is affordable here; what is counted in wall time has few turns, and much of it is skipped."""
    least, most = (10.0, 20.0) if case.policy in OF_WALL_TIME else (1.2, 4.0)
    return replace(case, seconds=case.lasting(least, most))


def case_of(row: Row) -> Case:
    """A row as loads side by side: two of them as it says, the further ones short."""
    first, other = row["weights"]
    mode, streams = LAUNCHES[row["other_launch"]]
    two = (Load((row["length"],), row["launch"], first), Load((row["other"],), mode, other, streams))
    return long_enough(Case(row["policy"], two + FURTHER[: row["instances"] - 2]))


TABLE: Final = [case_of(row) for row in pairwise(FACTORS, fits)]
TWENTY: Final = (*(Load((length,)) for length in (1000, 5000, 20_000, 100) for _ in range(5)),)
MANY: Final = {
    "twenty, policy 1": Case(PREEMPTIVE, TWENTY, 4),
    "twenty, policy 2": Case(WEIGHTED, TWENTY, 4),
    "twenty, policy 0": Case(FAIR, TWENTY, 4),
}
OTHERS: Final = {
    "policy 0, alone": Case(FAIR, (MS,), 8),
    "policy 0, alone, five slices": Case(FAIR, (MS,), 4, max_inst=5),
    "policy 3, alone, weight 3": Case(FIXED, (Load((1000,), weight=3),), 4),
    "policy 0 beside an idle peer": Case(FAIR, (MS, REST), 8),
    "policy 3 beside an idle peer": Case(FIXED, (Load((1000,), weight=2), Load(weight=8)), 6),
    "high priority, policy 1": Case(PREEMPTIVE, (Load((1000,), highprio=True), FIVE, FIVE), 3),
    "high priority, policy 1, ratio 30": Case(PREEMPTIVE, (Load((1000,), highprio=True), FIVE), 3, prio_ratio=30),
    "two of high priority, policy 2": Case(
        WEIGHTED, (Load((1000,), weight=2, highprio=True), Load((5000,), highprio=True), FIVE), 4
    ),
    "from policy 1 to 2": Case(WEIGHTED, (Load((1000,), weight=3), FIVE), 2, before=(PREEMPTIVE, (3, 1))),
    "from weights 8:4 to 2:18": Case(
        WEIGHTED, (Load((1000,), weight=2), Load((5000,), weight=18)), 3, before=(WEIGHTED, (8, 4))
    ),
    "from policy 3 to 4": Case(SOFT, (MS, FIVE), 2, before=(FIXED, (1, 1))),
    "from policy 5 to 1": Case(PREEMPTIVE, (Load((100,)), FIVE), 2, before=(NATIVE, (1, 1))),
}
BARE: Final = {"queued": (MS,), "waited": (Load((1000,), "waited"),)}
ALONE: Final = {name: Case(PREEMPTIVE, loads, 1.5) for name, loads in BARE.items()}
BESIDE: Final = {
    f"{name} beside one that {rest}": Case(PREEMPTIVE, (*loads, rest), 1.5)
    for name, loads in BARE.items()
    for rest in (REST, Load(highprio=True))
}
HANDS: Final = [
    Case(WEIGHTED, (Load((100,), weight=first), Load((100,), weight=second)), 2) for first, second in ((2, 1), (8, 4))
]
PEER: Final = Case(WEIGHTED, (Load((1000,), weight=2), Load(weight=4)), 2)
NATIVE_CASE: Final = Case(NATIVE, (MS, FIVE), 1)
WAKING: Final = {
    f"{load}": Case(PREEMPTIVE, (load, Load(highprio=True)), 1.5, wake=(1, 15, 1000))
    for load in (FIVE, Load((20_000,)), Load((1000,), "graph"), Load((100,), streams=4))
}
# what is measured in one go
GROUPS: Final[Sequence[Sequence[Case]]] = (
    *([case for case in TABLE if case.policy == policy] for policy in range(NATIVE)),
    [*OTHERS.values()],
    [*MANY.values()],
    [*ALONE.values(), *BESIDE.values()],
    [*HANDS, PEER, NATIVE_CASE],
    [*WAKING.values()],
)
Results = Callable[[Case], Measured]


@pytest.fixture(scope="module")
def measured(vm_pool: Pool) -> Iterator[Results]:
    """What a case gave, measured with its group when first wanted; all in one machine.

    The machine goes at the end: its time runs on while nobody wants it.
    """
    found: dict[int, Measured] = {}

    def of(case: Case) -> Measured:
        if id(case) not in found:
            group = next(group for group in GROUPS if any(one is case for one in group))
            found.update(zip(map(id, group), measure_counted(vm_pool.get(COUNTED), group), strict=True))
        return found[id(case)]

    yield of
    vm_pool.discard()


def show(case: Case, result: Measured) -> None:
    """What a failed test prints."""
    told = [said / busy - 1 if busy else 0.0 for said, busy in zip(result.told, result.busy, strict=True)]
    print(f"{case}, {case.seconds:g} s: parts {', '.join(f'{part:.4f}' for part in result.parts(case))}")
    print(f"used {result.used:.4f}, turns {result.turns}, told off by {', '.join(f'{off:+.4f}' for off in told)}")


@pytest.mark.timeout(36_000)
@pytest.mark.parametrize("case", [pytest.param(case, id=str(case)) for case in TABLE])
def test_each_gets_its_share(measured: Results, case: Case) -> None:
    result = measured(case)
    show(case, result)
    assert result.free == 20 - sum(load.weight for load in case.loads)
    assert not result.misses(case, 0.0)


@pytest.mark.timeout(36_000)
@pytest.mark.parametrize("name", [*OTHERS, *MANY])
def test_what_a_policy_promises_beyond_the_table(measured: Results, name: str) -> None:
    case = (OTHERS | MANY)[name]
    show(case, measured(case))
    assert not measured(case).misses(case, 0.0)


@pytest.mark.timeout(36_000)
@pytest.mark.parametrize("name", BESIDE)
def test_an_idle_instance_costs_its_neighbour_nothing(measured: Results, name: str) -> None:
    alone, beside = measured(ALONE[name.split(maxsplit=1)[0]]), measured(BESIDE[name])
    print(f"used {alone.used:.4f} alone, {beside.used:.4f} beside one that sleeps")
    assert beside.used / alone.used >= 0.99


@pytest.mark.timeout(36_000)
def test_an_existing_peer_consumes_its_slices_under_policy_2(measured: Results) -> None:
    result = measured(PEER)
    show(PEER, result)
    assert result.used == pytest.approx(1 / 3, rel=PEER.tolerance(1 / 3, PEER.seconds))


@pytest.mark.timeout(36_000)
def test_policy_5_leaves_it_to_the_driver(measured: Results) -> None:
    result = measured(NATIVE_CASE)
    show(NATIVE_CASE, result)
    assert min(result.busy) > 0
    assert result.used > 0.99
    assert result.turns == 0


@pytest.mark.timeout(36_000)
def test_weights_of_2_and_1_change_hands_four_times_as_often_as_8_and_4(measured: Results) -> None:
    """In as much time of the GPU's work: what passes between two turns is not theirs, and there are more of them."""
    often, seldom = (measured(case) for case in HANDS)
    print(f"{often.turns} and {seldom.turns} turns, used {often.used:.4f} and {seldom.used:.4f}")
    assert [not result.misses(case, 0.0) for case, result in zip(HANDS, (often, seldom), strict=True)] == [True, True]
    assert often.turns / often.used == pytest.approx(4 * seldom.turns / seldom.used, rel=0.1)


@pytest.mark.timeout(36_000)
@pytest.mark.parametrize("name", WAKING)
def test_a_waking_instance_of_high_priority_waits_for_a_slice_and_a_kernel(measured: Results, name: str) -> None:
    case = WAKING[name]
    waits = [wait / 1e6 for wait in measured(case).waits]
    print(f"a kernel of 1 ms after a sleep took ms: {sorted(waits)}")
    assert max(waits) <= SLICE_NS / 1e6 + 1e3 * case.longest + 1 + HANDLING_MS
