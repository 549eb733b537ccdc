# SPDX-License-Identifier: Apache-2.0
"""Cards that are kept for pods on whose behalf others were evicted: pure.

kube-scheduler counts a nominated pod against its node's total only, so the room that its victims leave on one card
could go to any later pod that fits the total. Here it is kept card by card, as kube-scheduler keeps the total:
from pods of lower priority, and from those of the same priority that are not nominated themselves.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterable
from math import inf
from typing import Final

from cgpu.core.errors import ClaimError
from cgpu.core.model import Pod
from cgpu.core.placement import place
from cgpu.core.pods import claim_of
from cgpu.core.usage import holdings_of
from extender.books import Books, Hold
from extender.victims import without

REMEMBERED: Final = 1_000
LAG_SECONDS: Final = 5.0  # what kube-scheduler's view may be behind ours, or ours behind its


class Nominations:
    """What preemption promised; `now` in monotonic seconds."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._victims: OrderedDict[tuple[str, str], tuple[set[str], float]] = OrderedDict()

    def chose(self, uid: str, node: str, victims: Iterable[str], now: float) -> None:
        """These pods (UIDs) of the node were named as victims for pod `uid`; only those with a share matter here."""
        sharing = {booking.pod.uid for booking in self._books.bookings(node)}
        self._victims[uid, node] = (sharing.intersection(victims), now)
        self._victims.move_to_end((uid, node))
        if len(self._victims) > REMEMBERED:
            self._victims.popitem(last=False)

    def victims_left(self, uid: str, node: str, now: float) -> bool:
        """Whether all victims that were named for the pod a moment ago are gone: kube-scheduler is about to see it."""
        victims, when = self._victims.get((uid, node), (set[str](), -inf))
        there = {booking.pod.uid for booking in self._books.bookings(node)}
        return bool(victims) and now - when <= LAG_SECONDS and victims.isdisjoint(there)

    def nodes(self) -> Collection[str]:
        """Nodes that somebody is nominated for."""
        return self._books.nominated.keys()

    def kept_from(self, pod: Pod, node: str, held: Iterable[Hold]) -> list[Hold]:
        """The cards of one node that nominated pods are waiting for, seen by another pod; `held`: what else is kept."""
        kept: list[Hold] = []
        others = self._books.nominated.get(node, {}).values()
        for other in sorted(others, key=lambda item: (-item.priority, item.key)):
            if other.uid == pod.uid or not _goes_before(other, pod) or self._books.has_place(other.uid):
                continue
            hold = self._promise(other, node, [*held, *kept])
            if hold is not None:
                kept.append(hold)
        return kept

    def _promise(self, pod: Pod, node: str, held: list[Hold]) -> Hold | None:
        """Where the pod will go once its victims have left."""
        victims, _ = self._victims.get((pod.uid, node), (set[str](), 0.0))
        leaving = [
            booking
            for booking in self._books.bookings(node)
            if booking.pod.uid in victims or (booking.pod.deleting and booking.pod.priority < pod.priority)
        ]
        try:
            claim = claim_of(pod)
        except ClaimError:
            return None
        if claim is None:
            return None
        shares = place(without(self._books.state_for(node, pod.uid, held), leaving), claim)
        return Hold(pod.uid, node, holdings_of(claim, shares), inf) if shares is not None else None


def _goes_before(nominated: Pod, pod: Pod) -> bool:
    if nominated.priority != pod.priority:
        return nominated.priority > pod.priority
    return not pod.nominated  # two of the same rank that are both nominated never wait for each other
