# SPDX-License-Identifier: Apache-2.0
"""Light nodes: objects that kwok keeps alive, with the capacity and the annotation that our device plugin would write."""

from collections.abc import Sequence
from typing import Any

from cgpu.core.annotations import encode_devices
from cgpu.core.names import ANNOTATION_DEVICES, MAX_INSTANCES_DEFAULT, RESOURCE_COUNT, RESOURCE_MEM
from cgpu.sandbox.spec import NodeSpec, cards_of


def node_object(spec: NodeSpec) -> dict[str, Any]:
    """The Node to create."""
    cards = cards_of(spec, MAX_INSTANCES_DEFAULT)
    healthy = [card for card in cards if card.healthy]
    capacity = {
        "cpu": "64",
        "memory": "512Gi",
        "pods": "250",
        **({RESOURCE_MEM: str(sum(card.units for card in cards)), RESOURCE_COUNT: str(len(cards))} if cards else {}),
    }
    allocatable = {
        **capacity,
        **(
            {RESOURCE_MEM: str(sum(card.units for card in healthy)), RESOURCE_COUNT: str(len(healthy))} if cards else {}
        ),
    }
    annotations = {"kwok.x-k8s.io/node": "fake", **({ANNOTATION_DEVICES: encode_devices(cards)} if cards else {})}
    labels = {"kubernetes.io/hostname": spec.name, "kubernetes.io/os": "linux", "type": "kwok", **spec.labels}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": spec.name, "labels": labels, "annotations": annotations},
        "spec": {},
        "status": {"capacity": capacity, "allocatable": allocatable},
    }


def node_objects(specs: Sequence[NodeSpec]) -> list[dict[str, Any]]:
    """All of them."""
    return [node_object(spec) for spec in specs]
