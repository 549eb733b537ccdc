# SPDX-License-Identifier: Apache-2.0
"""The books' half of a live resize: room is found and booked before a share grows, and given up after one has shrunk."""

import asyncio
import json
import logging
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, Protocol

from cgpu.core.errors import InputError, UnavailableError
from cgpu.core.model import Claim, Pod, Share
from cgpu.core.names import ANNOTATION_RESIZE_REQUEST, ANNOTATION_RESIZE_STATUS, ANNOTATION_RESIZED
from cgpu.core.pods import claim_of
from cgpu.core.resize import Sizes, Writes, books_write, spread, view_of_pod
from cgpu.core.usage import Holding, holdings_of
from extender.books import Booking, Books, Hold

log: Final = logging.getLogger(__name__)

_EVERY_S: Final = 30.0
_AGAIN_S: Final = 2.0
_PAUSE_S: Final = 0.2  # changes come in bursts
_HOLD_S: Final = 30.0
_KEYS: Final = frozenset({ANNOTATION_RESIZE_REQUEST, ANNOTATION_RESIZE_STATUS})


class Cluster(Protocol):
    """What a resize needs of the API server."""

    async def get(self, path: str) -> bytes:
        """Any object. Raises UnavailableError."""

    async def swap_pod_annotations(self, seen: Pod, annotations: Mapping[str, str | None]) -> bool:
        """False when the pod's annotations are not those of `seen` any more. Raises UnavailableError."""


class Leadership:
    """Whether this extender is the one that binds: two that book at once could both take the last room of a card."""

    def __init__(self, cluster: Cluster, lease: str, host: str = "") -> None:
        """`lease`: namespace/name, "" where there is one extender; `host`: this machine's name as kube-scheduler has it."""
        self._cluster = cluster
        self._lease = lease
        self._host = host or socket.gethostname()

    async def leads(self) -> bool:
        """Asked before each change of the books. Raises UnavailableError."""
        if not self._lease:
            return True
        namespace, _, name = self._lease.partition("/")
        raw = await self._cluster.get(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}")
        holder = str(json.loads(raw).get("spec", {}).get("holderIdentity", ""))
        return holder.rpartition("_")[0] == self._host  # kube-scheduler writes <host name>_<uuid>


class Resizer:
    """Looks at bound pods whose annotations speak of a resize."""

    def __init__(
        self,
        cluster: Cluster,
        books: Books,
        leadership: Leadership,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._books = books
        self._leadership = leadership
        self._clock = clock
        self._growing: dict[str, Pod] = {}  # by UID: as they were when their room was held

    async def run(self, changes: asyncio.Event) -> None:
        """A turn after each change of a pod, for ever; what could not be written is tried again."""
        while True:
            changes.clear()
            done = await self.turn()
            with suppress(TimeoutError):
                async with asyncio.timeout(_EVERY_S if done else _AGAIN_S):
                    await changes.wait()
            await asyncio.sleep(_PAUSE_S)

    async def turn(self) -> bool:
        """Every such pod once. False when the API server could not be told of one."""
        self._let_go()
        done = True
        for pod in [pod for pod in self._books.pods.values() if _KEYS & pod.annotations.keys()]:
            try:
                await self._follow(pod)
            except InputError as error:
                log.warning("%s is not resized: %s", pod.key, error)
            except UnavailableError as error:
                log.warning("%s: the resize goes on later: %s", pod.key, error)
                done = False
        return done

    def _let_go(self) -> None:
        """Room that the annotations show by now, or that nobody wants any more, is held no longer."""
        for uid, seen in list(self._growing.items()):
            pod = self._books.pods.get(uid)
            if pod is None or pod.annotations != seen.annotations:
                self._end_hold(uid)

    def _end_hold(self, uid: str) -> None:
        self._books.release(_holder(uid))
        self._growing.pop(uid, None)

    async def _follow(self, pod: Pod) -> None:
        claim, booking = claim_of(pod), self._books.booking(pod.uid)
        if claim is None or booking is None:
            return
        view = view_of_pod(pod, claim, booking.allocation)
        writes = books_write(view, lambda sizes: self._no_room(booking, claim, sizes))
        if not writes or not await self._leadership.leads():
            return
        # asked again: others may have booked while the lease was read
        writes = books_write(view, lambda sizes: self._no_room(booking, claim, sizes))
        if self._books.booking(pod.uid) is booking:
            await self._write(pod, booking, claim, writes)

    async def _write(self, pod: Pod, booking: Booking, claim: Claim, writes: Writes) -> None:
        more = self._more(booking, claim, json.loads(writes.get(ANNOTATION_RESIZED) or "{}"))
        if more:
            self._books.hold(Hold(_holder(pod.uid), booking.node, more, self._clock() + _HOLD_S))
            self._growing[pod.uid] = pod
        if await self._cluster.swap_pod_annotations(pod, writes):
            log.info("%s: %s", pod.key, "; ".join(f"{key}: {text}" for key, text in writes.items()))
        else:
            self._end_hold(pod.uid)  # the watch brings what has changed

    def _more(self, booking: Booking, claim: Claim, rows: Mapping[str, Mapping[str, int]]) -> dict[str, Holding]:
        """What a pod would hold beyond what it holds, by card."""
        sizes = {name: row["mem"] for name, row in rows.items()}
        after = holdings_of(claim, {**booking.allocation, **_shares(booking, sizes)})
        held = booking.holdings
        return {
            uuid: Holding(row.mem - held[uuid].mem, 0, 0) for uuid, row in after.items() if row.mem > held[uuid].mem
        }

    def _no_room(self, booking: Booking, claim: Claim, sizes: Sizes) -> str:
        """Why the cards do not take these sizes, "" when they do."""
        now, own = self._clock(), _holder(booking.pod.uid)
        holds = self._books.holds_by_node(now, own).get(booking.node, [])
        state = self._books.state_for(booking.node, booking.pod.uid, holds)
        more = self._more(booking, claim, {name: {"mem": mem} for name, mem in sizes.items()})
        for card in state.cards:
            wanted = more.get(card.card.uuid)
            if wanted is None:
                continue
            if not card.card.healthy:
                return f"GPU {card.card.index} of {booking.node} is unhealthy"
            if card.free < wanted.mem:
                return f"GPU {card.card.index} of {booking.node} has {card.free} GiB free and {wanted.mem} more are asked for"
        known = {card.card.uuid for card in state.cards}
        return "" if more.keys() <= known else f"the card is not on node {booking.node} any more"


def _shares(booking: Booking, sizes: Sizes) -> dict[str, dict[str, Share]]:
    return {name: spread(booking.allocation[name], mem) for name, mem in sizes.items() if name in booking.allocation}


def _holder(uid: str) -> str:
    return f"resize {uid}"
