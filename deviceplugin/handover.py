# SPDX-License-Identifier: Apache-2.0
"""PreStartContainer: from device ids to the container that holds them, and what it is given."""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol
from weakref import WeakValueDictionary

from cgpu.cdi import CdiFolder
from cgpu.core.errors import CgpuError, PlacementError, UnavailableError
from cgpu.core.model import Card, Pod, Share
from cgpu.core.names import EVENT_ALLOCATE_FAILED, EVENT_ALLOCATED, Mode
from deviceplugin.grants import Grant, environment, grant_of, has_allocation
from deviceplugin.instances import Backends
from deviceplugin.pairing import Books, is_recorded, pair
from deviceplugin.records import Records
from deviceplugin.stores import PodStore

log = logging.getLogger(__name__)
WAIT_S: Final = 5.0
_LOOK_AGAIN_S: Final = 0.5
_PROMISE: Final = {
    Mode.SHARE: "nothing enforces it",
    Mode.CGPU: "memory is enforced",
    Mode.CORE_MEM: "memory and compute are enforced",
}


class Kubelet(Protocol):
    """Who holds which ids."""

    async def read(self) -> Books:
        """The kubelet's books now. Raises UnavailableError."""


class Recorder(Protocol):
    """Writes events; never blocks and never fails."""

    def pod(self, pod: Pod, reason: str, message: str, *, warning: bool = False) -> None:
        """An event on a pod."""

    def node(self, reason: str, message: str, *, warning: bool = True) -> None:
        """An event on this node."""


class Policy(Protocol):
    """Which pods may have a share at all."""

    async def refusal(self, pod: Pod) -> str:
        """Why not, "" when it may. Raises UnavailableError."""


@dataclass(frozen=True, slots=True)
class Serving:
    """What the node offers at this moment; `problem`: why nothing can be handed out, "" when all is well."""

    cards: tuple[Card, ...] = ()
    mode: Mode = Mode.DEFAULT
    problem: str = "the cards have not been looked at yet"


