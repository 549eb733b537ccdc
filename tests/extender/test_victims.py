# SPDX-License-Identifier: Apache-2.0
"""Who has to go: the least set on one card, never a pod of the same priority."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgpu.core.model import CardState, NodeState, Pod, Share
from cgpu.core.placement import fits
from cgpu.core.usage import Holding, card_states
from extender.books import Booking
from extender.victims import least_victims
from extender.wire import Victims
from tests.builders import make_card, make_claim


def _booking(name: str, priority: int = 0, deleting: bool = False, **mem: int) -> Booking:
    """`c0=4`: holds 4 GiB of card 0."""
    pod = Pod(uid=name, namespace="d", name=name, node="n", priority=priority, deleting=deleting)
    cards = {f"GPU-{key[1:]}": size for key, size in mem.items()}
    return Booking(
        pod,
        "n",
        {"app": {uuid: Share(size) for uuid, size in cards.items()}},
        {uuid: Holding(size, 0, 1) for uuid, size in cards.items()},
    )


def _state(bookings: list[Booking], *units: int, max_instances: int = 20) -> NodeState:
    cards = [make_card(index, size, max_instances=max_instances) for index, size in enumerate(units)]
    return NodeState("n", card_states(cards, [booking.holdings for booking in bookings]))


A, B, C = _booking("a", c0=8), _booking("b", c0=7), _booking("c", c1=10)


@pytest.mark.parametrize(
    ("bookings", "ask", "priority", "proposed", "want"),
    [
        pytest.param([A, B, C], 15, 10, ("a",), ("c",), id="one pod of the card that needs one, not the proposed one"),
        pytest.param([A, B, C], 7, 10, ("c",), ("b",), id="the least memory among equals"),
        pytest.param([A, B, C], 8, 0, ("a",), None, id="no pod of the same priority"),
        pytest.param([A, B], 16, 10, ("a",), None, id="a card that is too small even when empty"),
        pytest.param([A], 8, 10, (), None, id="it fits as it is and nobody was proposed"),
        pytest.param(
            [A], 8, 10, ("cpu",), ("cpu",), id="the cards fit: the proposal is about another resource and stays"
        ),
        pytest.param([A, B, C], 15, 10, ("a", "cpu"), ("c", "cpu"), id="a victim without a share stays beside ours"),
        pytest.param(
            [_booking("x", 5, c0=15), _booking("y", 1, c1=8), _booking("z", 2, c1=7)],
            15,
            10,
            ("x",),
            ("x",),
            id="fewest pods before lowest priority",
        ),
        pytest.param(
            [_booking("x", 5, c0=15), _booking("y", 1, c1=15)], 15, 10, ("x",), ("y",), id="then the lowest priority"
        ),
        pytest.param(
            [_booking("x", 5, c0=15), _booking("y", 9, deleting=True, c1=15)],
            15,
            6,
            ("x",),
            ("y",),
            id="a pod that is going anyway costs nothing",
        ),
    ],
)
def test_the_least_victims(
    bookings: list[Booking], ask: int, priority: int, proposed: tuple[str, ...], want: tuple[str, ...] | None
) -> None:
    found = least_victims(_state(bookings, 15, 15), make_claim(ask), priority, bookings, Victims(proposed, 0))
    assert (found.uids if found else None) == want


def test_with_gpu_count_two_cards_are_freed() -> None:
    bookings = [_booking("a", c0=15), _booking("b", c1=15), _booking("c", 9, c2=15)]
    claim = make_claim(20, gpu_count=2)
    found = least_victims(_state(bookings, 15, 15, 15), claim, 10, bookings, Victims(("c",), 0))
    assert found == Victims(("a", "b"), 0)


def test_containers_that_need_two_cards_take_victims_on_both() -> None:
    bookings = [_booking("a", c0=15), _booking("b", c1=15)]
    found = least_victims(_state(bookings, 15, 15), make_claim(10, 10), 10, bookings, Victims(("a",), 0))
    assert found is not None
    assert sorted(found.uids) == ["a", "b"]


@pytest.mark.parametrize(
    ("proposed", "want"),
    [
        pytest.param(Victims(("a", "b"), 2), 1, id="never more violations than victims"),
        pytest.param(Victims(("a",), 0), 0, id="none where none was"),
    ],
)
def test_pdb_violations_stay_sane(proposed: Victims, want: int) -> None:
    bookings = [_booking("a", c0=15), _booking("b", c1=5)]
    found = least_victims(_state(bookings, 15, 15), make_claim(11), 10, bookings, proposed)
    assert found is not None
    assert found.uids == ("b",)
    assert found.violations == want


def test_a_card_full_of_small_pods_is_answered_without_trying_every_set() -> None:
    bookings = [_booking(f"p{index:02}", index % 3, c0=1) for index in range(40)]
    state = _state(bookings, 40, max_instances=40)
    found = least_victims(state, make_claim(20), 10, bookings, Victims(("p00",), 0))
    assert found is not None
    assert len(found.uids) == 20


@given(
    sizes=st.lists(st.tuples(st.integers(1, 8), st.integers(0, 3), st.integers(0, 1)), max_size=7),
    ask=st.integers(1, 16),
)
def test_victims_are_enough_and_no_smaller_set_is(sizes: list[tuple[int, int, int]], ask: int) -> None:
    bookings = []
    left = [15, 15]
    for index, (mem, priority, card) in enumerate(sizes):
        if left[card] >= mem:
            left[card] -= mem
            bookings.append(_booking(f"p{index}", priority, **{f"c{card}": mem}))
    state, claim, priority = _state(bookings, 15, 15), make_claim(ask), 2
    found = least_victims(state, claim, priority, bookings, Victims(("other",), 0))

    may_go = [booking for booking in bookings if booking.pod.priority < priority]
    sizes_that_help = [
        count
        for count in range(len(may_go) + 1)
        for gone in combinations(may_go, count)
        if fits(_state([booking for booking in bookings if booking not in gone], 15, 15), claim)
    ]
    if found is None:
        assert not sizes_that_help
        return
    ours = [uid for uid in found.uids if uid != "other"]
    assert len(ours) == min(sizes_that_help)
    assert set(ours) <= {booking.pod.uid for booking in may_go}
    kept = [booking for booking in bookings if booking.pod.uid not in ours]
    assert fits(_state(kept, 15, 15), claim)


def test_states_are_untouched() -> None:
    state = _state([A], 15)
    least_victims(state, make_claim(15), 10, [A], Victims(("a",), 0))
    assert state.cards == (CardState(make_card(0, 15), 8, 0, 1),)
