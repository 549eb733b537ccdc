# SPDX-License-Identifier: Apache-2.0
"""Pod → claim: what a pod asks for, checked; and whether it still holds what it was given."""

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

from cgpu.core.errors import ClaimError, LabelError, QuantityError
from cgpu.core.model import Ask, Claim, Container, ContainerKind, Pod
from cgpu.core.names import (
    CORE_PER_CARD,
    CORE_STEP,
    LABEL_GPU_COUNT,
    LABEL_IGNORE,
    LABEL_LEGACY_CGPU,
    LABEL_LEGACY_GPUSHARE,
    LABEL_LEGACY_NO_ISOLATION,
    LABEL_PLACEMENT,
    LABEL_SCHEDULE,
    RESOURCE_CORE,
    RESOURCE_MEM,
    Mode,
    Placement,
)
from cgpu.core.quantity import parse_quantity

MAX_CARDS_OF_A_NODE: Final = 64
_Value = TypeVar("_Value", Mode, Placement)
_ENDED: Final = frozenset({"Succeeded", "Failed"})


def asks_for_gpu(pod: Pod) -> bool:
    """Whether any container names one of our resources, whatever the value."""
    return any(container.mem or container.core for container in pod.containers)


def claim_of(pod: Pod) -> Claim | None:
    """What the pod asks for, or None when it asks for nothing of ours.

    Raises ClaimError with container, value, rule and remedy when the pod can never get what it asks.
    """
    asks = tuple(ask for ask in map(_ask, pod.containers) if ask is not None)
    if not asks:
        return None
    gpu_count = _gpu_count(pod.labels)
    for ask in asks:
        _check_count(ask, gpu_count)
    return Claim(asks, gpu_count)


def holds(pod: Pod) -> bool:
    """Whether a bound pod still holds its share: until its containers have ended, not from deletionTimestamp."""
    return pod.phase not in _ENDED and not pod.ended


def is_ignored(pod: Pod) -> bool:
    """Whether the pod opted out of our admission policies."""
    return pod.labels.get(LABEL_IGNORE) == "true"


def largest_phase(steps: Iterable[tuple[ContainerKind, int]]) -> int:
    """The most a pod holds at once, as Kubernetes counts it; `steps` in the pod's order, init containers first.

    App containers and sidecars add up; a plain init container counts together with the sidecars before it.
    """
    running, largest = 0, 0
    for kind, amount in steps:
        if kind is ContainerKind.INIT:
            largest = max(largest, running + amount)
        else:
            running += amount
    return max(largest, running)


def mode_of(labels: Mapping[str, str], default: Mode = Mode.DEFAULT) -> Mode:
    """The node's mode; ack.* wins over the legacy labels, no label means `default`.

    Raises LabelError for a value outside the table.
    """
    written = labels.get(LABEL_SCHEDULE)
    if written is not None:
        return _member(Mode, LABEL_SCHEDULE, written)
    if labels.get(LABEL_LEGACY_NO_ISOLATION) == "true":
        return Mode.SHARE
    if "true" in (labels.get(LABEL_LEGACY_GPUSHARE), labels.get(LABEL_LEGACY_CGPU)):
        return Mode.CGPU
    return default


def placement_of(labels: Mapping[str, str]) -> Placement:
    """How the node's cards are chosen. Raises LabelError for a value outside the table."""
    return _member(Placement, LABEL_PLACEMENT, labels.get(LABEL_PLACEMENT, Placement.BINPACK))


def _member(table: type[_Value], label: str, written: str) -> _Value:
    try:
        return table(written)
    except ValueError:
        raise LabelError(f"label {label}={written!r}: must be one of {', '.join(table)}") from None


def _ask(container: Container) -> Ask | None:
    mem = _amount(container, RESOURCE_MEM, container.mem)
    core = _amount(container, RESOURCE_CORE, container.core)
    if core and (core % CORE_STEP or core > CORE_PER_CARD):
        raise ClaimError(
            f"container {container.name}: {RESOURCE_CORE}: {core} is not allowed;"
            f" write a multiple of {CORE_STEP} from {CORE_STEP} to {CORE_PER_CARD}"
        )
    if core and not mem:
        raise ClaimError(f"container {container.name}: {RESOURCE_CORE}: {core} without {RESOURCE_MEM}: ask for both")
    return Ask(container.name, container.kind, mem, core) if mem else None


def _amount(container: Container, resource: str, written: str) -> int:
    if not written:
        return 0
    try:
        return parse_quantity(written)
    except QuantityError as error:
        raise ClaimError(f"container {container.name}: {resource}: {error}") from error


def _gpu_count(labels: Mapping[str, str]) -> int:
    written = labels.get(LABEL_GPU_COUNT)
    if written is None:
        return 1
    if written.isascii() and written.isdigit() and 1 <= int(written[:4]) <= MAX_CARDS_OF_A_NODE:
        return int(written)
    raise ClaimError(
        f"label {LABEL_GPU_COUNT}={written!r}: must be a whole number of cards from 1 to {MAX_CARDS_OF_A_NODE}"
    )


def _check_count(ask: Ask, gpu_count: int) -> None:
    if ask.mem % gpu_count:
        raise ClaimError(
            f"container {ask.name}: {RESOURCE_MEM}: {ask.mem} not divisible by {gpu_count}"
            f" (label {LABEL_GPU_COUNT}): ask for a multiple of {gpu_count}"
        )
    if ask.core and gpu_count > 1:
        raise ClaimError(
            f"container {ask.name}: {RESOURCE_CORE} and label {LABEL_GPU_COUNT}={gpu_count} exclude each other:"
            " remove one of them"
        )
