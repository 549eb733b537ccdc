# SPDX-License-Identifier: Apache-2.0
"""What a container is given: the annotation checked against its limits and the card, and the environment of it. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from cgpu.core.annotations import allocation_of
from cgpu.core.devices import ids_hash, instance_id
from cgpu.core.errors import InputError, PlacementError
from cgpu.core.model import Allocation, Ask, Card, Claim, Pod, Share
from cgpu.core.names import (
    ANNOTATION_ALLOCATION,
    ANNOTATION_RESIZED,
    CORE_PER_CARD,
    CORE_STEP,
    ENV_CONTAINER,
    ENV_DEV,
    ENV_DISABLE,
    ENV_HIGH_PRIO,
    ENV_IDX,
    ENV_POD,
    ENV_VISIBLE_DEVICES,
    ENV_WEIGHT,
    RESOURCE_CORE,
    RESOURCE_MEM,
    SCHEDULER_NAME,
    Mode,
)
from cgpu.core.pods import claim_of, holds, largest_phase
from cgpu.core.resize import limits, spread, view_of_pod
from cgpu.core.usage import Holding, holdings_of

ENFORCED: Final = frozenset({Mode.CGPU, Mode.CORE_MEM})
"""Modes in which the kernel module isolates."""


@dataclass(frozen=True, slots=True)
class Grant:
    """One container's share as handed out; `hash` names its CDI device, `instance` its kernel instance."""

    hash: str
    instance: str
    ids: tuple[str, ...]
    pod_uid: str
    namespace: str
    pod: str
    container: str
    mode: Mode
    shares: Mapping[str, Share]
    high_prio: bool = False


def has_allocation(pod: Pod, cards: Sequence[Card]) -> bool:
    """Whether the binding's annotation is there to be read, well-formed or not."""
    try:
        claim = claim_of(pod)
        return claim is not None and allocation_of(pod, claim, cards) is not None
    except InputError:
        return True


def grant_of(
    pod: Pod,
    container: str,
    ids: Collection[str],
    cards: Sequence[Card],
    granted: Iterable[Pod],
    *,
    mode: Mode,
    high_priority_classes: Collection[str] = (),
) -> Grant:
    """The share of a container, from the pod's annotation.

    `granted`: pods that were already given theirs; the sum over the card counts them and this pod, so whoever came
    first keeps what it has. Raises PlacementError or InputError with a text for the reader of `kubectl describe pod`.
    """
    claim, written = _allocation(pod, cards, keep_resized=False)
    ask = next((ask for ask in claim.asks if ask.name == container), None)
    if ask is None or container not in written:
        raise PlacementError(f"{pod.key}: {ANNOTATION_ALLOCATION} has no card for container {container}")
    _check_size(pod, claim, ask, written[container], len(ids))
    if mode is Mode.CORE_MEM and not ask.core:
        raise PlacementError(
            f"{pod.key}: container {container} asks for {RESOURCE_MEM} alone and this node is in mode {mode}:"
            f" ask for {RESOURCE_CORE} too"
        )
    _, booked = _allocation(pod, cards, keep_resized=True)
    _check_cards(pod, claim, booked, cards, granted)
    return Grant(
        hash=ids_hash(ids),
        instance=instance_id(pod.uid, ids),
        ids=tuple(sorted(ids)),
        pod_uid=pod.uid,
        namespace=pod.namespace,
        pod=pod.name,
        container=container,
        mode=mode,
        shares=kernel_shares(pod, claim, booked)[container],
        high_prio=bool(pod.priority_class) and pod.priority_class in high_priority_classes,
    )


def kernel_shares(pod: Pod, claim: Claim, booked: Allocation) -> dict[str, Mapping[str, Share]]:
    """What the kernel holds each container to: what is booked, or less while a shrinking is under way."""
    held = limits(view_of_pod(pod, claim, booked))
    return {name: spread(shares, held[name]) if name in held else shares for name, shares in booked.items()}


def _allocation(pod: Pod, cards: Sequence[Card], keep_resized: bool) -> tuple[Claim, dict[str, dict[str, Share]]]:
    claim = claim_of(pod)
    if not keep_resized:
        pod = replace(pod, annotations={k: v for k, v in pod.annotations.items() if k != ANNOTATION_RESIZED})
    allocation = allocation_of(pod, claim, cards) if claim is not None else None
    if claim is None or allocation is None:
        raise PlacementError(
            f"{pod.key} has no annotation {ANNOTATION_ALLOCATION}: it was not bound by our scheduler;"
            f" create it with schedulerName: {SCHEDULER_NAME} and without nodeName"
        )
    return claim, allocation


