# SPDX-License-Identifier: Apache-2.0
"""What `kubectl inspect cgpu` prints: text and JSON from facts, the same text for the same facts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cgpu.core.annotations import allocation_of
from cgpu.core.errors import InputError
from cgpu.core.model import Card, Claim, Pod
from cgpu.core.names import ANNOTATION_RESIZED
from cgpu.core.pods import claim_of, holds, largest_phase
from cgpu.core.usage import holdings_of

GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class PodRow:
    """A pod on a node: GiB booked a card index; `pending` GiB where no card is known; bytes really used or None."""

    namespace: str
    name: str
    booked: Mapping[int, int] = field(default_factory=dict)
    pending: int = 0
    used_bytes: int | None = None
    asked: int | None = None  # GiB that it had before a live resize, and that its manifest says
    unserved: tuple[str, ...] = ()  # containers that run without the share that is booked for them

    @property
    def total(self) -> int:
        """GiB on all cards."""
        return sum(self.booked.values()) + self.pending


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node with its cards, GiB a card index, and its pods in order of namespace and name."""

    name: str
    address: str
    cards: Mapping[int, int]
    pods: tuple[PodRow, ...] = ()
    used_bytes: int | None = None

    @property
    def total(self) -> int:
        """GiB of all cards."""
        return sum(self.cards.values())

    @property
    def allocated(self) -> int:
        """GiB booked, pending ones included."""
        return sum(pod.total for pod in self.pods)

    @property
    def pending(self) -> int:
        """GiB of pods whose card is not known."""
        return sum(pod.pending for pod in self.pods)

    def on_card(self, index: int) -> int:
        """GiB booked on one card."""
        return sum(pod.booked.get(index, 0) for pod in self.pods)


def node_row(
    name: str,
    address: str,
    cards: Sequence[Card],
    pods: Iterable[Pod],
    used: Mapping[str, int | None],
    *,
    unserved: Mapping[str, Sequence[str]] | None = None,
) -> NodeRow:
    """Facts of one node, by `namespace/name`: bytes that a pod's instances use, where known; its `unserved` containers."""
    found = [row for row in (_pod_row(pod, cards, used) for pod in pods) if row is not None]
    without = unserved or {}
    rows = [replace(row, unserved=tuple(without.get(f"{row.namespace}/{row.name}", ()))) for row in found]
    known = [row.used_bytes for row in rows if row.used_bytes is not None]
    return NodeRow(
        name=name,
        address=address,
        cards={card.index: card.units for card in sorted(cards, key=lambda card: card.index)},
        pods=tuple(sorted(rows, key=lambda row: (row.namespace, row.name))),
        used_bytes=sum(known) if known else None,
    )


def _pod_row(pod: Pod, cards: Sequence[Card], used: Mapping[str, int | None]) -> PodRow | None:
    try:
        claim = claim_of(pod)
        if claim is None or not holds(pod):
            return None
        allocation = allocation_of(pod, claim, cards)
    except InputError:
        return None
    held = holdings_of(claim, allocation) if allocation else {}
    booked = {card.index: held[card.uuid].mem for card in cards if card.uuid in held}
    pending = 0 if booked else largest_phase((ask.kind, ask.mem) for ask in claim.asks)
    asked = _asked(pod, claim, cards) if ANNOTATION_RESIZED in pod.annotations else None
    return PodRow(pod.namespace, pod.name, booked, pending, used.get(pod.key), asked)


def _asked(pod: Pod, claim: Claim, cards: Sequence[Card]) -> int:
    before = {key: text for key, text in pod.annotations.items() if key != ANNOTATION_RESIZED}
    allocation = allocation_of(replace(pod, annotations=before), claim, cards) or {}
    return sum(held.mem for held in holdings_of(claim, allocation).values())


def percent(part: int, whole: int) -> str:
    """`(33%)`: truncated, 0 when there is nothing to share."""
    return f"({part * 100 // whole if whole else 0}%)"


