# SPDX-License-Identifier: Apache-2.0
"""List, then watch, for ever: a local copy of the API server's objects that survives what happens to connections."""

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from typing import Final, Generic, Protocol, TypeVar

from cgpu.core.errors import CgpuError, ExpiredError, UnavailableError
from cgpu.kube.client import KubeClient, selectors
from cgpu.kube.objects import Resource, T, decode_event, decode_status, decode_version

log: Final = logging.getLogger(__name__)

FIRST_DELAY: Final = 0.2
LONGEST_DELAY: Final = 5.0
RELIST_AFTER: Final = 3  # failures in a row, without a word of the API server between them
WATCH_SECONDS: Final = (240, 360)  # spread, so that many clients do not renew their watches together


Seen_contra = TypeVar("Seen_contra", contravariant=True)


class Sink(Protocol[Seen_contra]):
    """Who is told. Calls come one after another, in the order of the API server's events."""

    def replace(self, objects: Mapping[str, Seen_contra]) -> None:
        """Everything there is, after a list."""

    def changed(self, item: Seen_contra) -> None:
        """An object was added or modified."""

    def deleted(self, item: Seen_contra) -> None:
        """An object is gone; `item` is its last state."""


class Reflector(Generic[T]):
    """Keeps `objects` (by key) equal to what the API server has, and tells `sink` of each change.

    `run` never ends by itself and never raises for anything the API server does: it logs, waits (doubling, with
    jitter) and goes on. `synced` is set after the first complete list.
    """

    def __init__(
        self,
        client: KubeClient,
        resource: Resource[T],
        sink: Sink[T],
        field_selector: str = "",
        *,
        jitter: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._client = client
        self.resource = resource
        self._sink = sink
        self.query = selectors(field_selector)
        self._jitter = jitter
        self._version = ""
        self.objects: dict[str, T] = {}
        self.synced = asyncio.Event()
        self.relists = 0

    async def run(self) -> None:
        """Until cancelled."""
        delay, failures = FIRST_DELAY, 0
        while True:
            before = self._version
            try:
                if not self._version:
                    await self._list()
                await self._watch()
                failures = 0
            except ExpiredError as error:
                log.info("watch of %s: %s; listing anew", self.resource.path, error)
                self._version = before = ""
            except CgpuError as error:
                log.warning("watch of %s: %s; again in at most %.1f s", self.resource.path, error, delay)
                failures = 1 if self._version != before else failures + 1  # what came in between was an answer
            if failures >= RELIST_AFTER:
                self._version = before = ""  # whatever is behind the address now may not know our version
            delay = FIRST_DELAY if self._version != before else min(delay * 2, LONGEST_DELAY)
            await asyncio.sleep(delay * self._jitter(0.5, 1.0))

    def repair(self, missed: Mapping[str, T | None]) -> None:
        """Apply what a comparison with a fresh list has shown: None for what is gone."""
        for key, item in missed.items():
            if item is None:
                self._drop(key)
            else:
                self._keep(item)

    async def _list(self) -> None:
        page = await self._client.list(self.resource, self.query)
        self.objects = {self.resource.key(item): item for item in page.items}
        self._version = page.resource_version
        self.relists += 1
        self._sink.replace(self.objects)
        self.synced.set()

    async def _watch(self) -> None:
        query = {
            **self.query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(int(self._jitter(*WATCH_SECONDS))),
        }
        async with self._client.stream(self.resource.path, query) as lines:
            async for line in lines:
                self._take(line)

    def _take(self, line: bytes) -> None:
        kind, raw = decode_event(line)
        if kind == "ERROR":
            code, text = decode_status(raw)
            raise ExpiredError(text) if code == 410 else UnavailableError(f"the watch ended with {code}: {text}")
        if kind in ("ADDED", "MODIFIED"):
            self._keep(self.resource.decode(raw))
        elif kind == "DELETED":
            self._drop(self.resource.key(self.resource.decode(raw)))
        self._version = decode_version(raw)

    def _keep(self, item: T) -> None:
        self.objects[self.resource.key(item)] = item
        self._sink.changed(item)

    def _drop(self, key: str) -> None:
        item = self.objects.pop(key, None)
        if item is not None:
            self._sink.deleted(item)
