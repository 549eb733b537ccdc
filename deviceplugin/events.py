# SPDX-License-Identifier: Apache-2.0
"""Events in the background: whoever reports one goes on at once."""

import asyncio
from collections.abc import Coroutine

from cgpu.core.model import Pod
from cgpu.kube.events import EventRecorder, Reference
from deviceplugin.stores import NodeStore


class BackgroundRecorder:
    """Writes events through `recorder`; the API server's answer is waited for by nobody."""

    def __init__(self, recorder: EventRecorder, nodes: NodeStore, node_name: str) -> None:
        """`nodes`: who our node is, once the watch has told."""
        self._recorder = recorder
        self._nodes = nodes
        self._node_name = node_name
        self._tasks: set[asyncio.Task[None]] = set()

    def pod(self, pod: Pod, reason: str, message: str, *, warning: bool = False) -> None:
        """An event on a pod."""
        self._start(self._write(Reference.to_pod(pod), reason, message, warning))

    def node(self, reason: str, message: str, *, warning: bool = True) -> None:
        """An event on this node."""
        node = self._nodes.node
        about = Reference("Node", self._node_name, node.uid if node is not None else self._node_name)
        self._start(self._write(about, reason, message, warning))

    async def _write(self, about: Reference, reason: str, message: str, warning: bool) -> None:
        write = self._recorder.warning if warning else self._recorder.normal
        await write(about, reason, message)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
