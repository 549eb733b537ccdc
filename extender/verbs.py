# SPDX-License-Identifier: Apache-2.0
"""filter, prioritize and the choice of cards: decisions on the books as they stand at `now`, without I/O.

Between two awaits of the one event loop nothing else changes the books, so "look and reserve" is one step.
"""

import heapq
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from cgpu.core.errors import ClaimError
from cgpu.core.explain import Refusal
from cgpu.core.model import Claim, NodeState, Pod
from cgpu.core.names import LABEL_IGNORE
from cgpu.core.placement import Shares, place
from cgpu.core.pods import claim_of, is_ignored
from cgpu.core.usage import holdings_of
from extender.books import Books, Hold
from extender.nominated import Nominations
from extender.setbacks import Setbacks
from extender.verdicts import Rank, Table, Verdict, Verdicts, judge
from extender.wire import FilterAnswer

Kept = TypeVar("Kept")

HOLD_SECONDS: Final = 2.0
DECISIONS: Final = 2_000
UNKNOWN_NODE: Final = "node is not known to the extender yet"
SHUT_NODE: Final = "binding to this node failed three times; it is left out for a while"


def claim_for(pod: Pod) -> Claim | None:
    """What the pod may ask of us. Raises ClaimError for a pod that can never get it, also by its own wish."""
    claim = claim_of(pod)
    if claim is not None and is_ignored(pod):
        raise ClaimError(f"label {LABEL_IGNORE}=true: the pod gets no share of a GPU; remove the label or the request")
    return claim


@dataclass(frozen=True, slots=True)
class Decision:
    """Why a node won, kept for `inspect?pod=`."""

    node: str
    policy: str
    taking: int  # nodes that take the pod
    runner_up: str
    reasons: Mapping[str, int]  # reason → nodes, of the filter before


