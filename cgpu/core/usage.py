# SPDX-License-Identifier: Apache-2.0
"""Who holds what: pods folded into the state of a node's cards."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cgpu.core.model import Allocation, Card, CardState, Claim, ContainerKind
from cgpu.core.pods import largest_phase


@dataclass(frozen=True, slots=True)
class Holding:
    """What one pod holds of one card."""

    mem: int
    core: int
    instances: int


def holdings_of(claim: Claim, allocation: Allocation) -> dict[str, Holding]:
    """card UUID → what the pod holds there: its largest phase in each quantity, counted apart.

    Containers of the allocation that the claim does not know count as app containers, so that a record can
    never hide memory.
    """
    kinds = {ask.name: ask.kind for ask in claim.asks}
    known = [name for name in kinds if name in allocation]
    order = known + sorted(name for name in allocation if name not in kinds)
    cards = {uuid for shares in allocation.values() for uuid in shares}
    return {uuid: _holding(uuid, order, kinds, allocation) for uuid in sorted(cards)}


def _holding(uuid: str, order: Iterable[str], kinds: Mapping[str, ContainerKind], allocation: Allocation) -> Holding:
    steps = [(kinds.get(name, ContainerKind.APP), allocation[name][uuid]) for name in order if uuid in allocation[name]]
    return Holding(
        mem=largest_phase((kind, share.mem) for kind, share in steps),
        core=largest_phase((kind, share.core) for kind, share in steps),
        instances=largest_phase((kind, 1) for kind, _ in steps),
    )


def card_states(
    cards: Iterable[Card], holdings: Iterable[Mapping[str, Holding]], cordoned: Iterable[str] = ()
) -> tuple[CardState, ...]:
    """The node's cards in index order with the sum of all holdings; the order of `holdings` does not matter.

    Holdings on cards that the node does not have are left out: `unknown_cards` names them.
    """
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for holding in holdings:
        for uuid, held in holding.items():
            total = sums[uuid]
            total[0] += held.mem
            total[1] += held.core
            total[2] += held.instances
    shut = frozenset(cordoned)
    return tuple(
        _state(card, sums.get(card.uuid, [0, 0, 0]), card.uuid in shut)
        for card in sorted(cards, key=lambda card: card.index)
    )


def _state(card: Card, held: list[int], cordoned: bool) -> CardState:
    mem, core, instances = held
    return CardState(card, mem, core, instances, cordoned)


def unknown_cards(cards: Iterable[Card], holdings: Iterable[Mapping[str, Holding]]) -> frozenset[str]:
    """UUIDs that are held but that the node does not have: a card was removed, or a record is wrong."""
    return frozenset(uuid for holding in holdings for uuid in holding) - {card.uuid for card in cards}


def with_holding(state: CardState, held: Holding, sign: int = 1) -> CardState:
    """The state after one more holding (`sign=1`) or one less (`sign=-1`)."""
    return CardState(
        state.card,
        state.mem + sign * held.mem,
        state.core + sign * held.core,
        state.instances + sign * held.instances,
        state.cordoned,
    )