def _check_size(pod: Pod, claim: Claim, ask: Ask, shares: Mapping[str, Share], ids: int) -> None:
    booked = sum(share.mem for share in shares.values())
    if booked != ask.mem or booked != ids:
        raise PlacementError(
            f"{pod.key}: container {ask.name} asks for {RESOURCE_MEM}: {ask.mem}, the kubelet gave {ids} ids and"
            f" {ANNOTATION_ALLOCATION} says {booked}: the annotation was changed; delete the pod and create it again"
        )
    want = claim.per_card(ask)
    if len(shares) != claim.gpu_count or any(share != want for share in shares.values()):
        raise PlacementError(
            f"{pod.key}: container {ask.name} should have {want.mem} GiB and {want.core} percent on each of"
            f" {claim.gpu_count} cards, {ANNOTATION_ALLOCATION} says otherwise; delete the pod and create it again"
        )


def _check_cards(
    pod: Pod, claim: Claim, allocation: Mapping[str, Mapping[str, Share]], cards: Sequence[Card], granted: Iterable[Pod]
) -> None:
    held = holdings_of(claim, allocation)
    others = [_holdings(other, cards) for other in granted if other.uid != pod.uid and holds(other)]
    known = {card.uuid: card for card in cards}
    for uuid, mine in held.items():
        if uuid not in known:
            raise PlacementError(f"{pod.key}: card {uuid} is not on this node (any more): delete the pod")
        if not known[uuid].healthy:
            raise PlacementError(f"{pod.key}: GPU {known[uuid].index} ({uuid}) is unhealthy: waiting for it to recover")
        _check_sum(pod, known[uuid], mine, [row[uuid] for row in others if uuid in row])


def _check_sum(pod: Pod, card: Card, mine: Holding, others: Sequence[Holding]) -> None:
    mem = sum(row.mem for row in others)
    core = sum(row.core for row in others)
    if mem + mine.mem > card.units or core + mine.core > CORE_PER_CARD:
        raise PlacementError(
            f"{pod.key}: GPU {card.index} has {card.units} GiB and 100 percent, {mem} GiB and {core} percent are held:"
            f" {mine.mem} GiB and {mine.core} percent more would pass it; delete the pod and create it again"
        )


def _holdings(pod: Pod, cards: Sequence[Card]) -> dict[str, Holding]:
    """What a granted pod holds; a record that can no longer be read counts nothing and shows as drift."""
    try:
        claim = claim_of(pod)
        allocation = allocation_of(pod, claim, cards) if claim is not None else None
    except InputError:
        return {}
    return holdings_of(claim, allocation) if claim is not None and allocation is not None else {}


def environment(grant: Grant, pod: Pod, cards: Sequence[Card]) -> dict[str, str]:
    """Every variable of the contract, set or emptied, so that pod env cannot weaken a share."""
    used = [card for card in cards if card.uuid in grant.shares]
    sizes = [grant.shares[card.uuid].mem for card in used]
    claim = claim_of(pod)
    isolated = grant.mode in ENFORCED
    return {
        ENV_CONTAINER: _list(sizes),
        ENV_DEV: _list([card.units for card in used]),
        ENV_IDX: ",".join(str(card.index) for card in used),
        ENV_POD: str(largest_phase((ask.kind, ask.mem) for ask in claim.asks) if claim else sum(sizes)),
        ENV_WEIGHT: str(weight_of(grant)),
        ENV_HIGH_PRIO: "1" if grant.high_prio else "",
        ENV_DISABLE: "" if isolated else "true",
        ENV_VISIBLE_DEVICES: "void" if isolated else ",".join(card.uuid for card in used),
    }


def weight_of(grant: Grant) -> int:
    """The compute weight: percentage / 5 where percentages are asked for, else 1."""
    return max(1, *(share.core // CORE_STEP for share in grant.shares.values()))


def _list(numbers: Sequence[int]) -> str:
    """One integer when all are equal, else a comma list."""
    return str(numbers[0]) if len(set(numbers)) == 1 else ",".join(map(str, numbers))