class Handover:
    """Hands shares out."""

    def __init__(
        self,
        kubelet: Kubelet,
        pods: PodStore,
        records: Records,
        *,
        cdi: CdiFolder,
        backends: Backends,
        recorder: Recorder,
        serving: Callable[[], Serving],
        policy: Policy,
        high_priority_classes: Collection[str] = (),
        wait_s: float = WAIT_S,
    ) -> None:
        """`serving`: what the node offers now; `wait_s`: how long the binding's annotation may take to arrive."""
        self._serving = serving
        self._policy = policy
        self._kubelet = kubelet
        self._pods = pods
        self._records = records
        self._cdi = cdi
        self._backends = backends
        self._recorder = recorder
        self._high = frozenset(high_priority_classes)
        self.wait_s = wait_s
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def lock_of(self, pod_uid: str) -> asyncio.Lock:
        """Held while shares of the pod are changed: a start and a resize read the pod and act as one step each."""
        return self._locks.setdefault(pod_uid, asyncio.Lock())

    async def start(self, ids: Collection[str]) -> Grant:
        """Give the container that holds `ids` its share, again at every restart.

        Raises PlacementError, InputError or UnavailableError; the text is what `kubectl describe pod` shows. After an
        error the books are as before.
        """
        # 1 whose ids are these, and has the binding arrived?
        found, container = await self._holder(ids)
        async with self.lock_of(found.uid):
            pod = self._pods.pods.get(found.uid, found)
            try:
                grant, before = await self._give(pod, container, ids)
            except CgpuError as error:
                self._recorder.pod(pod, EVENT_ALLOCATE_FAILED, str(error), warning=True)
                raise
        if before != grant:
            self._recorder.pod(pod, EVENT_ALLOCATED, self._say(grant))
        return grant

    async def _give(self, pod: Pod, container: str, ids: Collection[str]) -> tuple[Grant, Grant | None]:
        """The container's grant, made, and what it had before."""
        # 2 what does the annotation say, and may it?
        await self._check_policy(pod)
        grant = self._decide(pod, container, ids)
        # 3 from here the share counts, so that two starts at once cannot both pass the card
        before = self._records.get(grant.hash)
        self._records.put(grant)
        # 4 the instance, then the CDI file that the runtime reads in a moment
        try:
            await asyncio.to_thread(self._make, grant, pod)
        except CgpuError:
            self._take_back(grant, before)
            raise
        return grant, before

    async def resize(self, grant: Grant, shares: Mapping[str, Share]) -> None:
        """Hold a running container to other sizes. Raises UnavailableError; then its instance is to be set again.

        The caller has the pod's lock.
        """
        changed = replace(grant, shares=shares)
        if not await asyncio.to_thread(self._backends.of(grant.mode).adopt, changed, self._serving().cards):
            raise UnavailableError(f"container {grant.container} has no instance {grant.instance} in the kernel")
        if self._records.get(grant.hash) != changed:
            self._records.put(changed)

    async def _holder(self, ids: Collection[str]) -> tuple[Pod, str]:
        end = asyncio.get_running_loop().time() + self.wait_s
        books = await self._kubelet.read()
        while True:
            change = self._pods.signal.next()
            found = pair(ids, books, self._pods.pods)
            if found is not None and has_allocation(found[0], self._serving().cards):
                return found
            left = end - asyncio.get_running_loop().time()
            if left <= 0:
                break
            try:
                await asyncio.wait_for(change.wait(), min(left, _LOOK_AGAIN_S))
            except TimeoutError:
                books = await self._kubelet.read()
        if found is not None:
            return found  # the decision says what is missing, on the pod
        if is_recorded(ids, books):
            raise UnavailableError(
                "the API server has told this node of no pod that may have what these ids stand for: the kubelet tries"
                " again; a static pod, or one that has ended, gets no share"
            )
        unread = " (its checkpoint, where init containers are, cannot be read)" if books.checkpoint is None else ""
        raise PlacementError(f"the kubelet has no container on record that holds exactly these {len(ids)} ids{unread}")

    async def _check_policy(self, pod: Pod) -> None:
        """Asked when a pod is first given something: restarts do not depend on the API server."""
        if pod.uid in self._records.pod_uids():
            return
        refusal = await self._policy.refusal(pod)
        if refusal:
            raise PlacementError(refusal)

    def _decide(self, pod: Pod, container: str, ids: Collection[str]) -> Grant:
        serving = self._serving()
        if serving.problem:
            raise PlacementError(f"{pod.key}: this node hands no GPU out: {serving.problem}")
        mine = self._records.pod_uids()
        granted = [other for other in self._pods.pods.values() if other.uid in mine]
        return grant_of(
            pod, container, ids, serving.cards, granted, mode=serving.mode, high_priority_classes=self._high
        )

    def _make(self, grant: Grant, pod: Pod) -> None:
        cards = self._serving().cards
        for other in self._records:
            if other.pod_uid == grant.pod_uid and other.hash != grant.hash and set(other.ids) & set(grant.ids):
                self.end(other)  # its ids were handed on: its container has ended
        instances = self._backends.of(grant.mode)
        if not instances.adopt(grant, cards):
            instances.create(grant, cards)
        self._cdi.write(grant.hash, instances.edits(grant, environment(grant, pod, cards), cards))

    def end(self, grant: Grant) -> None:
        """Remove the instance, the CDI file and the record of a grant. Raises UnavailableError while it is in use."""
        self._backends.of(grant.mode).destroy(grant.instance)
        self._cdi.remove(grant.hash)
        self._records.remove(grant.hash)

    def _take_back(self, grant: Grant, before: Grant | None) -> None:
        if before is None:
            self._records.remove(grant.hash)
        else:
            self._records.put(before)

    def _say(self, grant: Grant) -> str:
        index = {card.uuid: card.index for card in self._serving().cards}
        parts = [
            f"{share.mem} GiB of GPU {index.get(uuid, '?')}" + (f", {share.core} percent" if share.core else "")
            for uuid, share in sorted(grant.shares.items(), key=lambda item: index.get(item[0], 0))
        ]
        return f"container {grant.container}: {'; '.join(parts)} (mode {grant.mode}: {_PROMISE[grant.mode]})"
