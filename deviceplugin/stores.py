# SPDX-License-Identifier: Apache-2.0
"""This node and its pods as the API server's watch tells them, and a signal for whoever waits for a change."""

import asyncio
from collections.abc import Mapping

from cgpu.core.model import Node, Pod


class Signal:
    """Wakes everybody who took `next()` before `fire()`: take it, look, then wait, and no change is missed."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def next(self) -> asyncio.Event:
        """The event that the next `fire` sets."""
        return self._event

    def fire(self) -> None:
        """Something changed."""
        self._event.set()
        self._event = asyncio.Event()


class PodStore:
    """Pods of this node by UID."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.signal = Signal()

    def replace(self, objects: Mapping[str, Pod]) -> None:
        """Everything there is, after a list."""
        self.pods = {pod.uid: pod for pod in objects.values()}
        self.signal.fire()

    def changed(self, item: Pod) -> None:
        """A pod was added or modified."""
        self.pods[item.uid] = item
        self.signal.fire()

    def deleted(self, item: Pod) -> None:
        """A pod is gone."""
        self.pods.pop(item.uid, None)
        self.signal.fire()


class NodeStore:
    """This node; None until the API server has told it."""

    def __init__(self) -> None:
        self.node: Node | None = None
        self.signal = Signal()

    def replace(self, objects: Mapping[str, Node]) -> None:
        """The list has one node, or none when ours was deleted."""
        self.node = next(iter(objects.values()), None)
        self.signal.fire()

    def changed(self, item: Node) -> None:
        """The node was added or modified."""
        self.node = item
        self.signal.fire()

    def deleted(self, item: Node) -> None:
        """The node object is gone, `item` was its last state; the kubelet makes it anew."""
        self.node = None if self.node is not None and self.node.uid == item.uid else self.node
        self.signal.fire()
