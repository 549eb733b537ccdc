# SPDX-License-Identifier: Apache-2.0
"""Device ids as the kubelet counts them: anonymous, stable, and which of them a sick card takes along.

An id says nothing about a card, because the kubelet hands ids out at random: the card of a pod is in its annotation.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cgpu.core.errors import SettingError
from cgpu.core.model import Share
from cgpu.core.names import CDI_KIND, RESOURCE_CORE, RESOURCE_MEM

PREFIXES: Final[Mapping[str, str]] = {RESOURCE_MEM: "u", RESOURCE_CORE: "c"}
LISTING_LIMIT_BYTES: Final = 3_670_016  # 3.5 MiB; the kubelet's gRPC client refuses more than 4 MiB
_UNHEALTHY_BYTES: Final = len("Unhealthy")


@dataclass(frozen=True, slots=True)
class SickCard:
    """A card that answers no more: the ids it offered, and the ids that its pods hold."""

    units: int
    held: frozenset[str]


def listed_ids(prefix: str, count: int, held: Collection[str] = ()) -> tuple[str, ...]:
    """The ids of a node that offers `count` units, in number order.

    They are `<prefix>0` up to `count`-1. When a node came back smaller, held ids beyond that stay listed (an id of a
    running pod is never withdrawn) in place of free ones, so the total shrinks as far as the pods allow.
    """
    regular = [f"{prefix}{number}" for number in range(count)]
    outside = frozenset(id_ for id_ in held if _number(id_, prefix) >= count)
    if not outside:
        return tuple(regular)
    taken = frozenset(held)
    free = [id_ for id_ in regular if id_ not in taken]
    keep = frozenset(free[: max(0, len(free) - len(outside))])
    kept = [id_ for id_ in regular if id_ in taken or id_ in keep]
    return (*kept, *sorted(outside, key=lambda id_: _number(id_, prefix)))


def _number(id_: str, prefix: str) -> int:
    digits = id_[len(prefix) :]
    return int(digits) if id_.startswith(prefix) and digits.isascii() and digits.isdigit() else -1


def unhealthy_ids(
    ids: Sequence[str], sick: Iterable[SickCard], held: Collection[str], before: Collection[str] = ()
) -> frozenset[str]:
    """Which ids turn Unhealthy: for each sick card those its pods hold, then free ones, up to its units.

    `held`: every id that any pod holds; one that a healthy card's pod holds never turns. Free ids that were
    unhealthy `before` are taken first, then the highest numbers, so that a repeated answer changes as little as it can.
    """
    cards = list(sick)
    theirs = frozenset(id_ for card in cards for id_ in card.held) & frozenset(ids)
    taken = frozenset(held) | theirs
    again = [id_ for id_ in ids if id_ in before and id_ not in taken]
    fresh = [id_ for id_ in reversed(ids) if id_ not in before and id_ not in taken]
    missing = sum(max(0, card.units - len(card.held)) for card in cards)
    return theirs | frozenset([*again, *fresh][:missing])


def split_over_cards(ids: Iterable[str], shares: Mapping[str, Share]) -> dict[str, frozenset[str]]:
    """card UUID → the part of one container's ids that counts for it: sorted ids, cards in UUID order, `mem` each."""
    order = sorted(ids)
    found: dict[str, frozenset[str]] = {}
    start = 0
    for uuid in sorted(shares):
        found[uuid] = frozenset(order[start : start + shares[uuid].mem])
        start += shares[uuid].mem
    return found


def listing_bytes(ids: Iterable[str]) -> int:
    """Size of the ListAndWatch message when every id is Unhealthy, the longer word.

    Protocol buffers encoding: tag and length for each of Device, its ID and its health (ids under 100 characters).
    """
    return sum(2 + (2 + len(id_)) + (2 + _UNHEALTHY_BYTES) for id_ in ids)


def check_listing(resource: str, count: int) -> None:
    """Raises SettingError when `count` ids make a message that the kubelet would refuse."""
    size = listing_bytes(f"{PREFIXES[resource]}{number}" for number in range(count))
    if size > LISTING_LIMIT_BYTES:
        raise SettingError(
            f"{resource}: {count} ids make a ListAndWatch message of {size} bytes, and more than {LISTING_LIMIT_BYTES}"
            " (3.5 MiB) comes too close to the 4 MiB that the kubelet accepts: give this node fewer or smaller cards"
        )


def cdi_name(ids: Iterable[str]) -> str:
    """The fully qualified CDI device of a set of ids, known before anybody knows the pod."""
    return f"{CDI_KIND}={ids_hash(ids)}"


def ids_hash(ids: Iterable[str]) -> str:
    """16 hex digits that stand for a set of ids, whatever its order."""
    return hashlib.sha256(",".join(sorted(ids)).encode()).hexdigest()[:16]


def instance_id(pod_uid: str, ids: Iterable[str]) -> str:
    """First 12 hex digits of sha256("<pod uid>/<sorted device ids>"), ids joined by commas: the kernel instance's name.

    It exists before the container does and survives its restarts; an init container whose ids the kubelet hands on
    to the app container shares the instance.
    """
    return hashlib.sha256(f"{pod_uid}/{','.join(sorted(ids))}".encode()).hexdigest()[:12]
