# SPDX-License-Identifier: Apache-2.0
"""The annotations that carry facts between the parts: each form encoded and decoded here and nowhere else.

Three forms of a pod's allocation exist (the truth, the scheduler framework's, the older one); all are written
with the binding, and the truth is read first. Decoding raises AnnotationError with the offending text.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeGuard

from cgpu.core.errors import AnnotationError
from cgpu.core.model import Allocation, Card, Claim, ContainerKind, Pod, Share
from cgpu.core.names import (
    ANNOTATION_ALLOCATION,
    ANNOTATION_ASSIGNED,
    ANNOTATION_ASSUME_TIME,
    ANNOTATION_CORDON,
    ANNOTATION_DEV,
    ANNOTATION_DEVICES,
    ANNOTATION_GPUSHARE,
    ANNOTATION_IDX,
    ANNOTATION_POD,
    ANNOTATION_RESIZED,
    CORE_PER_CARD,
)
from cgpu.core.pods import largest_phase

_DEVICE_KEYS: Final[dict[str, type | tuple[type, ...]]] = {
    "index": int,
    "minor": int,
    "uuid": str,
    "model": str,
    "memMiB": int,
    "units": int,
    "maxInstances": int,
    "healthy": bool,
    "numa": (int, type(None)),
}


def encode_devices(cards: Sequence[Card]) -> str:
    """Value of the node annotation cgpu.aliyun.com/devices."""
    return _dumps(
        [
            {
                "index": card.index,
                "minor": card.minor,
                "uuid": card.uuid,
                "model": card.model,
                "memMiB": card.mem_mib,
                "units": card.units,
                "maxInstances": card.max_instances,
                "healthy": card.healthy,
                "numa": card.numa,
            }
            for card in cards
        ]
    )


def decode_devices(text: str) -> tuple[Card, ...]:
    """The cards of a node, in index order. Raises AnnotationError."""
    rows = _loads(ANNOTATION_DEVICES, text, list)
    cards = tuple(sorted((_card(row) for row in rows), key=lambda card: card.index))
    for name in ("index", "uuid"):
        if len({getattr(card, name) for card in cards}) != len(cards):
            raise AnnotationError(f"{ANNOTATION_DEVICES}: two cards have the same {name}: {text[:200]}")
    return cards


def _card(row: Any) -> Card:
    if not isinstance(row, dict):
        raise AnnotationError(f"{ANNOTATION_DEVICES}: {row!r} is no JSON object")
    for key, kind in _DEVICE_KEYS.items():
        value = row.get(key)
        if not isinstance(value, kind) or (kind is int and not _is_count(value)):
            raise AnnotationError(f"{ANNOTATION_DEVICES}: {key} is {value!r} in {_dumps(row)[:200]}")
    return Card(
        index=row["index"],
        minor=row["minor"],
        uuid=row["uuid"],
        model=row["model"],
        mem_mib=row["memMiB"],
        units=row["units"],
        max_instances=row["maxInstances"],
        healthy=row["healthy"],
        numa=row["numa"],
    )


def decode_cordon(text: str) -> frozenset[str]:
    """UUIDs of cgpu.aliyun.com/cordon: a JSON list or a comma list. Raises AnnotationError."""
    if not text.lstrip().startswith("["):
        return frozenset(part.strip() for part in text.split(",") if part.strip())
    uuids = _loads(ANNOTATION_CORDON, text, list)
    if not all(isinstance(uuid, str) for uuid in uuids):
        raise AnnotationError(f"{ANNOTATION_CORDON}: a list of card UUIDs is expected, not {text[:200]}")
    return frozenset(uuids)


def encode_allocation(allocation: Allocation) -> str:
    """Value of cgpu.aliyun.com/allocation, the truth."""
    return _dumps(
        {
            name: {uuid: {"mem": share.mem, "core": share.core} for uuid, share in shares.items()}
            for name, shares in allocation.items()
        }
    )


def decode_allocation(text: str) -> dict[str, dict[str, Share]]:
    """The truth read back. Raises AnnotationError."""
    outer = _loads(ANNOTATION_ALLOCATION, text, dict)
    return {name: _shares(name, shares) for name, shares in outer.items()}


def _shares(name: str, shares: Any) -> dict[str, Share]:
    if not isinstance(shares, dict) or not shares:
        raise AnnotationError(f"{ANNOTATION_ALLOCATION}: container {name} has no cards: {shares!r}")
    return {uuid: _share(name, share) for uuid, share in shares.items()}


def _share(name: str, share: Any) -> Share:
    if not isinstance(share, dict) or not set(share) <= {"mem", "core"}:
        raise AnnotationError(
            f'{ANNOTATION_ALLOCATION}: container {name}: expected {{"mem":…,"core":…}}, not {share!r}'
        )
    mem, core = share.get("mem"), share.get("core", 0)
    if not _is_count(mem) or not _is_count(core) or mem < 1 or core > CORE_PER_CARD:
        raise AnnotationError(f"{ANNOTATION_ALLOCATION}: container {name}: mem {mem!r}, core {core!r} are no share")
    return Share(mem, core)


def encode_gpushare(allocation: Allocation, app_names: Sequence[str], cards: Sequence[Card]) -> str:
    """Value of scheduler.framework.gpushare.allocation: container position → GPU index → GiB, app containers only."""
    index = {card.uuid: card.index for card in cards}
    return _dumps(
        {
            str(position): {str(index[uuid]): share.mem for uuid, share in allocation[name].items()}
            for position, name in enumerate(app_names)
            if name in allocation
        }
    )


def decode_gpushare(text: str, app_names: Sequence[str], cards: Sequence[Card]) -> dict[str, dict[str, Share]]:
    """The scheduler framework's form; compute shares are not part of it. Raises AnnotationError."""
    outer = _loads(ANNOTATION_GPUSHARE, text, dict)
    uuids = {str(card.index): card.uuid for card in cards}
    found: dict[str, dict[str, Share]] = {}
    for position, shares in outer.items():
        if not position.isdecimal() or int(position) >= len(app_names) or not isinstance(shares, dict):
            raise AnnotationError(f"{ANNOTATION_GPUSHARE}: no container number {position} in {text[:200]}")
        for gpu, mem in shares.items():
            if gpu not in uuids or not _is_count(mem) or mem < 1:
                raise AnnotationError(f"{ANNOTATION_GPUSHARE}: GPU {gpu!r} with {mem!r} GiB in {text[:200]}")
            found.setdefault(app_names[int(position)], {})[uuids[gpu]] = Share(mem)
    return found


