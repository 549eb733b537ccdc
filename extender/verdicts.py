# SPDX-License-Identifier: Apache-2.0
"""What each node says to a claim, remembered until the node changes.

Pods come in few shapes (replicas ask alike), and nodes in few states: a shape's verdict is worked out once a state
and looked up afterwards, so a filter over a thousand nodes is a thousand look-ups.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Final, NamedTuple

from cgpu.core.explain import Refusal, explain
from cgpu.core.model import Ask, Claim, NodeState
from cgpu.core.placement import node_rank, place

SHAPES: Final = 64
STATES: Final = 20_000

Rank = tuple[tuple[int, ...], str]


class Verdict(NamedTuple):
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


class Table:
    """All nodes' verdicts on one claim: a node stands in exactly one of the two, an unknown one in none."""

    __slots__ = ("passing", "refused", "stale")

    def __init__(self, nodes: Iterable[str]) -> None:
        self.passing: dict[str, Rank] = {}
        self.refused: dict[str, Refusal] = {}
        self.stale = set(nodes)  # changed since they were judged

    def put(self, node: str, verdict: Verdict | None) -> None:
        """Replace a node's verdict; None: the node is gone."""
        self.passing.pop(node, None)
        self.refused.pop(node, None)
        if verdict is not None and verdict.rank is not None:
            self.passing[node] = verdict.rank
        elif verdict is not None and verdict.refusal is not None:
            self.refused[node] = verdict.refusal


class Verdicts:
    """Tables of the latest claims, brought up to date when they are asked for.

    `nodes()` names the nodes, `states(name)` gives one's cards, `shut(name)` what keeps every pod off it;
    `invalidate(name)` has to be called for each change of these.
    """

    def __init__(
        self,
        nodes: Callable[[], Collection[str]],
        states: Callable[[str], NodeState],
        shut: Callable[[str], Refusal | None],
    ) -> None:
        self._nodes = nodes
        self._states = states
        self._shut = shut
        self._tables: OrderedDict[Claim, Table] = OrderedDict()
        self._alike: OrderedDict[tuple[Claim, _Signature], Rank] = OrderedDict()

    def table(self, claim: Claim) -> Table:
        """The verdicts on one claim; valid until the next change of the books."""
        shape = shape_of(claim)
        table = self._tables.get(shape)
        if table is None:
            table = self._tables[shape] = Table(self._nodes())
            if len(self._tables) > SHAPES:
                self._tables.popitem(last=False)
        else:
            self._tables.move_to_end(shape)
        nodes = self._nodes()
        while table.stale:
            name = table.stale.pop()
            table.put(name, self._judge(name, shape) if name in nodes else None)
        return table

    def invalidate(self, node: str) -> None:
        """The node came, changed or went."""
        for table in self._tables.values():
            table.stale.add(node)

    def _judge(self, name: str, shape: Claim) -> Verdict:
        shut = self._shut(name)
        if shut is not None:
            return Verdict(None, shut)
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
