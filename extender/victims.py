# SPDX-License-Identifier: Apache-2.0
"""Who has to go so that a pod fits one card of a node: pure.

kube-scheduler proposes victims by the node's total, which may free memory on many cards and fit on none. The answer
is the least set whose cards are enough: fewest pods, then the lowest priorities, then the least memory freed,
then the first card. A pod that is
already being deleted costs nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

from cgpu.core.model import CardState, Claim, NodeState
from cgpu.core.placement import fits, needed, takes
from cgpu.core.usage import Holding, with_holding
from extender.books import Booking
from extender.wire import Victims

TRIED_SETS: Final = 2_000  # of one card; above, victims are taken by priority and spared where possible

_Cost = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class _Plan:
    victims: tuple[Booking, ...]

    def cost(self) -> _Cost:
        living = [booking.pod.priority for booking in self.victims if not booking.pod.deleting]
        freed = sum(held.mem for booking in self.victims for held in booking.holdings.values())
        return len(living), max(living, default=-(2**63)), sum(living), freed


def least_victims(
    state: NodeState, claim: Claim, priority: int, bookings: Sequence[Booking], proposed: Victims
) -> Victims | None:
    """The victims on one node for a pod of this priority, or None when no set of them helps.

    `state` counts everything that is held; only `bookings` of lower priority may be chosen. Proposed victims without
    a share are there for another resource and stay. When the cards fit as they are, so is the whole proposal.
    """
    if fits(state, claim):
        return proposed if proposed.uids else None
    may_go = sorted(
        (booking for booking in bookings if booking.pod.priority < priority or booking.pod.deleting),
        key=lambda booking: (not booking.pod.deleting, booking.pod.priority, booking.pod.key),
    )
    plan = _plan(state, claim, may_go)
    if plan is None:
        return None
    sharing = {booking.pod.uid for booking in bookings}
    chosen = [booking.pod.uid for booking in plan.victims]
    others = [uid for uid in proposed.uids if uid not in sharing]
    return Victims((*chosen, *others), min(proposed.violations, len(chosen) + len(others)))


def _plan(state: NodeState, claim: Claim, may_go: Sequence[Booking]) -> _Plan | None:
    held = needed(claim)
    per_card = [plan for card in state.cards if (plan := _card_plan(card, held, may_go)) is not None]
    per_card.sort(key=_Plan.cost)  # stable: the first card wins among equals
    chosen = per_card[: claim.gpu_count]
    if len(chosen) == claim.gpu_count:
        plan = _Plan(tuple({booking.pod.uid: booking for each in chosen for booking in each.victims}.values()))
        if fits(without(state, plan.victims), claim):
            return plan
    return _spared(state, claim, may_go)


def _card_plan(card: CardState, held: Holding, may_go: Sequence[Booking]) -> _Plan | None:
    """The cheapest set on one card."""
    here = [booking for booking in may_go if card.card.uuid in booking.holdings]
    if not takes(_freed(card, here), held):
        return None
    tried = 0
    for size in range(len(here) + 1):
        plans = []
        for chosen in combinations(here, size):
            tried += 1
            if takes(_freed(card, chosen), held):
                plans.append(_Plan(chosen))
            if tried > TRIED_SETS:
                break
        if plans:
            return min(plans, key=_Plan.cost)
        if tried > TRIED_SETS:
            break
    kept = tuple(_sparing(here, lambda left: takes(_freed(card, left), held)))
    return _Plan(kept)


def _spared(state: NodeState, claim: Claim, may_go: Sequence[Booking]) -> _Plan | None:
    """For pods whose containers need several cards: all may go, then as many as possible are spared."""
    if not fits(without(state, may_go), claim):
        return None
    return _Plan(tuple(_sparing(may_go, lambda left: fits(without(state, left), claim))))


def _sparing(victims: Sequence[Booking], enough: Callable[[Sequence[Booking]], bool]) -> Iterator[Booking]:
    """Spare the most important first."""
    left = list(victims)
    for booking in reversed(victims):
        without = [other for other in left if other is not booking]
        if enough(without):
            left = without
    yield from left


def without(state: NodeState, victims: Iterable[Booking]) -> NodeState:
    """The state once these pods have left."""
    gone = tuple(victims)
    return replace(state, cards=tuple(_freed(card, gone) for card in state.cards))


def _freed(card: CardState, victims: Iterable[Booking]) -> CardState:
    for booking in victims:
        held = booking.holdings.get(card.card.uuid)
        card = with_holding(card, held, -1) if held is not None else card
    return card
