# SPDX-License-Identifier: Apache-2.0
"""Kubernetes events, told once: equal ones at most once a minute, all of them within a budget."""

import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from cgpu.core.errors import ConflictError, UnavailableError
from cgpu.core.model import Node, Pod
from cgpu.kube.client import KubeClient

log: Final = logging.getLogger(__name__)

REPEAT_SECONDS: Final = 60.0
MESSAGE_LIMIT: Final = 1024  # the API server refuses longer notes
BURST: Final = 200
PER_SECOND: Final = 20.0
REMEMBERED: Final = 10_000


@dataclass(frozen=True, slots=True)
class Reference:
    """The object that an event is about."""

    kind: str
    name: str
    uid: str
    namespace: str = ""

    @classmethod
    def to_pod(cls, pod: Pod) -> "Reference":
        """A pod."""
        return cls("Pod", pod.name, pod.uid, pod.namespace)

    @classmethod
    def to_node(cls, node: Node) -> "Reference":
        """A node."""
        return cls("Node", node.name, node.uid)


class EventRecorder:
    """Writes events in the name of `component`; never raises: an event that cannot be written is logged.

    The same text for the same object and reason is written at most once a minute; another text at once.
    More than BURST events, refilled by PER_SECOND, are dropped with a log line.
    """

    def __init__(
        self, client: KubeClient, component: str, clock: Callable[[], float] = time.time, host: str = ""
    ) -> None:
        self._client = client
        self._component = component
        self._clock = clock
        self._host = host
        self._told: OrderedDict[tuple[str, str], tuple[str, float]] = OrderedDict()
        self._repeats: OrderedDict[str, int] = OrderedDict()
        self._budget, self._filled = float(BURST), clock()

    async def normal(self, about: Reference, reason: str, message: str) -> None:
        """An event of type Normal."""
        await self._emit(about, "Normal", reason, message)

    async def warning(self, about: Reference, reason: str, message: str) -> None:
        """An event of type Warning."""
        await self._emit(about, "Warning", reason, message)

    async def _emit(self, about: Reference, kind: str, reason: str, message: str) -> None:
        now = self._clock()
        if not self._may_tell(about, reason, message, now):
            return
        path = f"/api/v1/namespaces/{about.namespace or 'default'}/events"
        body = self._body(about, kind, reason, message, now)
        try:
            await self._write(path, body)
        except UnavailableError as error:
            self._told.pop((about.uid, reason), None)
            log.warning("event %s for %s %s is lost: %s; it said: %s", reason, about.kind, about.name, error, message)

    async def _write(self, path: str, body: dict[str, Any]) -> None:
        try:
            await self._client.post(path, body)
        except ConflictError:
            # told before, by us or by a replica of ours: the name follows from the text
            seen = self._repeats[body["metadata"]["name"]] = self._repeats.pop(body["metadata"]["name"], 1) + 1
            if len(self._repeats) > REMEMBERED:
                self._repeats.popitem(last=False)
            again = {"count": seen, "lastTimestamp": body["lastTimestamp"]}
            await self._client.patch(f"{path}/{body['metadata']['name']}", again)

    def _may_tell(self, about: Reference, reason: str, message: str, now: float) -> bool:
        key = (about.uid, reason)
        said, when = self._told.get(key, ("", 0.0))
        if said == message and now - when < REPEAT_SECONDS:
            return False
        self._budget = min(float(BURST), self._budget + (now - self._filled) * PER_SECOND)
        self._filled = now
        if self._budget < 1:
            log.warning("too many events: %s for %s %s is dropped: %s", reason, about.kind, about.name, message)
            return False
        self._budget -= 1
        self._told[key] = (message, now)
        self._told.move_to_end(key)
        if len(self._told) > REMEMBERED:
            self._told.popitem(last=False)
        return True

    def _body(self, about: Reference, kind: str, reason: str, message: str, now: float) -> dict[str, Any]:
        stamp = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        digest = hashlib.sha256(f"{about.uid}/{reason}/{message}".encode()).hexdigest()[:16]
        place = {"namespace": about.namespace} if about.namespace else {}
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{about.name[:200]}.{digest}",
                "namespace": about.namespace or "default",
            },
            "involvedObject": {"apiVersion": "v1", "kind": about.kind, "name": about.name, "uid": about.uid, **place},
            "type": kind,
            "reason": reason,
            "message": message if len(message) <= MESSAGE_LIMIT else message[: MESSAGE_LIMIT - 1] + "…",
            "source": {"component": self._component, **({"host": self._host} if self._host else {})},
            "reportingComponent": self._component,
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
        }
