# SPDX-License-Identifier: Apache-2.0
"""Where a claim goes: pure functions over a snapshot of a node.

`place` answers with an allocation or with the reasons; whether it answers with an allocation does not depend
on the policy. A policy is a row of `POLICIES`: two keys, each a total order together with the tie-breaks
that this module adds (card index, node name).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cgpu.core.model import Ask, CardState, Claim, ContainerKind, NodeState, Share
from cgpu.core.names import CORE_PER_CARD, Placement
from cgpu.core.pods import largest_phase
from cgpu.core.usage import Holding, with_holding

Shares = dict[str, dict[str, Share]]


@dataclass(frozen=True, slots=True)
class Policy:
    """`card_key(state, needed GiB)`: the smallest fitting card is taken; `node_key(node, cards after)`: the smallest node wins."""

    card_key: Callable[[CardState, int], tuple[int, ...]]
    node_key: Callable[[NodeState, Sequence[CardState]], tuple[int, ...]]


def _used_permyriad(node: NodeState, added: int) -> int:
    return (node.used + added) * 10_000 // max(1, node.total)


def _left(after: Sequence[CardState]) -> int:
    return sum(state.free for state in after)


def _added(node: NodeState, after: Sequence[CardState]) -> int:
    before = {state.card.uuid: state.mem for state in node.cards}
    return sum(state.mem - before[state.card.uuid] for state in after)


POLICIES: Final[Mapping[Placement, Policy]] = {
    # Fill what is fullest: the card with the least room that still fits; the node that is used most afterwards,
    # then the one whose chosen cards keep the least.
    Placement.BINPACK: Policy(
        card_key=lambda state, need: (state.free - need,),
        node_key=lambda node, after: (-_used_permyriad(node, _added(node, after)), _left(after)),
    ),
    # Keep tenants apart: the card with the fewest instances, then the most room; the node used least, then the
    # one whose chosen cards keep the most.
    Placement.SPREAD: Policy(
        card_key=lambda state, need: (state.mem * 10_000 // max(1, state.card.units), need - state.free),
        node_key=lambda node, after: (_used_permyriad(node, _added(node, after)), -_left(after)),
    ),
}


def policy_of(placement: Placement) -> Policy:
    """The row that decides; `fragmentation` decides like binpack where no arrival statistics are at hand."""
    return POLICIES.get(placement, POLICIES[Placement.BINPACK])


def place(node: NodeState, claim: Claim) -> Shares | None:
    """The claim's shares on this node by the node's own policy, or None when it does not fit.

    One card set for all containers where one fits, chosen by the policy; otherwise the containers are split,
    each wholly on its card (only with gpu-count 1), plain init containers following the first app container.
    """
    if not may_ever(node, claim):
        return None
    policy = policy_of(node.placement)
    together = _place_together(node, claim, policy)
    if together is not None:
        return together
    return _place_split(node, claim, policy) if claim.gpu_count == 1 and len(claim.asks) > 1 else None


def fits(node: NodeState, claim: Claim) -> bool:
    """Whether `place` would answer with shares."""
    return place(node, claim) is not None


def node_rank(node: NodeState, shares: Mapping[str, Mapping[str, Share]], claim: Claim) -> tuple[tuple[int, ...], str]:
    """Sort key of a node that would take the claim with these shares: the smallest is the best; ends in the name."""
    touched = {uuid for cards in shares.values() for uuid in cards}
    after = [
        with_holding(state, _pod_holding(claim, shares, state.card.uuid))
        for state in node.cards
        if state.card.uuid in touched
    ]
    return policy_of(node.placement).node_key(node, after), node.name


def may_ever(node: NodeState, claim: Claim) -> bool:
    """Whether the claim's resources match the node's mode: in core_mem every container asks for both."""
    return all(bool(ask.core) == node.core_mem for ask in claim.asks)


def takes(state: CardState, held: Holding) -> bool:
    """Whether the card can take this much more."""
    return (
        state.usable
        and held.mem <= state.free
        and state.instances + held.instances <= state.card.max_instances
        and state.core + held.core <= CORE_PER_CARD
    )


def needed(claim: Claim) -> Holding:
    """What each of the pod's cards must hold when all containers share the same card set."""
    return _held_by(claim, claim.asks)


