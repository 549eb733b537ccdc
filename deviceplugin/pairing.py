# SPDX-License-Identifier: Apache-2.0
"""Whose are these device ids? The kubelet's own books answer exactly; nothing is guessed from sizes or order.

PodResources lists (namespace, pod, container) with their ids, app containers and sidecars only. The kubelet's
checkpoint also has plain init containers, with the pod's UID. An init container whose ids are handed on to the first
app container is found under that one's name: equal sets mean same pod, same size and same card.
"""

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc

from cgpu.core.errors import UnavailableError
from cgpu.core.model import Pod
from cgpu.core.names import RESOURCE_MEM
from cgpu.core.pods import holds
from cgpu.kubelet import podresources_pb2, podresources_pb2_grpc

log = logging.getLogger(__name__)
# The kubelet answers 100 requests a second, 10 of them at once, and refuses more: never more than 10 in this time.
_WINDOW_S: Final = 0.105
_BURST: Final = 10
_REFUSED_S: Final = 0.1
_ANSWER_S: Final = 2.0
_CHANNEL_OPTIONS: Final = (
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.max_receive_message_length", -1),
)


class ExhaustedError(UnavailableError):
    """The kubelet refuses because it was asked too often."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One container's ids of one resource. PodResources knows namespace and name, the checkpoint knows the UID."""

    container: str
    resource: str
    ids: frozenset[str]
    uid: str = ""
    namespace: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Books:
    """What the kubelet has on record at one moment. `checkpoint` None: it could not be read."""

    listed: tuple[Entry, ...] = ()
    checkpoint: tuple[Entry, ...] | None = ()
    active: frozenset[tuple[str, str]] = frozenset()  # (namespace, name) of every pod that PodResources lists

    def entries(self) -> Iterator[Entry]:
        """Every entry, the same container perhaps twice."""
        yield from self.listed
        yield from self.checkpoint or ()

    def held(self, resource: str, pods: Mapping[str, Pod]) -> frozenset[str]:
        """Ids of a resource that some pod holds; `pods` by UID tells which entries of the checkpoint have ended."""
        return frozenset(id_ for entry in self.living(pods) if entry.resource == resource for id_ in entry.ids)

    def living(self, pods: Mapping[str, Pod]) -> Iterator[Entry]:
        """Entries whose pod is active for the kubelet or still holds its share for the API server."""
        yield from self.listed
        for entry in self.checkpoint or ():
            pod = pods.get(entry.uid)
            if pod is not None and (holds(pod) or (pod.namespace, pod.name) in self.active):
                yield entry


def owner_of(entry: Entry, books: Books, pods: Mapping[str, Pod]) -> Pod | None:
    """The pod of an entry. A name is resolved with the UIDs of the checkpoint, since a new pod may bear an old name."""
    if entry.uid:
        return pods.get(entry.uid)
    uids = {row.uid for row in books.checkpoint or () if (row.container, row.ids) == (entry.container, entry.ids)}
    named = [pod for pod in pods.values() if (pod.namespace, pod.name) == (entry.namespace, entry.name)]
    if books.checkpoint is not None:
        named = [pod for pod in named if pod.uid in uids]
    return named[0] if len(named) == 1 else None


def pair(ids: Collection[str], books: Books, pods: Mapping[str, Pod]) -> tuple[Pod, str] | None:
    """The pod and container that hold exactly these ids of aliyun.com/gpu-mem; None while that is not known."""
    wanted = frozenset(ids)
    for rows in (books.listed, books.checkpoint or ()):
        exact = [entry for entry in rows if entry.resource == RESOURCE_MEM and entry.ids == wanted]
        found = [(pod, entry.container) for entry in exact if (pod := owner_of(entry, books, pods)) and holds(pod)]
        if len({pod.uid for pod, _ in found}) == 1:
            return found[0]
    return None


def is_recorded(ids: Collection[str], books: Books) -> bool:
    """Whether the kubelet has any container with exactly these ids."""
    wanted = frozenset(ids)
    return any(entry.ids == wanted and entry.resource == RESOURCE_MEM for entry in books.entries())


