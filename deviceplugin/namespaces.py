# SPDX-License-Identifier: Apache-2.0
"""Pods that opted out of our admission policies get no share: nothing kept their annotations from being forged."""

import json
import time
from collections.abc import Callable
from typing import Final, Protocol
from urllib.parse import quote

from cgpu.core.errors import UnavailableError
from cgpu.core.model import Pod
from cgpu.core.names import LABEL_IGNORE
from cgpu.core.pods import is_ignored

_FRESH_S: Final = 30.0


class Getter(Protocol):
    """One request to the API server."""

    async def get(self, path: str) -> bytes:
        """The body of the answer. Raises UnavailableError."""


class Namespaces:
    """Which namespaces carry the label, asked for when a pod is first given something and remembered for 30 s."""

    def __init__(self, api: Getter, clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._clock = clock
        self._known: dict[str, tuple[float, bool]] = {}

    async def refusal(self, pod: Pod) -> str:
        """Why the pod may not have a share, "" when it may. Raises UnavailableError when that cannot be found out."""
        label = f"{LABEL_IGNORE}=true"
        if is_ignored(pod):
            return f"{pod.key} has the label {label}: such pods get no share; create it without the label"
        if await self._ignored(pod.namespace):
            return f"{pod.key}: namespace {pod.namespace} has the label {label}: its pods get no share"
        return ""

    async def _ignored(self, name: str) -> bool:
        asked, answer = self._known.get(name, (float("-inf"), False))
        if self._clock() - asked < _FRESH_S:
            return answer
        body = await self._api.get(f"/api/v1/namespaces/{quote(name, safe='')}")
        try:
            labels = json.loads(body)["metadata"].get("labels") or {}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UnavailableError(f"namespace {name}: the API server's answer cannot be read ({error!r})") from error
        ignored = bool(labels.get(LABEL_IGNORE) == "true")
        self._known[name] = (self._clock(), ignored)
        return ignored