def encode_legacy(claim: Claim, allocation: Allocation, cards: Sequence[Card], now_ns: int) -> dict[str, str]:
    """The older annotations; IDX only when the pod uses one card. `now_ns`: unix time in ns."""
    used = [card for card in cards if any(card.uuid in shares for shares in allocation.values())]
    total = largest_phase((ask.kind, ask.mem) for ask in claim.asks)
    legacy = {
        ANNOTATION_DEV: ",".join(str(card.units) for card in used),
        ANNOTATION_POD: str(total),
        ANNOTATION_ASSUME_TIME: str(now_ns),
        ANNOTATION_ASSIGNED: "true",
    }
    if len(used) == 1:
        legacy[ANNOTATION_IDX] = str(used[0].index)
    return legacy


def decode_legacy(annotations: Mapping[str, str], claim: Claim, cards: Sequence[Card]) -> dict[str, dict[str, Share]]:
    """The older form: every ask of the claim on the card that IDX names. Raises AnnotationError."""
    written = annotations.get(ANNOTATION_IDX, "")
    found = [card for card in cards if str(card.index) == written]
    if not found:
        raise AnnotationError(f"{ANNOTATION_IDX}={written!r}: the node has GPUs {[card.index for card in cards]}")
    total = largest_phase((ask.kind, ask.mem) for ask in claim.asks)
    if annotations.get(ANNOTATION_POD, str(total)) != str(total):
        raise AnnotationError(f"{ANNOTATION_POD}={annotations[ANNOTATION_POD]!r}: the pod's containers ask for {total}")
    return {ask.name: {found[0].uuid: claim.per_card(ask)} for ask in claim.asks}


def encode_all(pod: Pod, claim: Claim, allocation: Allocation, cards: Sequence[Card], now_ns: int) -> dict[str, str]:
    """Every annotation of one binding."""
    return {
        ANNOTATION_ALLOCATION: encode_allocation(allocation),
        ANNOTATION_GPUSHARE: encode_gpushare(allocation, app_names(pod), cards),
        **encode_legacy(claim, allocation, cards, now_ns),
    }


def allocation_of(pod: Pod, claim: Claim, cards: Sequence[Card]) -> dict[str, dict[str, Share]] | None:
    """What a bound pod was given, from the first form that is present; None when there is none.

    `resized` replaces sizes of the containers it names. Raises AnnotationError.
    """
    readers: tuple[tuple[str, Callable[[str], dict[str, dict[str, Share]]]], ...] = (
        (ANNOTATION_ALLOCATION, decode_allocation),
        (ANNOTATION_GPUSHARE, lambda text: decode_gpushare(text, app_names(pod), cards)),
        (ANNOTATION_IDX, lambda _: decode_legacy(pod.annotations, claim, cards)),
    )
    for key, read in readers:
        if key in pod.annotations:
            return _resized(read(pod.annotations[key]), pod.annotations.get(ANNOTATION_RESIZED))
    return None


def app_names(pod: Pod) -> tuple[str, ...]:
    """Names in the order of spec.containers."""
    return tuple(container.name for container in pod.containers if container.kind is ContainerKind.APP)


def decode_resize(key: str, text: str) -> dict[str, int]:
    """container name → new GiB, from cgpu.aliyun.com/resize-request or resized. Raises AnnotationError."""
    outer = _loads(key, text, dict)
    for name, size in outer.items():
        if not isinstance(size, dict) or set(size) != {"mem"} or not _is_count(size["mem"]) or size["mem"] < 1:
            raise AnnotationError(f'{key}: container {name}: expected {{"mem":<GiB, at least 1>}}, not {size!r}')
    return {name: size["mem"] for name, size in outer.items()}


def _resized(allocation: dict[str, dict[str, Share]], text: str | None) -> dict[str, dict[str, Share]]:
    if text is None:
        return allocation
    for name, mem in decode_resize(ANNOTATION_RESIZED, text).items():
        shares = allocation.get(name)
        if not shares or mem % len(shares):
            raise AnnotationError(f"{ANNOTATION_RESIZED}: container {name} cannot have {mem} GiB: {text[:200]}")
        allocation[name] = {uuid: Share(mem // len(shares), share.core) for uuid, share in shares.items()}
    return allocation


def _is_count(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def _loads(key: str, text: str, kind: type) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise AnnotationError(f"{key}: no JSON: {text[:200]!r} ({error})") from error
    if not isinstance(value, kind):
        raise AnnotationError(f"{key}: a JSON {kind.__name__} is expected, not {text[:200]!r}")
    return value


def _dumps(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