class Verbs:
    """The decisions of one extender."""

    def __init__(self, books: Books, setbacks: Setbacks) -> None:
        self.books = books
        self._verdicts = Verdicts(books.offers.keys, books.state, self.refusal_of_node)
        books.on_change = self._verdicts.invalidate
        self._setbacks = setbacks
        self.nominations = Nominations(books)
        self.on_refused: Callable[[], None] = lambda: None
        self.decisions: OrderedDict[str, Decision] = OrderedDict()
        self.refused_on: OrderedDict[str, Sequence[str]] = OrderedDict()  # UID → the nodes of a filter that none passed
        self._reasons: OrderedDict[str, Mapping[str, int]] = OrderedDict()

    def filter(self, pod: Pod, names: Sequence[str], now: float) -> FilterAnswer:
        """Nodes whose cards take the pod. The only one left gets the hold here: prioritize is skipped then."""
        self.books.release(pod.uid)
        try:
            claim = claim_for(pod)
        except ClaimError as error:
            return FilterAnswer(never=dict.fromkeys(names, str(error)))
        if claim is None:
            return FilterAnswer(passed=names)
        ranks: list[Rank] = []
        failed: dict[str, str] = {}
        never: dict[str, str] = {}
        table, special = self._verdicts.table(claim), self._special(pod, claim, now)
        for name in names:
            rank, refusal = special[name] if name in special else (table.passing.get(name), table.refused.get(name))
            if rank is not None:
                ranks.append(rank)
            elif refusal is None:
                failed[name] = UNKNOWN_NODE
            else:
                (never if refusal.forever else failed)[name] = refusal.reason
        ranks, shut = self._spared(pod, ranks, now)
        failed.update(dict.fromkeys(shut, SHUT_NODE))
        _remember(self._reasons, pod.uid, Counter([*failed.values(), *never.values()]))
        self.refused_on.pop(pod.uid, None)
        if not ranks:
            _remember(self.refused_on, pod.uid, names)
            self.on_refused()
        elif len(ranks) == 1:
            self._hold(pod, claim, ranks, now)
        return FilterAnswer([name for _, name in ranks], failed, never)

    def prioritize(self, pod: Pod, names: Sequence[str], now: float) -> dict[str, int]:
        """10 for exactly one node, the best, which gets the hold; 0 for the others."""
        scores = dict.fromkeys(names, 0)
        try:
            claim = claim_for(pod)
        except ClaimError:
            return scores
        if claim is None:
            return scores
        self.books.release(pod.uid)
        passing, special = self._verdicts.table(claim).passing, self._special(pod, claim, now)
        found = [special[name].rank if name in special else passing.get(name) for name in names]
        best = self._hold(pod, claim, [rank for rank in found if rank is not None], now)
        if best is not None:
            scores[best] = 10
        return scores

    def choose(self, pod: Pod, claim: Claim, node: str, now: float) -> Shares | str:
        """The cards for a bind, or the sentence that says why there are none."""
        state = self._seen_by(pod, node, now)
        shares = place(state, claim)
        if shares is not None:
            return shares
        refusal = self.refusal_of_node(node) or judge(state, claim).refusal
        return refusal.detail if refusal is not None else UNKNOWN_NODE

    def refusal_of_node(self, name: str) -> Refusal | None:
        """What keeps every pod off a node: it is unknown, or its annotations cannot be read."""
        offer = self.books.offers.get(name)
        if offer is None:
            return Refusal(UNKNOWN_NODE, f"{name}: {UNKNOWN_NODE}")
        if offer.problem:
            return Refusal("the node's GPU annotations cannot be read", f"{name}: {offer.problem}", forever=True)
        return None

    def table(self, claim: Claim) -> Table:
        """What every node says to a claim, holds left out."""
        return self._verdicts.table(claim)

    def takes(self, pod: Pod, names: Sequence[str], now: float) -> bool:
        """Whether a filter of these nodes would let the pod pass; it keeps no place."""
        try:
            claim = claim_for(pod)
        except ClaimError:
            return False
        if claim is None:
            return False
        table, special = self._verdicts.table(claim), self._special(pod, claim, now)
        if not table.passing and not special:
            return False
        return any(
            name in table.passing if name not in special else special[name].rank is not None
            for name in frozenset(names)
        )

    def _special(self, pod: Pod, claim: Claim, now: float) -> dict[str, Verdict]:
        """Nodes where this pod sees something else than any other of its shape."""
        held = self.books.holds_by_node(now, without=pod.uid)
        own = self.books.assumed.get(pod.uid)
        nodes = {*held, *self.nominations.nodes(), *([own.node] if own is not None else ())}
        return {name: self._judge(pod, claim, name, held.get(name, ())) for name in nodes}

    def _judge(self, pod: Pod, claim: Claim, node: str, held: Sequence[Hold]) -> Verdict:
        shut = self.refusal_of_node(node)
        return Verdict(None, shut) if shut is not None else judge(self._state_for(pod, node, held), claim)

    def _seen_by(self, pod: Pod, node: str, now: float) -> NodeState:
        """A node's cards with all that is kept from this pod."""
        return self._state_for(pod, node, self.books.holds_by_node(now, without=pod.uid).get(node, ()))

    def _state_for(self, pod: Pod, node: str, held: Sequence[Hold]) -> NodeState:
        kept = [*held, *self.nominations.kept_from(pod, node, held)]
        return self.books.state_for(node, pod.uid, kept)

    def _spared(self, pod: Pod, ranks: list[Rank], now: float) -> tuple[list[Rank], list[str]]:
        """Without the nodes where binding this pod kept failing, as long as another one takes it."""
        shut = frozenset(self._setbacks.shut(pod.uid, now))
        if not shut:
            return ranks, []
        others = [rank for rank in ranks if rank[1] not in shut]
        return (others, [name for _, name in ranks if name in shut]) if others else (ranks, [])

    def _hold(self, pod: Pod, claim: Claim, ranks: list[Rank], now: float) -> str | None:
        if not ranks:
            return None
        first, *others = heapq.nsmallest(2, ranks)
        name = first[1]
        shares = self.choose(pod, claim, name, now)
        if isinstance(shares, str):
            return None
        self.books.hold(Hold(pod.uid, name, holdings_of(claim, shares), now + HOLD_SECONDS))
        reasons = self._reasons.get(pod.uid, {})
        policy = str(self.books.offers[name].placement)
        runner_up = others[0][1] if others else ""
        _remember(self.decisions, pod.uid, Decision(name, policy, len(ranks), runner_up, reasons))
        return name


def _remember(memory: OrderedDict[str, Kept], key: str, value: Kept) -> None:
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > DECISIONS:
        memory.popitem(last=False)
