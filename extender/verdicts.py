# SPDX-License-Identifier: Apache-2.0
"""What each node says to a claim, remembered until the node changes.

Pods come in few shapes (replicas ask alike), and nodes in few states: a shape's verdict is worked out once a state
and looked up afterwards, so a filter over a thousand nodes is a thousand look-ups.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from cgpu.core.explain import Refusal, explain
from cgpu.core.model import Ask, Claim, NodeState
from cgpu.core.placement import node_rank, place

SHAPES: Final = 64
STATES: Final = 20_000

Rank = tuple[tuple[int, ...], str]


@dataclass(frozen=True, slots=True)
class Verdict:
    """`rank` when the node takes the claim (the smallest wins), else `refusal`."""

    rank: Rank | None
    refusal: Refusal | None = None


_Signature = tuple[object, ...]


def judge(state: NodeState, claim: Claim) -> Verdict:
    """A node's verdict, worked out."""
    shares = place(state, claim)
    if shares is not None:
        return Verdict(node_rank(state, shares, claim))
    return Verdict(None, explain(state, claim))


class Verdicts:
    """Verdicts of whole nodes by name; `states(name)` gives the state, `invalidate(name)` says that it changed."""

    def __init__(self, states: Callable[[str], NodeState]) -> None:
        self._states = states
        self._shapes: OrderedDict[Claim, dict[str, Verdict]] = OrderedDict()
        self._alike: OrderedDict[tuple[Claim, _Signature], Rank] = OrderedDict()

    def table(self, claim: Claim) -> "Table":
        """The verdicts on one claim."""
        shape = shape_of(claim)
        known = self._shapes.get(shape)
        if known is None:
            known = self._shapes[shape] = {}
            if len(self._shapes) > SHAPES:
                self._shapes.popitem(last=False)
        else:
            self._shapes.move_to_end(shape)
        return Table(known, lambda name: self._judge(name, shape))

    def invalidate(self, node: str) -> None:
        """The node's state changed."""
        for known in self._shapes.values():
            known.pop(node, None)

    def _judge(self, name: str, shape: Claim) -> Verdict:
        state = self._states(name)
        key = (shape, _signature(state))
        rank = self._alike.get(key)
        if rank is not None:
            return Verdict((rank[0], name))
        verdict = judge(state, shape)
        if verdict.rank is not None:
            self._alike[key] = verdict.rank
            if len(self._alike) > STATES:
                self._alike.popitem(last=False)
        return verdict


class Table:
    """Look-ups for one claim."""

    def __init__(self, known: dict[str, Verdict], work_out: Callable[[str], Verdict]) -> None:
        self._known = known
        self._work_out = work_out

    def __getitem__(self, node: str) -> Verdict:
        verdict = self._known.get(node)
        if verdict is None:
            verdict = self._known[node] = self._work_out(node)
        return verdict


def shape_of(claim: Claim) -> Claim:
    """The claim with its containers numbered: names do not matter to whether and how well it fits."""
    return replace(
        claim, asks=tuple(Ask(str(place), ask.kind, ask.mem, ask.core) for place, ask in enumerate(claim.asks))
    )


def _signature(state: NodeState) -> _Signature:
    cards = tuple(
        (card.card.index, card.card.units, card.mem, card.core, card.instances, card.card.max_instances, card.usable)
        for card in state.cards
    )
    return state.placement, state.core_mem, cards
