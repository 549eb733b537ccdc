# SPDX-License-Identifier: Apache-2.0
"""Takes back what the plugins wrote on the cluster's nodes: the last act of uninstalling.

A plugin that ends does not do this: it ends at every upgrade too, and the books of running pods live from the cards'
sizes. It also could not: its rights are taken from it before its pod.
"""

import asyncio
import logging
from typing import Final, Protocol

from cgpu.core.errors import UnavailableError
from cgpu.core.model import Node
from cgpu.core.names import LABEL_SERVING
from deviceplugin.publisher import NodeWriter, Publisher

log: Final = logging.getLogger(__name__)

TRIES: Final = 20
PAUSE_SECONDS: Final = 1.0  # an admission policy that was deleted a moment ago may still refuse


class Nodes(NodeWriter, Protocol):
    """What this needs of the API server."""

    async def list_nodes(self, field_selector: str = "", label_selector: str = "") -> tuple[Node, ...]:
        """Nodes by labels. Raises UnavailableError."""


async def withdraw(cluster: Nodes, pause_seconds: float = PAUSE_SECONDS) -> None:
    """Remove annotation, gpu-count and label from every node that has our label.

    Raises UnavailableError with the names of the nodes that still have them after some tries.
    """
    publisher = Publisher(cluster)
    for _ in range(TRIES):
        nodes = await cluster.list_nodes(label_selector=LABEL_SERVING)
        cleared = [await publisher.publish(node, None, None, serving=False) for node in nodes]
        if all(cleared):
            log.info("taken back from %d nodes", len(nodes))
            return
        await asyncio.sleep(pause_seconds)
    left = ", ".join(node.name for node, done in zip(nodes, cleared, strict=True) if not done)
    raise UnavailableError(f"still written on after {TRIES} tries: {left}; the log above says why")
