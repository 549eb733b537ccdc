# SPDX-License-Identifier: Apache-2.0
"""The extender's books, pure: nodes, who holds what on their cards, and who waits.

Fed with nodes and pods in any order; every question is answered for a given `now` (monotonic seconds). Three things
count on a card: bound pods (from their annotations), assumptions (a binding is on its way, or its outcome is not
known yet) and holds (a pod was promised a place and its bind has not come). A pod counts once.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from cgpu.core.annotations import allocation_of
from cgpu.core.errors import CgpuError, ClaimError
from cgpu.core.model import Allocation, Claim, Node, NodeState, Pod
from cgpu.core.names import (
    ANNOTATION_ALLOCATION,
    ANNOTATION_GPUSHARE,
    ANNOTATION_IDX,
    ANNOTATION_POD,
)
from cgpu.core.pods import asks_for_gpu, claim_of, holds, is_ignored
from cgpu.core.usage import Holding, card_states, holdings_of, with_holding
from extender.offers import Offer, offer_of

log: Final = logging.getLogger(__name__)

_RECORD: Final = (ANNOTATION_ALLOCATION, ANNOTATION_GPUSHARE, ANNOTATION_IDX, ANNOTATION_POD)


@dataclass(frozen=True, slots=True)
class Booking:
    """What one pod holds of one node's cards."""

    pod: Pod
    node: str
    allocation: Allocation
    holdings: Mapping[str, Holding]


@dataclass(frozen=True, slots=True)
class Hold:
    """A place that is kept for a pod until `until` (monotonic seconds)."""

    uid: str
    node: str
    holdings: Mapping[str, Holding]
    until: float