def _held_by(claim: Claim, asks: Sequence[Ask]) -> Holding:
    shares = [(ask.kind, claim.per_card(ask)) for ask in asks]
    return Holding(
        mem=largest_phase((kind, share.mem) for kind, share in shares),
        core=largest_phase((kind, share.core) for kind, share in shares),
        instances=largest_phase((kind, 1) for kind, _ in shares),
    )


def _pod_holding(claim: Claim, shares: Mapping[str, Mapping[str, Share]], uuid: str) -> Holding:
    return _held_by(claim, [ask for ask in claim.asks if uuid in shares.get(ask.name, ())])


def _place_together(node: NodeState, claim: Claim, policy: Policy) -> Shares | None:
    held = needed(claim)
    ranked = _ranked((state for state in node.cards if takes(state, held)), held.mem, policy)
    chosen = ranked[: claim.gpu_count]
    if len(chosen) < claim.gpu_count:
        return None
    chosen.sort(key=lambda state: state.card.index)
    return {ask.name: {state.card.uuid: claim.per_card(ask) for state in chosen} for ask in claim.asks}


def _ranked(states: Iterator[CardState], need: int, policy: Policy) -> list[CardState]:
    return sorted(states, key=lambda state: (policy.card_key(state, need), state.card.index))


def _place_split(node: NodeState, claim: Claim, policy: Policy) -> Shares | None:
    """First complete assignment of container groups to cards, in policy order, by exhaustive search.

    Every set of asks that a card can hold is downward closed (a subset holds less), so a branch is cut as soon as
    one card overflows; cards in equal state are tried once.
    """
    groups = _groups(claim)
    cards = tuple(state for state in node.cards if state.usable)
    assigned: list[list[Ask]] = [[] for _ in cards]

    def search(depth: int) -> bool:
        if depth == len(groups):
            return True
        for slot in _slots(groups[depth]):
            assigned[slot].extend(groups[depth])
            if takes(cards[slot], _held_by(claim, _in_order(claim, assigned[slot]))) and search(depth + 1):
                return True
            del assigned[slot][len(assigned[slot]) - len(groups[depth]) :]
        return False

    def _slots(group: Sequence[Ask]) -> Iterator[int]:
        tried: set[tuple[object, ...]] = set()
        need = _held_by(claim, group).mem
        order = sorted(range(len(cards)), key=lambda i: (not assigned[i], policy.card_key(cards[i], need), i))
        for slot in order:
            state = cards[slot]
            alike = (state.free, state.core, state.instances, state.card.max_instances, tuple(assigned[slot]))
            if alike not in tried:
                tried.add(alike)
                yield slot

    if not search(0):
        return None
    where = {ask.name: cards[slot].card.uuid for slot, asks in enumerate(assigned) for ask in asks}
    return {ask.name: {where[ask.name]: claim.per_card(ask)} for ask in claim.asks}


def _groups(claim: Claim) -> list[tuple[Ask, ...]]:
    """Asks that must share a card: the plain init containers and the first app container (else the first sidecar)."""
    inits = [ask for ask in claim.asks if ask.kind is ContainerKind.INIT]
    others = [ask for ask in claim.asks if ask.kind is not ContainerKind.INIT]
    lead = next((ask for ask in others if ask.kind is ContainerKind.APP), others[0] if others else None)
    first = (*inits, *([lead] if lead else []))
    return [group for group in (first, *((ask,) for ask in others if ask is not lead)) if group]


def _in_order(claim: Claim, asks: Sequence[Ask]) -> list[Ask]:
    return [ask for ask in claim.asks if ask in asks]
