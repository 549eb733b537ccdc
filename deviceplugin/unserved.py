# SPDX-License-Identifier: Apache-2.0
"""Containers that run without the share that their pod was bound with: found, and told on the pod.

The kubelet asks us for a container's devices only where it knows our resource when it admits the pod. After a power cut
that lost its checkpoint it starts the node's pods before the plugin has registered, and so without ids: the pod keeps its
place in the books and has no GPU. Nobody refused anything, so nothing else would say it.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from cgpu.core.errors import InputError, UnavailableError
from cgpu.core.model import Card, Claim, ContainerKind, Pod
from cgpu.core.names import EVENT_ALLOCATE_FAILED, RESOURCE_CORE, RESOURCE_MEM
from cgpu.core.pods import claim_of, holds
from deviceplugin.grants import has_allocation
from deviceplugin.handover import Kubelet, Recorder
from deviceplugin.pairing import Books, Entry
from deviceplugin.records import Records
from deviceplugin.stores import PodStore

log = logging.getLogger(__name__)
_EVERY_S: Final = 30.0
_SETTLE_S: Final = 1.0

Granted = Collection[tuple[str, str]]
"""(UID of the pod, container) of everything that was handed out."""


@dataclass(frozen=True, slots=True)
class Unserved:
    """One start of a container that we gave nothing; `asked`: its resources as they are written in the pod."""

    pod_uid: str
    namespace: str
    pod: str
    container: str
    kind: ContainerKind
    start: str
    asked: str

    def text(self) -> str:
        """For the reader of `kubectl describe pod`."""
        return (
            f"container {self.container} asks for {self.asked} and runs without it: the kubelet started it without the"
            " devices that the pod was bound with, as after a power cut that took the kubelet's record, or while the"
            " device plugin was not registered; delete the pod, so that its owner makes it anew"
        )


def doubtful(pods: Iterable[Pod], granted: Granted, cards: Sequence[Card], booted: float = 0.0) -> Iterator[Unserved]:
    """Containers that run, of pods that were bound with an allocation, and that were given nothing.

    `booted`: when the machine started, seconds since 1970; what the API server says of earlier starts is out of date.
    """
    for pod in pods:
        if not pod.running or pod.deleting or not holds(pod) or not has_allocation(pod, cards):
            continue
        try:
            claim = claim_of(pod)
        except InputError:
            continue
        yield from _ungranted(pod, claim, granted, booted) if claim is not None else ()


def _ungranted(pod: Pod, claim: Claim, granted: Granted, booted: float) -> Iterator[Unserved]:
    for ask in claim.asks:
        start = pod.running.get(ask.name)
        if start is None or (pod.uid, ask.name) in granted or _seconds(start.at) < booted:
            continue
        core = f" and {RESOURCE_CORE}: {ask.core}" if ask.core else ""
        asked = f"{RESOURCE_MEM}: {ask.mem}{core}"
        yield Unserved(pod.uid, pod.namespace, pod.name, ask.name, ask.kind, start.id, asked)


def _seconds(written: str) -> float:
    """RFC 3339 → seconds since 1970; before everything where it is not written."""
    try:
        return datetime.fromisoformat(written).timestamp()
    except ValueError:
        return -1.0


def is_without_ids(row: Unserved, books: Books) -> bool:
    """Whether the kubelet has the pod on record, and for this container no ids.

    Plain init containers stand in the checkpoint alone: without it nothing is known of them.
    """
    if (row.namespace, row.pod) not in books.active:
        return False
    if row.kind is ContainerKind.INIT and books.checkpoint is None:
        return False
    mine = [entry for entry in books.entries() if entry.container == row.container and _is_of(row, entry)]
    return not any(entry.ids and entry.resource == RESOURCE_MEM for entry in mine)


def _is_of(row: Unserved, entry: Entry) -> bool:
    """Whether an entry is of the row's pod: the checkpoint knows UIDs, PodResources names."""
    if entry.uid:
        return entry.uid == row.pod_uid
    return (entry.namespace, entry.name) == (row.namespace, row.pod)


def booted_at(proc_root: Path) -> float:
    """When this machine started, seconds since 1970 (`btime` of /proc/stat); 0 where it cannot be read."""
    try:
        lines = (proc_root / "stat").read_text().splitlines()
    except OSError:
        return 0.0
    return next((float(line.split()[1]) for line in lines if line.startswith("btime ")), 0.0)


class UnservedWatch:
    """Looks for such containers; what two looks in a row have found is told once."""

    def __init__(
        self,
        kubelet: Kubelet,
        pods: PodStore,
        records: Records,
        recorder: Recorder,
        *,
        cards: Callable[[], Sequence[Card]],
        proc_root: Path,
    ) -> None:
        """`cards`: those of this node now."""
        self._kubelet = kubelet
        self._pods = pods
        self._records = records
        self._recorder = recorder
        self._cards = cards
        self._proc_root = proc_root
        self._found: frozenset[Unserved] = frozenset()
        self._told: frozenset[Unserved] = frozenset()

    @property
    def rows(self) -> tuple[Unserved, ...]:
        """What was told and still is so."""
        return tuple(sorted(self._told, key=lambda row: (row.namespace, row.pod, row.container)))

    async def run(self) -> None:
        """A look soon after pods changed, another soon after one that found something new, every 30 s in any case."""
        while True:
            change = self._pods.signal.next()
            if not await self._look():
                with suppress(TimeoutError):
                    async with asyncio.timeout(_EVERY_S):  # wait_for of Python 3.11 may lose a cancellation
                        await change.wait()
            await asyncio.sleep(_SETTLE_S)

    async def _look(self) -> bool:
        """Whether another look is due soon."""
        try:
            await self.turn()
        except UnavailableError as error:
            log.warning("whether containers run without their share is not known now: %s", error)
            return False
        return bool(self._found - self._told)

    async def turn(self) -> None:
        """One look. Raises UnavailableError when the kubelet cannot be asked.

        What is judged was seen running before the kubelet was asked, and must be unchanged afterwards.
        """
        seen = self._doubtful()
        self._told &= seen
        books = await self._kubelet.read() if seen else Books()
        found = frozenset(row for row in seen & self._doubtful() if is_without_ids(row, books))
        for row in sorted((found & self._found) - self._told, key=Unserved.text):
            self._tell(row)
        self._told |= found & self._found
        self._found = found

    def _doubtful(self) -> frozenset[Unserved]:
        granted = {(grant.pod_uid, grant.container) for grant in self._records}
        return frozenset(doubtful(self._pods.pods.values(), granted, self._cards(), booted_at(self._proc_root)))

    def _tell(self, row: Unserved) -> None:
        log.warning("%s/%s: %s", row.namespace, row.pod, row.text())
        self._recorder.pod(self._pods.pods[row.pod_uid], EVENT_ALLOCATE_FAILED, row.text(), warning=True)
