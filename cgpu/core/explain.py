# SPDX-License-Identifier: Apache-2.0
"""Why a claim does not fit a node: a short reason that many nodes share, and a sentence with this node's numbers."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from cgpu.core.model import CardState, Claim, NodeState
from cgpu.core.names import CORE_PER_CARD, RESOURCE_CORE, RESOURCE_MEM
from cgpu.core.placement import fits, may_ever, needed, takes
from cgpu.core.usage import Holding

_UNITS: Final = (("Gi", 1 << 30), ("G", 10**9))
UNIT_HINT_GIB: Final = 4096  # no card of today is larger: whoever asks for more probably wrote bytes or G


@dataclass(frozen=True, slots=True)
class Refusal:
    """`reason` is one of few distinct texts; `detail` names the node and its numbers; `forever`: waiting cannot help."""

    reason: str
    detail: str
    forever: bool = False


def explain(node: NodeState, claim: Claim) -> Refusal | None:
    """None when the node takes the claim, else why not. The first rule that the claim breaks is named."""
    if fits(node, claim):
        return None
    held = needed(claim)
    for rule in (_no_cards, _wrong_mode, _never, _shut, _core, _instances):
        refusal = rule(node, claim, held)
        if refusal is not None:
            return refusal
    return _memory(node, claim, held)


def unit_hint(claim: Claim) -> str:
    """A sentence for whoever mistook the unit, "" when the size is plausible."""
    largest = max(ask.mem for ask in claim.asks)
    if largest <= UNIT_HINT_GIB:
        return ""
    written = [(largest // size, unit) for unit, size in _UNITS if largest % size == 0]
    remedies = [f"write {number}, not {number}{unit}" for number, unit in written]
    return f"{largest} GiB was asked and the unit is GiB: {(remedies or ['write the number alone, such as 10'])[0]}"


def group_refusals(refusals: Iterable[Refusal], limit: int = 1024) -> str:
    """One text for an event: details grouped by reason, most frequent reason first, at most `limit` characters."""
    rows = list(refusals)
    counts = Counter(row.reason for row in rows)
    parts = []
    for reason, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        details = [row.detail for row in rows if row.reason == reason]
        more = f" (and {count - 3} more nodes)" if count > 3 else ""
        parts.append("; ".join(details[:3]) + more)
    text = "; ".join(parts)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _cards_text(claim: Claim) -> str:
    return "single GPU has" if claim.gpu_count == 1 else f"{claim.gpu_count} GPUs each have"


def _no_cards(node: NodeState, _claim: Claim, _held: Holding) -> Refusal | None:
    if node.cards:
        return None
    return Refusal("node is not for GPU share", f"{node.name} offers no {RESOURCE_MEM}", forever=True)


def _wrong_mode(node: NodeState, claim: Claim, _held: Holding) -> Refusal | None:
    if may_ever(node, claim):
        return None
    if node.core_mem:
        return Refusal(
            f"node in mode core_mem needs {RESOURCE_CORE} too",
            f"{node.name} is in mode core_mem: every container that asks for {RESOURCE_MEM} asks for {RESOURCE_CORE} too",
            forever=True,
        )
    return Refusal(f"node does not offer {RESOURCE_CORE}", f"{node.name} does not offer {RESOURCE_CORE}", forever=True)


def _never(node: NodeState, claim: Claim, _held: Holding) -> Refusal | None:
    if fits(_emptied(node), claim):
        return None
    ask = max(ask.mem // claim.gpu_count for ask in claim.asks)
    largest = max(state.card.units for state in node.cards)
    sizes = f"({len(node.cards)} GPUs, the largest {largest} GiB)"
    if sum(state.card.units >= ask for state in node.cards) >= claim.gpu_count:
        return Refusal(
            "the pod's containers do not fit the node's GPUs together",
            f"{node.name}: the pod's containers do not fit the node's GPUs together {sizes}",
            forever=True,
        )
    detail = unit_hint(claim) or f"{node.name}: no {_cards_text(claim)} {ask} GiB at all {sizes}"
    return Refusal(f"no {_cards_text(claim)} {ask} GiB at all", detail, forever=True)


def _emptied(node: NodeState) -> NodeState:
    cards = tuple(CardState(replace(state.card, healthy=True)) for state in node.cards)
    return replace(node, cards=cards)


def _shut(node: NodeState, claim: Claim, _held: Holding) -> Refusal | None:
    open_cards = [state for state in node.cards if state.usable]
    if len(open_cards) >= claim.gpu_count:
        return None
    shut = len(node.cards) - len(open_cards)
    return Refusal("GPUs cordoned or unhealthy", f"{node.name}: {shut} of {len(node.cards)} GPUs cordoned or unhealthy")


def _core(node: NodeState, claim: Claim, held: Holding) -> Refusal | None:
    without_core = Holding(held.mem, 0, held.instances)
    if not held.core or sum(takes(state, without_core) for state in node.cards) < claim.gpu_count:
        return None
    free = max(CORE_PER_CARD - state.core for state in node.cards if state.usable)
    return Refusal(
        f"no single GPU has {held.core} percent of compute free",
        f"{node.name}: no single GPU has {held.core} percent of compute free (largest free: {free} percent)",
    )


def _instances(node: NodeState, claim: Claim, held: Holding) -> Refusal | None:
    room = [state for state in node.cards if state.usable and held.mem <= state.free]
    if len(room) < claim.gpu_count:
        return None
    full = [state for state in room if state.instances + held.instances > state.card.max_instances]
    if not full:
        return None
    state = full[0]
    count = f"{state.instances} of {state.card.max_instances}"
    return Refusal(
        f"no GPU takes another instance ({count})",
        f"{node.name}: GPU {state.card.index} takes no other instance ({count})",
    )


def _memory(node: NodeState, claim: Claim, held: Holding) -> Refusal:
    usable = [state for state in node.cards if state.usable]
    free = sum(state.free for state in usable)
    largest = max(state.free for state in usable)
    text = f"{_cards_text(claim)} {held.mem} GiB"
    if sum(state.free >= held.mem for state in usable) >= claim.gpu_count:
        return Refusal(
            f"no {text}, the compute and an instance free at once",
            f"{node.name}: no {text}, the compute and an instance free at once",
        )
    return Refusal(f"no {text} free", f"{node.name} has {free} GiB free but no {text} (largest free: {largest} GiB)")
