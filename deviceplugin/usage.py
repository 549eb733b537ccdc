# SPDX-License-Identifier: Apache-2.0
"""What each card and each container on it has, and really uses: the rows behind /usage and /metrics. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from cgpu.core.annotations import allocation_of
from cgpu.core.errors import InputError
from cgpu.core.memory import visible_bytes
from cgpu.core.model import Card, Pod
from cgpu.core.pods import claim_of, holds
from cgpu.core.usage import holdings_of
from cgpu.procfs import Instance
from deviceplugin.grants import Grant, weight_of
from deviceplugin.unserved import Unserved


@dataclass(frozen=True, slots=True)
class GpuRow:
    """A card. `used_bytes` None: nothing on this node can tell."""

    gpu: int
    uuid: str
    healthy: bool
    total_bytes: int
    allocated_bytes: int
    used_bytes: int | None
    driver_used_bytes: int | None = None  # by whomever, as the driver counts
    outside_bytes: int | None = None  # limits of instances that no pod stands behind, such as Docker's


@dataclass(frozen=True, slots=True)
class InstanceRow:
    """A container's share of a card. None: only the kernel module could tell, and it is not at work here."""

    gpu: int
    uuid: str
    namespace: str
    pod: str
    container: str
    instance: str
    limit_bytes: int
    weight: int
    used_bytes: int | None = None
    utilization: float | None = None
    oom: int | None = None


class BusyMeter:
    """Busy time → part of the time, since a look that is a second old at least; looks may come as often as one likes."""

    _LEAST_S: Final = 1.0

    def __init__(self) -> None:
        self._base: tuple[float, dict[tuple[str, int], int]] | None = None
        self._next: tuple[float, dict[tuple[str, int], int]] | None = None

    def ratios(self, rows: Iterable[Instance], now: float) -> dict[tuple[str, int], float]:
        """(instance, minor) → 0..1 for those that were there before; `now` in seconds of any clock."""
        seen = {(row.id, row.gpu): row.busy_ns for row in rows}
        if self._next is None or now - self._next[0] >= self._LEAST_S:
            self._base, self._next = self._next, (now, seen)
        if self._base is None:
            return {}
        then, before = self._base
        spent = (now - then) * 1e9
        return {key: min(1.0, max(0, busy - before[key]) / spent) for key, busy in seen.items() if key in before}


def instance_rows(
    grants: Iterable[Grant],
    cards: Sequence[Card],
    kernel: Iterable[Instance] = (),
    busy: Mapping[tuple[str, int], float] | None = None,
) -> list[InstanceRow]:
    """One row a grant and card, in card order. `busy`: (instance, minor) → part of the last sampling time."""
    seen = {(row.id, row.gpu): row for row in kernel}
    rows = [
        _instance_row(grant, card, seen.get((grant.instance, card.minor)), busy or {})
        for grant in grants
        for card in cards
        if card.uuid in grant.shares
    ]
    return sorted(rows, key=lambda row: (row.gpu, row.namespace, row.pod, row.container))


def _instance_row(
    grant: Grant, card: Card, kernel: Instance | None, busy: Mapping[tuple[str, int], float]
) -> InstanceRow:
    share = grant.shares[card.uuid]
    return InstanceRow(
        gpu=card.index,
        uuid=card.uuid,
        namespace=grant.namespace,
        pod=grant.pod,
        container=grant.container,
        instance=grant.instance,
        limit_bytes=kernel.mem if kernel else visible_bytes(card.mem_mib, share.mem, card.units),
        weight=kernel.weight if kernel else weight_of(grant),
        used_bytes=kernel.used if kernel else None,
        utilization=busy.get((grant.instance, card.minor)),
        oom=kernel.oom if kernel else None,
    )


def gpu_rows(
    cards: Sequence[Card],
    pods: Iterable[Pod],
    instances: Sequence[InstanceRow],
    kernel: Sequence[Instance] = (),
    driver_used: Mapping[str, int] | None = None,
) -> list[GpuRow]:
    """One row a card; allocated is what the pods' annotations hold, in the units of GiB that were booked.

    `driver_used`: UUID → bytes, of the cards that the driver tells of.
    """
    booked = _booked(pods, cards)
    ours = {row.instance for row in instances}
    return [
        GpuRow(
            gpu=card.index,
            uuid=card.uuid,
            healthy=card.healthy,
            total_bytes=card.mem_mib << 20,
            allocated_bytes=booked.get(card.uuid, 0) << 30,
            used_bytes=_used(card, instances),
            driver_used_bytes=(driver_used or {}).get(card.uuid),
            outside_bytes=sum(row.mem for row in kernel if row.gpu == card.minor and row.id not in ours)
            if kernel
            else None,
        )
        for card in cards
    ]


def _used(card: Card, instances: Sequence[InstanceRow]) -> int | None:
    known = [row.used_bytes for row in instances if row.uuid == card.uuid and row.used_bytes is not None]
    return sum(known) if known else None


def _booked(pods: Iterable[Pod], cards: Sequence[Card]) -> dict[str, int]:
    found: dict[str, int] = {}
    for pod in pods:
        try:
            claim = claim_of(pod)
            allocation = allocation_of(pod, claim, cards) if claim is not None and holds(pod) else None
        except InputError:
            continue
        for uuid, held in holdings_of(claim, allocation).items() if claim and allocation else ():
            found[uuid] = found.get(uuid, 0) + held.mem
    return found


def as_json(
    node: str,
    mode: str,
    problem: str,
    gpus: Iterable[GpuRow],
    rows: Iterable[InstanceRow],
    *,
    unserved: Iterable[Unserved] = (),
) -> dict[str, Any]:
    """The body of /usage; keys in camel case, sizes in bytes, unknown values null."""
    return {
        "node": node,
        "mode": mode,
        "problem": problem,
        "gpus": [_camel(asdict(row)) for row in gpus],
        "instances": [_camel(asdict(row)) for row in rows],
        "unserved": [{"namespace": row.namespace, "pod": row.pod, "container": row.container} for row in unserved],
    }


def _camel(row: Mapping[str, Any]) -> dict[str, Any]:
    return {_name(key): value for key, value in row.items()}


def _name(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(word.capitalize() for word in rest)
