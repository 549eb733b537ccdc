# SPDX-License-Identifier: Apache-2.0
"""bind: choose the cards, reserve them, send one request, and be sure of what came of it.

The Binding carries the annotations and the pod's UID, so the API server writes node and allocation together or not
at all. The cards are reserved before the first await; a repeat for the same pod and node waits for the same answer.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from cgpu.core.annotations import encode_all
from cgpu.core.errors import ClaimError, ConflictError, NotFoundError, UnavailableError
from cgpu.core.model import Allocation, Pod
from cgpu.core.pods import holds
from cgpu.core.usage import holdings_of
from extender.books import Booking, Books, Hold
from extender.setbacks import Setbacks
from extender.verbs import Verbs, claim_for
from extender.wire import BindRequest

log: Final = logging.getLogger(__name__)

CONFIRM_SECONDS: Final = 30.0  # after this an assumption that no watch event confirmed is looked up


class Result(StrEnum):
    """What came of a bind: the label of cgpu_extender_binds_total."""

    BOUND = "bound"
    REPEATED = "repeated"
    REFUSED = "refused"
    CONFLICT = "conflict"
    FAILED = "failed"


class Cluster(Protocol):
    """What a bind needs of the API server."""

    async def get_pod(self, namespace: str, name: str) -> Pod:
        """The pod as it is now."""

    async def bind(self, namespace: str, name: str, uid: str, node: str, annotations: Mapping[str, str]) -> None:
        """The one request."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """`error` is "" when the pod is on the node."""

    result: Result
    error: str = ""


class Binder:
    """Binds one pod at a time a UID; different pods at once."""

    def __init__(
        self,
        cluster: Cluster,
        verbs: Verbs,
        setbacks: Setbacks,
        clock: Callable[[], float] = time.monotonic,
        unix_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._cluster = cluster
        self._verbs = verbs
        self._setbacks = setbacks
        self._clock = clock
        self._unix_ns = unix_ns
        self._under_way: dict[str, tuple[str, asyncio.Task[Outcome]]] = {}
        self._unsure: dict[str, float] = {}  # UID → when its assumption has to be looked up

    @property
    def _books(self) -> Books:
        return self._verbs.books

    async def bind(self, request: BindRequest) -> Outcome:
        """Bind, or say why not. The work goes on when the caller hangs up: its outcome must reach the books."""
        node, task = self._under_way.get(request.uid, ("", None))
        if task is None:
            node, task = request.node, asyncio.create_task(self._bind(request))
            self._under_way[request.uid] = (node, task)
            task.add_done_callback(lambda _: self._under_way.pop(request.uid, None))
        elif node != request.node:
            return Outcome(Result.REFUSED, f"pod {request.name} is being bound to {node}: wait for that to end")
        return await asyncio.shield(task)

    async def _bind(self, request: BindRequest) -> Outcome:
        outcome = await self._attempt(request)
        if outcome.error:
            self._setbacks.failed(request.uid, request.node, self._clock())
            log.warning("bind of %s/%s to %s: %s", request.namespace, request.name, request.node, outcome.error)
        else:
            self._setbacks.done(request.uid)
        return outcome

    async def _attempt(self, request: BindRequest) -> Outcome:
        try:
            pod = self._books.known(request.uid) or await self._cluster.get_pod(request.namespace, request.name)
        except UnavailableError as error:
            return Outcome(Result.FAILED, str(error))
        refusal = _unfit(pod, request)
        if refusal is not None:
            return refusal
        reserved = self._reserve(pod, request)
        if isinstance(reserved, Outcome):
            return reserved
        try:
            await self._cluster.bind(request.namespace, request.name, request.uid, request.node, reserved)
        except (ConflictError, NotFoundError) as error:
            return await self._learn(request, Outcome(Result.CONFLICT, str(error)), sure=True)
        except UnavailableError as error:
            return await self._learn(request, Outcome(Result.FAILED, str(error)), sure=False)
        return Outcome(Result.BOUND)

    def _reserve(self, pod: Pod, request: BindRequest) -> dict[str, str] | Outcome:
        """Cards chosen and counted in one step: the annotations, or why there are none."""
        try:
            claim = claim_for(pod)
        except ClaimError as error:
            return Outcome(Result.REFUSED, str(error))
        if claim is None:
            return {}
        shares = self._earlier(request) or self._verbs.choose(pod, claim, request.node, self._clock())
        if isinstance(shares, str):
            return Outcome(Result.REFUSED, shares)
        self._books.assume(Booking(pod, request.node, shares, holdings_of(claim, shares)))
        self._expect(request.uid)
        cards = self._books.offers[request.node].cards
        return encode_all(pod, claim, shares, cards, self._unix_ns())

    def _earlier(self, request: BindRequest) -> Allocation | None:
        """What an attempt of unknown outcome gave: the same again on the same node, kept for a while on another."""
        own = self._books.assumed.get(request.uid)
        if own is None or own.node == request.node:
            return own.allocation if own is not None else None
        self._books.hold(Hold(f"late {request.uid}", own.node, own.holdings, self._clock() + CONFIRM_SECONDS))
        return None

    async def _learn(self, request: BindRequest, failed: Outcome, *, sure: bool) -> Outcome:
        """The binding failed, or its answer was lost: look where the pod is."""
        try:
            pod = await self._cluster.get_pod(request.namespace, request.name)
        except NotFoundError:
            self._books.forget(request.uid)
            return failed
        except UnavailableError:
            return failed  # it may have happened: the cards stay reserved until somebody knows
        if pod.uid != request.uid:
            self._books.forget(request.uid)
        elif pod.node:
            self._books.set_pod(pod)
            self._books.forget(request.uid)
            return Outcome(Result.REPEATED) if pod.node == request.node else failed
        elif sure:
            self._books.forget(request.uid)  # else the request may still be on its way
        return failed

    def _expect(self, uid: str) -> None:
        self._unsure[uid] = self._clock() + CONFIRM_SECONDS

    async def settle(self) -> None:
        """Look up assumptions that no watch event has confirmed in time. Called every few seconds."""
        now = self._clock()
        for uid, until in list(self._unsure.items()):
            booking = self._books.assumed.get(uid)
            if booking is None:
                del self._unsure[uid]
            elif now >= until and uid not in self._under_way:
                await self._settle(uid, booking)

    async def _settle(self, uid: str, booking: Booking) -> None:
        try:
            pod = await self._cluster.get_pod(booking.pod.namespace, booking.pod.name)
        except NotFoundError:
            self._books.drop_pod(uid)
            return
        except UnavailableError:
            return  # still not known: asked again at the next call
        if pod.uid != uid:
            self._books.drop_pod(uid)
        elif uid in self._books.assumed and uid not in self._under_way:
            self._books.forget(uid)
            self._books.set_pod(pod)


def _unfit(pod: Pod, request: BindRequest) -> Outcome | None:
    if pod.uid != request.uid:
        return Outcome(Result.CONFLICT, f"pod {pod.key} has UID {pod.uid} now, not {request.uid}: it was replaced")
    if pod.node == request.node:
        return Outcome(Result.REPEATED)
    if pod.node:
        return Outcome(Result.CONFLICT, f"pod {pod.key} is bound to {pod.node} already")
    if pod.deleting or not holds(pod):
        return Outcome(Result.CONFLICT, f"pod {pod.key} is being deleted or has ended")
    return None
