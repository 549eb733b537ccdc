# SPDX-License-Identifier: Apache-2.0
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgpu.core.model import Ask, Claim, ContainerKind, NodeState, Share
from cgpu.core.names import Placement
from cgpu.core.placement import fits, node_rank, place, takes
from cgpu.core.pods import largest_phase
from cgpu.core.usage import Holding, card_states, holdings_of
from tests.builders import make_card, make_claim, make_node

SIZES = st.integers(1, 9)
CLAIMS = st.one_of(
    st.builds(
        lambda app, init, side: make_claim(*app, init=init, sidecars=side),
        st.lists(SIZES, min_size=1, max_size=3),
        st.lists(SIZES, max_size=1),
        st.lists(SIZES, max_size=1),
    ),
    st.builds(lambda size, count: make_claim(size * count, gpu_count=count), SIZES, st.integers(2, 3)),
    st.builds(lambda size: make_claim(init=[size]), SIZES),
)
NODES = st.builds(
    lambda free, placement: make_node(*free, units=16, placement=placement),
    st.lists(st.integers(0, 16), max_size=4),
    st.sampled_from(list(Placement)),
)


def _holds(node: NodeState, claim: Claim, where: dict[str, set[int]]) -> bool:
    """Whether containers on these card positions overflow nothing, counted from the definition."""
    for slot, state in enumerate(node.cards):
        here = [ask for ask in claim.asks if slot in where[ask.name]]
        mem = largest_phase((ask.kind, claim.per_card(ask).mem) for ask in here)
        instances = largest_phase((ask.kind, 1) for ask in here)
        if here and not takes(state, Holding(mem, 0, instances)):
            return False
    return True


def _follows_the_lead(claim: Claim, where: dict[str, set[int]]) -> bool:
    others = [ask for ask in claim.asks if ask.kind is not ContainerKind.INIT]
    lead = next((ask for ask in others if ask.kind is ContainerKind.APP), others[0] if others else claim.asks[0])
    return all(where[ask.name] == where[lead.name] for ask in claim.asks if ask.kind is ContainerKind.INIT)


def exists(node: NodeState, claim: Claim) -> bool:
    """Brute force over every assignment: the definition of fitting."""
    slots = range(len(node.cards))
    if claim.gpu_count > 1:
        return any(
            _holds(node, claim, {ask.name: set(chosen) for ask in claim.asks})
            for chosen in combinations(slots, claim.gpu_count)
        )

    def walk(asks: tuple[Ask, ...], where: dict[str, set[int]]) -> bool:
        if not asks:
            return _follows_the_lead(claim, where) and _holds(node, claim, where)
        return any(walk(asks[1:], {**where, asks[0].name: {slot}}) for slot in slots)

    return walk(claim.asks, {})


@given(NODES, CLAIMS)
def test_place_succeeds_exactly_when_some_assignment_holds(node: NodeState, claim: Claim) -> None:
    assert exists(node, claim) == fits(node, claim) == (place(node, claim) is not None)


@given(NODES, CLAIMS)
def test_nothing_is_ever_placed_over_a_card(node: NodeState, claim: Claim) -> None:
    shares = place(node, claim)
    if shares is None:
        return
    position = {state.card.uuid: slot for slot, state in enumerate(node.cards)}
    where = {name: {position[uuid] for uuid in cards} for name, cards in shares.items()}

    assert _holds(node, claim, where)
    assert _follows_the_lead(claim, where)
    for ask in claim.asks:
        assert sum(share.mem for share in shares[ask.name].values()) == ask.mem
        assert len(shares[ask.name]) == claim.gpu_count


@given(NODES, CLAIMS)
def test_the_same_snapshot_gives_the_same_answer(node: NodeState, claim: Claim) -> None:
    assert place(node, claim) == place(node, claim)


@given(NODES, CLAIMS)
def test_whether_it_fits_does_not_depend_on_the_policy(node: NodeState, claim: Claim) -> None:
    answers = {fits(NodeState(node.name, node.cards, placement), claim) for placement in Placement}

    assert len(answers) == 1


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.permutations(range(12)))
def test_books_never_pass_a_card_and_their_order_does_not_matter(sizes: list[int], order: list[int]) -> None:
    cards = [make_card(i, 14) for i in range(3)]
    holdings = []
    for size in sizes:
        claim = make_claim(size)
        shares = place(NodeState("n", card_states(cards, holdings)), claim)
        if shares is not None:
            holdings.append(holdings_of(claim, shares))
    shuffled = [holdings[i] for i in order if i < len(holdings)]

    states = card_states(cards, holdings)
    assert all(state.mem <= state.card.units for state in states)
    assert states == card_states(cards, shuffled)


