# SPDX-License-Identifier: Apache-2.0
"""The node's half of a live resize: the kernel follows what the annotations allow, and the pod is told what came of it."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, Protocol

from cgpu.core.annotations import allocation_of
from cgpu.core.errors import InputError, UnavailableError
from cgpu.core.model import Card, Pod
from cgpu.core.names import ANNOTATION_RESIZE_REQUEST, ANNOTATION_RESIZE_STATUS, ANNOTATION_RESIZED
from cgpu.core.pods import claim_of, holds
from cgpu.core.resize import View, limits, node_writes, spread, view_of_pod
from deviceplugin.grants import Grant
from deviceplugin.handover import Handover
from deviceplugin.records import Records
from deviceplugin.stores import PodStore

log = logging.getLogger(__name__)
_EVERY_S: Final = 30.0
_AGAIN_S: Final = 2.0
_KEYS: Final = frozenset({ANNOTATION_RESIZE_REQUEST, ANNOTATION_RESIZED, ANNOTATION_RESIZE_STATUS})


class Writer(Protocol):
    """Writes annotations of pods."""

    async def swap_pod_annotations(self, seen: Pod, annotations: Mapping[str, str | None]) -> bool:
        """False when the pod's annotations are not those of `seen` any more. Raises UnavailableError."""


class Resizer:
    """Looks at the pods of this node that were given something, and whose annotations speak of a resize."""

    def __init__(
        self,
        writer: Writer,
        pods: PodStore,
        records: Records,
        handover: Handover,
        cards: Callable[[], Sequence[Card]],
    ) -> None:
        """`cards`: those of this node now."""
        self._writer = writer
        self._pods = pods
        self._records = records
        self._handover = handover
        self._cards = cards

    async def run(self) -> None:
        """A turn after each change of a pod, for ever; what could not be done is tried again."""
        while True:
            change = self._pods.signal.next()
            done = await self.turn()
            with suppress(TimeoutError):
                async with asyncio.timeout(_EVERY_S if done else _AGAIN_S):
                    await change.wait()

    async def turn(self) -> bool:
        """Every such pod once. False when the API server could not be told of one."""
        done = True
        for uid in self._records.pod_uids():
            pod = self._pods.pods.get(uid)
            if pod is None or not holds(pod) or not _KEYS & pod.annotations.keys():
                continue
            try:
                async with self._handover.lock_of(uid):
                    await self._follow(self._pods.pods.get(uid, pod))
            except InputError as error:
                log.warning("%s is not resized: %s", pod.key, error)
            except UnavailableError as error:
                log.warning("%s: the resize goes on later: %s", pod.key, error)
                done = False
        return done

    async def _follow(self, pod: Pod) -> None:
        claim = claim_of(pod)
        allocation = allocation_of(pod, claim, self._cards()) if claim is not None else None
        if claim is None or allocation is None:
            return
        view = view_of_pod(pod, claim, allocation)
        grants = [grant for grant in self._records if grant.pod_uid == pod.uid and grant.container in view.booked]
        known = {card.uuid for card in self._cards()}
        if not all(grant.shares.keys() <= known for grant in grants):
            raise UnavailableError("its cards are not known yet, or not any more")
        failure = await self._set_limits(view, grants)
        held = {grant.container: _size(grant) for grant in self._records if grant.pod_uid == pod.uid}
        if not {*(view.request or {}), *view.status.sizes} <= held.keys():
            return  # a container that has not started: its start reads the annotations too
        writes = node_writes(view, held, failure)
        if writes and await self._writer.swap_pod_annotations(pod, writes):
            log.info("%s: resize-status: %s", pod.key, writes[ANNOTATION_RESIZE_STATUS])

    async def _set_limits(self, view: View, grants: Sequence[Grant]) -> str:
        """Why the kernel holds the containers to what it did before, "" when it follows the annotations.

        Raises UnavailableError when it does neither.
        """
        wanted, tried = limits(view), []
        for grant in grants:
            tried.append(grant)
            try:
                await self._handover.resize(grant, spread(grant.shares, wanted[grant.container]))
            except UnavailableError as error:
                for before in tried:
                    await self._handover.resize(before, before.shares)
                return str(error)
        return ""


def _size(grant: Grant) -> int:
    return sum(share.mem for share in grant.shares.values())