class Books:
    """See the module. `on_change(node name)` is called after anything that changes a node's state but holds."""

    def __init__(self, on_change: Callable[[str], None] = lambda _: None) -> None:
        self.on_change = on_change
        self.nodes: dict[str, Node] = {}
        self.offers: dict[str, Offer] = {}
        self.pods: dict[str, Pod] = {}  # by UID: bound pods that ask for our resources and have not ended
        self.waiting: dict[str, Pod] = {}  # by UID: pods that ask for our resources and have no node
        self.nominated: dict[str, dict[str, Pod]] = {}  # node → those of them that preemption makes room for there
        self.assumed: dict[str, Booking] = {}
        self.tampered: dict[str, str] = {}  # UID → what is wrong with the record of a bound pod
        self._uid_of: dict[str, str] = {}
        self._booked: dict[str, Booking] = {}
        self._records: dict[str, tuple[str, dict[str, str]]] = {}
        self._by_node: defaultdict[str, dict[str, Booking]] = defaultdict(dict)
        self._holds: dict[tuple[str, str], Hold] = {}
        self._states: dict[str, NodeState] = {}

    # nodes

    def set_node(self, node: Node) -> None:
        """A node was added or changed."""
        offer = offer_of(node)
        before, self.offers[node.name] = self.offers.get(node.name), offer
        self.nodes[node.name] = node
        if offer == before:
            return
        if offer.problem:
            log.warning("node %s cannot be used: %s", node.name, offer.problem)
        for pod in [pod for pod in self.pods.values() if pod.node == node.name]:
            self._book(pod)  # older records name cards by their index
        self._changed(node.name)

    def drop_node(self, name: str) -> None:
        """A node is gone; its pods stay known until they go."""
        self.nodes.pop(name, None)
        self.offers.pop(name, None)
        self._changed(name)

    # pods

    def set_pod(self, pod: Pod) -> None:
        """A pod was added or changed; the one that had its name before is gone."""
        before = self._uid_of.get(pod.key)
        if before is not None and before != pod.uid:
            self.drop_pod(before)
        if not asks_for_gpu(pod):
            return
        if not holds(pod) or is_ignored(pod):
            self.drop_pod(pod.uid)
            return
        self._uid_of[pod.key] = pod.uid
        if pod.node:
            self._wait(pod.uid, None)
            self.pods[pod.uid] = pod
            self.forget(pod.uid)
            self._book(pod)
        elif pod.uid not in self.pods:  # a node is never taken back: else this is news from before the binding
            self._wait(pod.uid, pod)

    def drop_pod(self, uid: str) -> None:
        """A pod is gone or its containers have ended."""
        pod = self.pods.pop(uid, None) or self._wait(uid, None)
        if pod is not None:
            self._uid_of.pop(pod.key, None)
        self._records.pop(uid, None)
        self.tampered.pop(uid, None)
        self.forget(uid)
        self.release(uid)
        self._unbook(uid)

    def _wait(self, uid: str, pod: Pod | None) -> Pod | None:
        """Set or end a pod's waiting; what was known of it before."""
        before = self.waiting.pop(uid, None)
        if before is not None and before.nominated:
            del self.nominated[before.nominated][uid]
            if not self.nominated[before.nominated]:
                del self.nominated[before.nominated]
        if pod is not None:
            self.waiting[uid] = pod
            if pod.nominated:
                self.nominated.setdefault(pod.nominated, {})[uid] = pod
        return before

    def known(self, uid: str) -> Pod | None:
        """The pod with this UID, bound or waiting."""
        return self.pods.get(uid) or self.waiting.get(uid)

    def uid_of(self, key: str) -> str | None:
        """UID of the pod that has this namespace/name now."""
        return self._uid_of.get(key)

    def booking(self, uid: str) -> Booking | None:
        """What a pod holds, bound or assumed."""
        return self._booked.get(uid) or self.assumed.get(uid)

    def bookings(self, node: str) -> tuple[Booking, ...]:
        """Everything held on a node, holds left out."""
        return tuple(self._by_node[node].values()) if node in self._by_node else ()

    def _book(self, pod: Pod) -> None:
        booking = self._read(pod)
        if booking is None:
            self._unbook(pod.uid)
            return
        before = self._booked.get(pod.uid)
        self._booked[pod.uid] = booking
        if before is None or (before.node, before.holdings) != (booking.node, booking.holdings):
            self._unlist(before)
            self._list(booking)
        else:
            self._by_node[booking.node][pod.uid] = booking

    def _unbook(self, uid: str) -> None:
        self._unlist(self._booked.pop(uid, None))

    def _read(self, pod: Pod) -> Booking | None:
        """The pod's allocation by its annotations as they were first seen: what is held cannot be rewritten."""
        record = {key: pod.annotations[key] for key in _RECORD if key in pod.annotations}
        node, first = self._records.get(pod.uid, ("", record))
        if (node, bool(first)) == (pod.node, True) and first != record:
            self._flag(pod, "its allocation annotations were changed after the binding; the books keep the first ones")
            others = {key: value for key, value in pod.annotations.items() if key not in _RECORD}
            pod = replace(pod, annotations={**others, **first})
        else:
            self.tampered.pop(pod.uid, None)
            self._records[pod.uid] = (pod.node, record)
        claim = _claim(pod)
        try:
            allocation = allocation_of(pod, claim, self.offers.get(pod.node, Offer()).cards)
        except CgpuError as error:
            self._flag(pod, str(error))
            return None
        if allocation is None:
            return None
        return Booking(pod, pod.node, allocation, holdings_of(claim, allocation))

    def _flag(self, pod: Pod, problem: str) -> None:
        if self.tampered.get(pod.uid) != problem:
            log.warning("pod %s on %s: %s", pod.key, pod.node, problem)
        self.tampered[pod.uid] = problem

    # assumptions and holds

    def assume(self, booking: Booking) -> None:
        """A binding is being sent: what it gives counts from now on, instead of the pod's holds."""
        self.forget(booking.pod.uid)
        self.release(booking.pod.uid)
        self.assumed[booking.pod.uid] = booking
        self._list(booking)

    def forget(self, uid: str) -> None:
        """The binding did not happen, or the pod now counts by its annotations."""
        booking = self.assumed.pop(uid, None)
        if booking is not None:
            self._unlist(booking)

    def hold(self, hold: Hold) -> None:
        """Keep a place; at most one a pod and node."""
        self._holds[hold.uid, hold.node] = hold

    def release(self, uid: str) -> None:
        """End a pod's holds."""
        for key in [key for key in self._holds if key[0] == uid]:
            del self._holds[key]

    def holds_by_node(self, now: float, without: str = "") -> dict[str, list[Hold]]:
        """Living holds of other pods than `without`."""
        for key in [key for key, hold in self._holds.items() if hold.until <= now]:
            del self._holds[key]
        found: defaultdict[str, list[Hold]] = defaultdict(list)
        for hold in self._holds.values():
            if hold.uid != without:
                found[hold.node].append(hold)
        return dict(found)

    def has_place(self, uid: str) -> bool:
        """Whether a hold or a binding under way counts for the pod."""
        return uid in self.assumed or any(owner == uid for owner, _ in self._holds)

    # states

    def state(self, node: str) -> NodeState:
        """A node's cards with everything that bound and assumed pods hold; unknown nodes have no cards."""
        found = self._states.get(node)
        if found is None:
            offer = self.offers.get(node, Offer())
            held = [booking.holdings for booking in self.bookings(node)]
            cards = card_states(offer.cards, held, offer.cordoned)
            found = self._states[node] = NodeState(node, cards, offer.placement, offer.core_mem)
        return found

    def state_for(self, node: str, uid: str, held: Iterable[Hold]) -> NodeState:
        """The same for one pod: others' holds count, its own assumption does not."""
        state = self.state(node)
        for hold in held:
            state = _added(state, hold.holdings, 1)
        own = self.assumed.get(uid)
        return _added(state, own.holdings, -1) if own is not None and own.node == node else state

    def _list(self, booking: Booking) -> None:
        self._by_node[booking.node][booking.pod.uid] = booking
        self._changed(booking.node)

    def _unlist(self, booking: Booking | None) -> None:
        if booking is None:
            return
        listed = self._by_node[booking.node]
        if listed.get(booking.pod.uid) is booking:
            del listed[booking.pod.uid]
        if not listed:
            del self._by_node[booking.node]
        self._changed(booking.node)

    def _changed(self, node: str) -> None:
        self._states.pop(node, None)
        self.on_change(node)


def _claim(pod: Pod) -> Claim:
    try:
        return claim_of(pod) or Claim(())
    except ClaimError:
        return Claim(())  # a record of a pod that never passed us still counts


def _added(state: NodeState, holdings: Mapping[str, Holding], sign: int) -> NodeState:
    cards = tuple(
        with_holding(card, holdings[card.card.uuid], sign) if card.card.uuid in holdings else card
        for card in state.cards
    )
    return replace(state, cards=cards)
