# SPDX-License-Identifier: Apache-2.0
from hypothesis import given
from hypothesis import strategies as st

from cgpu.core.model import CardState, Share
from cgpu.core.usage import Holding, card_states, holdings_of, unknown_cards, with_holding
from tests.builders import make_card, make_claim


def test_a_pod_holds_its_largest_phase_on_each_card() -> None:
    claim = make_claim(3, 2, init=[8], sidecars=[2])
    on = {name: {"GPU-0": Share(size)} for name, size in (("init0", 8), ("side0", 2), ("app0", 3))}

    assert holdings_of(claim, {**on, "app1": {"GPU-1": Share(2)}}) == {
        "GPU-0": Holding(mem=8, core=0, instances=2),
        "GPU-1": Holding(mem=2, core=0, instances=1),
    }


def test_a_container_the_claim_does_not_know_still_holds() -> None:
    assert holdings_of(make_claim(3), {"app0": {"GPU-0": Share(3)}, "ghost": {"GPU-0": Share(4, 20)}}) == {
        "GPU-0": Holding(mem=7, core=20, instances=2)
    }


def test_cards_are_summed_in_index_order() -> None:
    cards = [make_card(1, 11), make_card(0)]
    held = [{"GPU-1": Holding(2, 5, 1)}, {"GPU-1": Holding(3, 10, 2), "GPU-0": Holding(1, 0, 1)}]

    assert card_states(cards, held, cordoned=["GPU-0"]) == (
        CardState(make_card(0), 1, 0, 1, cordoned=True),
        CardState(make_card(1, 11), 5, 15, 3),
    )


def test_a_card_that_is_gone_is_named() -> None:
    held = [{"GPU-7": Holding(2, 0, 1)}, {"GPU-0": Holding(2, 0, 1)}]

    assert unknown_cards([make_card(0)], held) == {"GPU-7"}
    assert card_states([make_card(0)], held)[0].mem == 2


@given(st.integers(0, 20), st.integers(0, 100), st.integers(0, 5))
def test_adding_and_taking_back_changes_nothing(mem: int, core: int, instances: int) -> None:
    state = CardState(make_card(0), 3, 5, 1)
    held = Holding(mem, core, instances)

    assert state == with_holding(with_holding(state, held), held, -1)


def test_free_is_never_negative() -> None:
    assert CardState(make_card(0, 15), mem=20).free == 0
