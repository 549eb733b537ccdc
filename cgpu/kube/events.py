# SPDX-License-Identifier: Apache-2.0
"""Kubernetes events, told once: equal ones at most once a minute, all of them within a budget."""

import logging
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from cgpu.core.errors import UnavailableError
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
        namespace = about.namespace or "default"
        try:
            await self._client.post(
                f"/api/v1/namespaces/{namespace}/events", self._body(about, kind, reason, message, now)
            )
        except UnavailableError as error:
            self._told.pop((about.uid, reason), None)
            log.warning("event %s for %s %s is lost: %s; it said: %s", reason, about.kind, about.name, error, message)

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

    def _body(self, about: Reference, kind: str, reason: str, message: str, now: float) -> dict[str, object]:
        stamp = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        place = {"namespace": about.namespace} if about.namespace else {}
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{about.name[:200]}.{uuid.uuid4().hex[:16]}",
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