@pytest.mark.parametrize(
    ("node", "claim", "want"),
    [
        pytest.param(make_node(12207, 8138, 4069, 16276), make_claim(8138), "GPU-1", id="the tightest card that fits"),
        pytest.param(make_node(0, 8138), make_claim(8138), "GPU-1", id="the only one left"),
        pytest.param(make_node(11, 24), make_claim(20), "GPU-1", id="cards of two sizes"),
        pytest.param(make_node(15, 15), make_claim(6), "GPU-0", id="equal cards go by index"),
        pytest.param(
            make_node(9, 15, units=15, placement=Placement.SPREAD),
            make_claim(6),
            "GPU-1",
            id="spread takes the emptier",
        ),
        pytest.param(
            make_node(10, 20, units=[10, 20], placement=Placement.SPREAD),
            make_claim(1),
            "GPU-1",
            id="spread: more room",
        ),
    ],
)
def test_one_container_goes_to(node: NodeState, claim: Claim, want: str) -> None:
    assert place(node, claim) == {"app0": {want: Share(claim.asks[0].mem)}}


@pytest.mark.parametrize(
    ("node", "claim"),
    [
        pytest.param(make_node(4069, 4069), make_claim(8138), id="the total fits but no card does"),
        pytest.param(make_node(11, 24), make_claim(25), id="larger than every card"),
        pytest.param(make_node(4, 4), make_claim(8), id="fragmented"),
        pytest.param(make_node(), make_claim(1), id="no cards"),
        pytest.param(make_node(8, 2), make_claim(8, gpu_count=2), id="one of two cards is too full"),
    ],
)
def test_what_no_card_takes_is_refused(node: NodeState, claim: Claim) -> None:
    assert place(node, claim) is None


def test_containers_share_a_card_where_one_fits() -> None:
    assert place(make_node(4, 5, units=15), make_claim(2, 3)) == {
        "app0": {"GPU-1": Share(2)},
        "app1": {"GPU-1": Share(3)},
    }


def test_containers_are_split_where_none_fits() -> None:
    assert place(make_node(3, 2, units=15), make_claim(2, 3)) == {
        "app0": {"GPU-1": Share(2)},
        "app1": {"GPU-0": Share(3)},
    }


def test_init_containers_go_where_the_first_app_container_goes() -> None:
    shares = place(make_node(8, 5, units=15), make_claim(3, 5, init=[8]))

    assert shares == {"init0": {"GPU-0": Share(8)}, "app0": {"GPU-0": Share(3)}, "app1": {"GPU-0": Share(5)}}


def test_gpu_count_takes_distinct_cards() -> None:
    assert place(make_node(4, 9, 4, units=15), make_claim(8, gpu_count=2)) == {
        "app0": {"GPU-0": Share(4), "GPU-2": Share(4)}
    }


def test_a_node_in_core_mem_takes_only_pods_that_ask_for_both() -> None:
    node = make_node(15, core_mem=True)

    assert place(node, make_claim(3)) is None
    assert place(make_node(15), make_claim(3, core=20)) is None
    assert place(node, make_claim(3, core=20)) == {"app0": {"GPU-0": Share(3, 20)}}


def test_a_card_takes_its_number_of_instances() -> None:
    card = make_card(0, 100, max_instances=20)
    held = [{card.uuid: Holding(1, 0, 1)}] * 20

    assert place(NodeState("n", card_states([card], held[:19])), make_claim(1)) is not None
    assert place(NodeState("n", card_states([card], held)), make_claim(1)) is None


@pytest.mark.parametrize("placement", list(Placement))
def test_nodes_are_ranked_in_a_total_order(placement: Placement) -> None:
    claim = make_claim(3)
    nodes = [
        make_node(15, 15, name="b", placement=placement),
        make_node(9, 15, units=15, name="c", placement=placement),
        make_node(15, 15, name="a", placement=placement),
    ]
    ranked = sorted(nodes, key=lambda node: node_rank(node, place(node, claim) or {}, claim))

    want = ["a", "b", "c"] if placement is Placement.SPREAD else ["c", "a", "b"]
    assert want == [node.name for node in ranked]
