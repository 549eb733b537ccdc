# SPDX-License-Identifier: Apache-2.0
"""What the API server shows of this node: the annotation with the cards, aliyun.com/gpu-count in its status, and the
label that keeps the plugin's pod there while the node is ours.

The DaemonSet goes where the mode's label is. Were that all, taking the label away would end the plugin under pods that
hold shares; so the plugin sets a label of its own first, and takes it away last.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Protocol

from cgpu.core.annotations import encode_devices
from cgpu.core.errors import UnavailableError
from cgpu.core.model import Card, Node
from cgpu.core.names import ANNOTATION_DEVICES, LABEL_SERVING, RESOURCE_COUNT

log = logging.getLogger(__name__)


class NodeWriter(Protocol):
    """The requests that change a node. All raise UnavailableError."""

    async def patch_node_annotations(self, name: str, annotations: Mapping[str, str | None]) -> None:
        """None removes one."""

    async def patch_node_status(self, name: str, capacity: Mapping[str, str | None]) -> None:
        """None removes one."""

    async def patch_node_labels(self, name: str, labels: Mapping[str, str | None]) -> None:
        """None removes one."""


class Publisher:
    """Brings the node object to what is wanted, writing only what differs from what the watch shows."""

    def __init__(self, writer: NodeWriter) -> None:
        self._writer = writer
        self._said = ""

    async def publish(self, node: Node, cards: Sequence[Card] | None, count: int | None, *, serving: bool) -> bool:
        """Whether the node shows it now; a failure is logged once and the caller tries again. None removes."""
        try:
            if serving:
                await self._label(node, "true")
            await self._annotate(node, None if cards is None else encode_devices(cards))
            await self._count(node, count)
            if not serving:
                await self._label(node, None)
        except UnavailableError as error:
            if str(error) != self._said:
                log.warning("node %s is not up to date: %s", node.name, error)
            self._said = str(error)
            return False
        self._said = ""
        return True

    async def _label(self, node: Node, value: str | None) -> None:
        if node.labels.get(LABEL_SERVING) != value:
            await self._writer.patch_node_labels(node.name, {LABEL_SERVING: value})

    async def _annotate(self, node: Node, value: str | None) -> None:
        if node.annotations.get(ANNOTATION_DEVICES) != value:
            await self._writer.patch_node_annotations(node.name, {ANNOTATION_DEVICES: value})

    async def _count(self, node: Node, count: int | None) -> None:
        shown = node.capacity.get(RESOURCE_COUNT)
        if count is None and shown not in (None, "0"):
            await self._writer.patch_node_status(node.name, {RESOURCE_COUNT: None})
        elif count is not None and shown != str(count):
            await self._writer.patch_node_status(node.name, {RESOURCE_COUNT: str(count)})
