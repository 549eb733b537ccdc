# SPDX-License-Identifier: Apache-2.0
"""What the plugins wrote on the nodes is taken back when the chart is uninstalled."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from cgpu.core.errors import ForbiddenError, UnavailableError
from cgpu.core.model import Node
from cgpu.core.names import ANNOTATION_CORDON, ANNOTATION_DEVICES, LABEL_SCHEDULE, LABEL_SERVING, RESOURCE_COUNT
from deviceplugin.withdraw import TRIES, withdraw


class _Cluster:
    """Nodes by name; `refusals`: how many writes are refused first."""

    def __init__(self, *nodes: Node, refusals: int = 0) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.refusals = refusals
        self.written: set[str] = set()

    async def list_nodes(self, field_selector: str = "", label_selector: str = "") -> tuple[Node, ...]:
        return tuple(node for node in self.nodes.values() if label_selector in node.labels)

    async def patch_node_annotations(self, name: str, annotations: Mapping[str, str | None]) -> None:
        self._set(name, annotations=_merged(self.nodes[name].annotations, annotations))

    async def patch_node_status(self, name: str, capacity: Mapping[str, str | None]) -> None:
        self._set(name, capacity=_merged(self.nodes[name].capacity, capacity))

    async def patch_node_labels(self, name: str, labels: Mapping[str, str | None]) -> None:
        self._set(name, labels=_merged(self.nodes[name].labels, labels))

    def _set(self, name: str, **fields: Mapping[str, str]) -> None:
        if self.refusals:
            self.refusals -= 1
            raise ForbiddenError(f"nodes {name}: only the device plugin writes that")
        self.written.add(name)
        self.nodes[name] = replace(self.nodes[name], **fields)


def _merged(before: Mapping[str, str], change: Mapping[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in {**before, **change}.items() if value is not None}


def _node(name: str) -> Node:
    return Node(
        name,
        labels={LABEL_SERVING: "true", LABEL_SCHEDULE: "share"},
        annotations={ANNOTATION_DEVICES: "[]", ANNOTATION_CORDON: "[]"},
        capacity={RESOURCE_COUNT: "2", "cpu": "8"},
    )


@pytest.mark.parametrize("refusals", [pytest.param(0, id="at once"), pytest.param(3, id="after some refusals")])
async def test_only_what_the_plugins_wrote_is_taken_back(refusals: int) -> None:
    others = Node("others", annotations={ANNOTATION_DEVICES: "[]"})
    cluster = _Cluster(_node("a"), _node("b"), others, refusals=refusals)

    await withdraw(cluster, pause_seconds=0)

    want = {"labels": {LABEL_SCHEDULE: "share"}, "annotations": {ANNOTATION_CORDON: "[]"}, "capacity": {"cpu": "8"}}
    assert cluster.nodes == {"a": Node("a", **want), "b": Node("b", **want), "others": others}  # type: ignore[arg-type]


async def test_nothing_to_take_back_is_fine() -> None:
    cluster = _Cluster(Node("a"))

    await withdraw(cluster)

    assert cluster.written == set()


async def test_nodes_that_keep_refusing_are_named() -> None:
    cluster = _Cluster(_node("a"), _node("b"), refusals=2 * TRIES)

    with pytest.raises(UnavailableError, match="still written on after 20 tries: a, b; the log above says why"):
        await withdraw(cluster, pause_seconds=0)
