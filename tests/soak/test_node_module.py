# SPDX-License-Identifier: Apache-2.0
"""A module that cannot be loaded on a node: what the plugin says of it."""

from collections.abc import Iterator
from contextlib import contextmanager

from cgpu.core.names import EVENT_MODULE_NOT_READY
from tests.cluster.harness import Cluster
from tests.soak.nodes import (
    LONG_S,
    NODE,
    nothing_left,
    offered,
    said,
)

UNLOAD = "rmmod $(lsmod | grep -o '^cgpu_core[^ ]*') cgpu_km"


def release(cluster: Cluster) -> str:
    """Of the node's kernel."""
    return cluster.node_exec(NODE, ["uname", "-r"]).strip()


@contextmanager
def hidden(cluster: Cluster, *folders: str) -> Iterator[None]:
    """Folders out of the way while the block runs; what was made in their place meanwhile goes."""
    kept = {folder: f"/run/hidden-{number}" for number, folder in enumerate(folders)}
    for folder, place in kept.items():
        cluster.node_exec(NODE, ["mv", folder, place])
    try:
        yield
    finally:
        for folder, place in kept.items():
            cluster.node_exec(NODE, ["sh", "-c", f"rm -rf {folder}; mv {place} {folder}"])


def test_a_module_that_cannot_be_loaded_is_told_and_comes_back_without_a_restart(node: Cluster) -> None:
    nothing_left(node)
    folder = f"/lib/modules/{release(node)}"
    with hidden(node, f"{folder}/updates", f"{folder}/build"):
        node.node_exec(NODE, ["sh", "-c", UNLOAD])
        node.wait(
            lambda: said(node, EVENT_MODULE_NOT_READY, NODE, f"linux-headers-{release(node)}"),
            LONG_S,
            about="the node says why, and what to do",
        )
        node.wait(lambda: offered(node) == 0, LONG_S, about="nothing is offered")
    node.wait(lambda: offered(node) == 14, LONG_S, about="the card is offered again")