def table(nodes: Sequence[NodeRow]) -> str:
    """One row a node, and the cluster's sum."""
    rows = sorted(nodes, key=lambda node: node.name)
    indices = sorted({index for node in rows for index in node.cards})
    waits = any(node.pending for node in rows)
    header = ["NAME", "IPADDRESS", *(f"GPU{index}(Allocated/Total)" for index in indices)]
    header += [*(["PENDING(Allocated)"] if waits else []), "GPU Memory(GiB)"]
    lines = [_cells(node, indices, waits) for node in rows]
    return _with_sum(_aligned([header, *lines]), rows)


def _cells(node: NodeRow, indices: Iterable[int], waits: bool) -> list[str]:
    cards = [f"{node.on_card(index)}/{node.cards[index]}" if index in node.cards else "-" for index in indices]
    pending = [str(node.pending)] if waits else []
    return [node.name, node.address, *cards, *pending, f"{node.allocated}/{node.total}"]


def details(nodes: Sequence[NodeRow]) -> str:
    """One block a node with a row a pod: what is booked on each card, and what is really used."""
    rows = sorted(nodes, key=lambda node: node.name)
    blocks = [line for node in rows for line in [*_block(node), ""]]
    return _with_sum(blocks[:-1], rows)


def _block(node: NodeRow) -> list[str]:
    indices, waits = sorted(node.cards), bool(node.pending)
    resized = any(pod.asked is not None for pod in node.pods)
    header = ["NAME", "NAMESPACE", *(f"GPU{index}(Allocated)" for index in indices)]
    header += [*(["PENDING(Allocated)"] if waits else []), *(["ASKED(GiB)"] if resized else []), "USED(MiB)"]
    unserved = any(pod.unserved for pod in node.pods)
    header += ["WITHOUT GPU"] if unserved else []
    lines = [
        [
            pod.name,
            pod.namespace,
            *(str(pod.booked.get(index, 0)) for index in indices),
            *([str(pod.pending)] if waits else []),
            *([str(pod.total if pod.asked is None else pod.asked)] if resized else []),
            _mib(pod.used_bytes),
            *([",".join(pod.unserved) or "-"] if unserved else []),
        ]
        for pod in node.pods
    ]
    return [
        f"NAME:       {node.name}",
        f"IPADDRESS:  {node.address}",
        "",
        *_aligned([header, *lines]),
        f"Allocated : {node.allocated} {percent(node.allocated, node.total)}",
        f"Used : {_mib(node.used_bytes)}{'' if node.used_bytes is None else ' MiB'}",
        f"Total : {node.total}",
    ]


def _mib(size_bytes: int | None) -> str:
    return "-" if size_bytes is None else str(size_bytes >> 20)


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _with_sum(lines: list[str], nodes: Sequence[NodeRow]) -> str:
    allocated, total = sum(node.allocated for node in nodes), sum(node.total for node in nodes)
    return "\n".join(
        [
            *lines,
            "-" * max((len(line) for line in lines), default=0),
            "Allocated/Total GPU Memory In Cluster:",
            f"{allocated}/{total} {percent(allocated, total)}",
        ]
    )


def as_json(nodes: Sequence[NodeRow]) -> dict[str, Any]:
    """The same facts for programs; GiB, except `usedBytes` (null = nobody can tell)."""
    rows = sorted(nodes, key=lambda node: node.name)
    return {
        "allocated": sum(node.allocated for node in rows),
        "total": sum(node.total for node in rows),
        "nodes": [
            {
                "name": node.name,
                "address": node.address,
                "allocated": node.allocated,
                "total": node.total,
                "pending": node.pending,
                "usedBytes": node.used_bytes,
                "gpus": [
                    {"index": index, "allocated": node.on_card(index), "total": units}
                    for index, units in sorted(node.cards.items())
                ],
                "pods": [
                    {
                        "namespace": pod.namespace,
                        "name": pod.name,
                        "booked": {str(index): mem for index, mem in sorted(pod.booked.items())},
                        "pending": pod.pending,
                        "asked": pod.total if pod.asked is None else pod.asked,
                        "usedBytes": pod.used_bytes,
                        "unserved": list(pod.unserved),
                    }
                    for pod in node.pods
                ],
            }
            for node in rows
        ],
    }
