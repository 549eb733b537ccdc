# SPDX-License-Identifier: Apache-2.0
"""The books kept equal to the API server: two watches feed them, and a list now and then proves them right."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from cgpu.core.model import Node, Pod
from cgpu.kube.client import KubeClient
from cgpu.kube.objects import NODES, PODS
from cgpu.kube.reflector import Reflector
from extender.books import Books

log: Final = logging.getLogger(__name__)

GRACE_SECONDS: Final = 2.0  # what a watch may lag behind a list before a difference counts
T = TypeVar("T")


class PodSink:
    """Pods of the API server → books."""

    def __init__(self, books: Books, woken: Callable[[], None]) -> None:
        self._books = books
        self._woken = woken

    def replace(self, objects: Mapping[str, Pod]) -> None:
        """After a list: what is not in it is gone, but for what is being bound just now."""
        there = {pod.uid for pod in objects.values()}
        for uid in [uid for uid in (*self._books.pods, *self._books.waiting) if uid not in there]:
            self._books.drop_pod(uid)
        for pod in objects.values():
            self._books.set_pod(pod)
        self._woken()

    def changed(self, item: Pod) -> None:
        """Added or modified."""
        self._books.set_pod(item)
        self._woken()

    def deleted(self, item: Pod) -> None:
        """Gone."""
        self._books.drop_pod(item.uid)
        self._woken()


class NodeSink:
    """Nodes of the API server → books."""

    def __init__(self, books: Books, woken: Callable[[], None]) -> None:
        self._books = books
        self._woken = woken

    def replace(self, objects: Mapping[str, Node]) -> None:
        """After a list."""
        for name in [name for name in self._books.nodes if name not in objects]:
            self._books.drop_node(name)
        for node in objects.values():
            self.changed(node)

    def changed(self, item: Node) -> None:
        """Added or modified."""
        before = self._books.offers.get(item.name)
        self._books.set_node(item)
        if self._books.offers[item.name] != before:
            self._woken()

    def deleted(self, item: Node) -> None:
        """Gone."""
        self._books.drop_node(item.name)
        self._woken()


class Cache:
    """Both reflectors; `changes` is set whenever somebody may fit who did not before."""

    def __init__(self, client: KubeClient, books: Books) -> None:
        self._client = client
        self.books = books
        self.changes = asyncio.Event()
        self.pod_changes = asyncio.Event()  # the same for whoever looks at pods' annotations
        self.pods = Reflector(client, PODS, PodSink(books, self._pods_changed))
        self.nodes = Reflector(client, NODES, NodeSink(books, self.changes.set))
        self.drift_gib = 0  # what the last comparison had to correct

    def _pods_changed(self) -> None:
        self.changes.set()
        self.pod_changes.set()

    @property
    def ready(self) -> bool:
        """Whether the books have been rebuilt from the annotations since the start."""
        return self.pods.synced.is_set() and self.nodes.synced.is_set()

    async def run(self) -> None:
        """Watch until cancelled. Nodes come first: older records of pods name cards by their index."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.nodes.run())
            await self.nodes.synced.wait()
            group.create_task(self.pods.run())

    async def compare(self) -> None:
        """One comparison with fresh lists; what the watches have missed is repaired, and its GiB become the drift."""
        nodes, pods = await asyncio.gather(self._missed(self.nodes), self._missed(self.pods))
        before = held_by_card(self.books)
        self.nodes.repair(nodes)
        self.pods.repair(pods)
        after = held_by_card(self.books)
        self.drift_gib = sum(abs(after.get(key, 0) - before.get(key, 0)) for key in before.keys() | after.keys())
        if nodes or pods:
            log.warning("the watches had missed %d nodes and %d pods: repaired", len(nodes), len(pods))

    async def _missed(self, reflector: Reflector[T]) -> dict[str, T | None]:
        """What a fresh list says that the watch still does not say after a while: None for what is gone."""
        old = dict(reflector.objects)
        page = await self._client.list(reflector.resource, reflector.query)
        fresh = {reflector.resource.key(item): item for item in page.items}
        await asyncio.sleep(GRACE_SECONDS)
        return {
            key: fresh.get(key)
            for key in old.keys() | fresh.keys()
            if fresh.get(key) != old.get(key) and reflector.objects.get(key) is old.get(key)
        }


def held_by_card(books: Books) -> dict[tuple[str, str], int]:
    """(node, card UUID) → GiB held."""
    return {(name, card.card.uuid): card.mem for name in books.offers for card in books.state(name).cards}