class KubeletBooks:
    """Reads PodResources and the checkpoint. Callers that come while a List is under way share the next one."""

    def __init__(self, kubelet_root: Path) -> None:
        """`kubelet_root`: /var/lib/kubelet, or a folder that stands for it."""
        self._socket = kubelet_root / "pod-resources" / "kubelet.sock"
        self._checkpoint = kubelet_root / "device-plugins" / "kubelet_internal_checkpoint"
        self._running: asyncio.Task[Books] | None = None
        self._next: asyncio.Task[Books] | None = None
        self._started: deque[float] = deque(maxlen=_BURST)
        self._channel: grpc.aio.Channel | None = None
        self._warned = False
        self.lists = 0  # how many List requests were made

    async def read(self) -> Books:
        """The books as they are now or later, never as they were before the call. Raises UnavailableError."""
        if self._next is None:
            self._next = asyncio.create_task(self._after(self._running))
        return await asyncio.shield(self._next)

    async def close(self) -> None:
        """End the connection."""
        if self._channel is not None:
            await self._channel.close(None)
            self._channel = None

    async def _after(self, running: asyncio.Task[Books] | None) -> Books:
        if running is not None:
            await asyncio.wait([running])
        if len(self._started) == _BURST:
            await asyncio.sleep(max(0.0, self._started[0] + _WINDOW_S - time.monotonic()))
        self._started.append(time.monotonic())
        self._running, self._next = self._next, None
        return self._books(await self._list_patiently())

    async def _list_patiently(self) -> podresources_pb2.ListPodResourcesResponse:
        """Somebody else on this node may use up the kubelet's budget: its refusal is waited out, three times."""
        for _ in range(3):
            try:
                return await self._list()
            except ExhaustedError:
                await asyncio.sleep(_REFUSED_S)
        return await self._list()

    async def _list(self) -> podresources_pb2.ListPodResourcesResponse:
        if not self._socket.exists():
            raise UnavailableError(f"kubelet PodResources: {self._socket} is not there")
        if self._channel is None:
            self._channel = grpc.aio.insecure_channel(f"unix://{self._socket}", options=list(_CHANNEL_OPTIONS))
        stub = podresources_pb2_grpc.PodResourcesListerStub(self._channel)  # type: ignore[no-untyped-call]
        request = podresources_pb2.ListPodResourcesRequest()
        self.lists += 1
        try:
            answer: podresources_pb2.ListPodResourcesResponse = await stub.List(
                request, timeout=_ANSWER_S, wait_for_ready=True
            )
        except grpc.aio.AioRpcError as error:
            kind = ExhaustedError if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED else UnavailableError
            raise kind(f"kubelet PodResources at {self._socket}: {error.details()}") from error
        return answer

    def _books(self, answer: podresources_pb2.ListPodResourcesResponse) -> Books:
        return Books(
            listed=tuple(_listed(answer)),
            checkpoint=self._read_checkpoint(),
            active=frozenset((pod.namespace, pod.name) for pod in answer.pod_resources),
        )

    def _read_checkpoint(self) -> tuple[Entry, ...] | None:
        try:
            return parse_checkpoint(self._checkpoint.read_text())
        except OSError:
            return None  # a kubelet that has handed nothing out yet has none
        except UnavailableError as error:
            if not self._warned:
                log.warning("init containers cannot be told apart: %s: %s", self._checkpoint, error)
            self._warned = True
            return None


def _listed(answer: podresources_pb2.ListPodResourcesResponse) -> Iterator[Entry]:
    """One entry a container and resource: the kubelet sends one ContainerDevices message for each id."""
    for pod in answer.pod_resources:
        for container in pod.containers:
            ids: dict[str, set[str]] = {}
            for devices in container.devices:
                ids.setdefault(devices.resource_name, set()).update(devices.device_ids)
            for resource, found in ids.items():
                yield Entry(container.name, resource, frozenset(found), namespace=pod.namespace, name=pod.name)


def parse_checkpoint(text: str) -> tuple[Entry, ...]:
    """Entries of kubelet_internal_checkpoint (kubelet pkg/kubelet/cm/devicemanager/checkpoint). Raises UnavailableError."""
    try:
        rows: list[dict[str, Any]] = json.loads(text)["Data"]["PodDeviceEntries"] or []
        return tuple(
            Entry(
                row["ContainerName"],
                row["ResourceName"],
                frozenset(id_ for ids in row["DeviceIDs"].values() for id_ in ids),
                uid=row["PodUID"],
            )
            for row in rows
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnavailableError(f"kubelet_internal_checkpoint: unknown form ({error!r})") from error
