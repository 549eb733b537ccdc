# SPDX-License-Identifier: Apache-2.0
"""What nodes a sandbox has: `--cards FILE`, `--nodes N`, `--vm-nodes N`, or two nodes of mixed cards."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from cgpu.cards import CardRow, Place, card_rows, card_uuid, expand, mapping, read_document, scalar, sequence
from cgpu.core.errors import SettingError
from cgpu.core.memory import units_of
from cgpu.core.model import Card
from cgpu.core.names import LABEL_SCHEDULE

MAX_NODES: Final = 40
MAX_LIGHT_NODES: Final = 20_000
MAX_MACHINES: Final = 4
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")
_LABEL_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_LABEL_KEY: Final = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_SHARED: Final = {LABEL_SCHEDULE: "share"}
_ISOLATED: Final = {LABEL_SCHEDULE: "cgpu"}
DRIVERS: Final = ("418", "450", "460", "470", "535", "550")
_DRIVER: Final = "535"
# model of a card → what the simulated driver calls it
SIMULATED: Final = {
    "Tesla T4": "T4",
    "Tesla V100-SXM2-16GB": "V100",
    "NVIDIA A10": "A10",
    "NVIDIA A100-SXM4-40GB": "A100",
    "Tesla P4": "P4",
    "Tesla P100-PCIE-16GB": "P100",
    "NVIDIA H100 PCIe": "H100",
}
_MIXED: Final = (
    (CardRow("Tesla T4", 15109, count=2),),
    (CardRow("NVIDIA A10", 23028), CardRow("Tesla T4", 15109)),
)


class NodeKind(StrEnum):
    """What a node is made of."""

    CONTAINER = "container"  # kubelet and containerd in namespaces of this machine
    KWOK = "kwok"  # an object kept alive by kwok: for scale
    VM = "vm"  # kubelet and containerd in a virtual machine with the simulated driver: the module can be loaded there


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """One node to make. `driver`: branch of the driver that a virtual machine plays."""

    name: str
    kind: NodeKind = NodeKind.CONTAINER
    labels: dict[str, str] = field(default_factory=dict)
    cards: tuple[CardRow, ...] = ()
    driver: str = ""


def default_nodes(count: int) -> tuple[NodeSpec, ...]:
    """`count` nodes named node-1, node-2, … in mode `share`, with two sorts of cards in turn. Raises SettingError."""
    if not 1 <= count <= MAX_NODES:
        raise SettingError(f"--nodes {count}: must be from 1 to {MAX_NODES}; for more, light nodes in a --cards file")
    return tuple(
        NodeSpec(f"node-{number + 1}", labels=dict(_SHARED), cards=_MIXED[number % len(_MIXED)])
        for number in range(count)
    )


def machine_nodes(count: int) -> tuple[NodeSpec, ...]:
    """`count` virtual machines with one T4 each, in mode `cgpu`, and a plain node for the scheduler.

    Raises SettingError.
    """
    if not 1 <= count <= MAX_MACHINES:
        raise SettingError(f"--vm-nodes {count}: must be from 1 to {MAX_MACHINES}: each is an emulated computer")
    machines = (
        NodeSpec(f"vm-{number + 1}", NodeKind.VM, dict(_ISOLATED), (CardRow("Tesla T4", 15109),), _DRIVER)
        for number in range(count)
    )
    return (NodeSpec("node-1"), *machines)


def read_nodes(path: Path) -> tuple[NodeSpec, ...]:
    """The nodes of a `--cards` file. Raises SettingError with file, line and column of the first mistake."""
    document = read_document(path)
    listed = mapping(document, ("nodes",), required=("nodes",))["nodes"]
    places = [(spec, item) for item in sequence(listed, "nodes") for spec in _nodes(item)]
    if not any(spec.kind is NodeKind.CONTAINER for spec, _ in places):
        listed.refuse("no node of kind container: pods of the chart need one")
    _check_all(places)
    return tuple(spec for spec, _ in places)


def _check_all(places: Sequence[tuple[NodeSpec, Place]]) -> None:
    """Names are unique, and there are no more nodes than fit the addresses."""
    seen: set[str] = set()
    limits = {NodeKind.CONTAINER: MAX_NODES, NodeKind.KWOK: MAX_LIGHT_NODES, NodeKind.VM: MAX_MACHINES}
    for spec, place in places:
        if spec.name in seen:
            place.refuse(f"two nodes are named {spec.name!r}")
        seen.add(spec.name)
        limits[spec.kind] -= 1
        if limits[spec.kind] < 0:
            place.refuse(
                f"too many nodes: at most {MAX_NODES} of kind container, {MAX_LIGHT_NODES} of kind kwok"
                f" and {MAX_MACHINES} of kind vm"
            )


def _nodes(place: Place) -> tuple[NodeSpec, ...]:
    """The nodes of one item: `name` alone, or `name-1` … `name-COUNT` when `count` is written."""
    found = mapping(place, ("name", "count", "kind", "labels", "driver", "cards"), required=("name", "cards"))
    name = _name(found["name"])
    count = _count(found["count"]) if "count" in found else None
    kind = _kind(found["kind"]) if "kind" in found else NodeKind.CONTAINER
    spec = NodeSpec(
        name,
        kind=kind,
        labels=_labels(found["labels"]) if "labels" in found else {},
        cards=card_rows(found["cards"]),
        driver=_driver(found.get("driver"), kind),
    )
    if kind is NodeKind.VM:
        _check_simulated(spec, found["cards"])
    names = [name] if count is None else [f"{name}-{number + 1}" for number in range(count)]
    return tuple(replace(spec, name=each) for each in names)


def _driver(place: Place | None, kind: NodeKind) -> str:
    """Branch of the driver that a machine plays."""
    if place is None:
        return _DRIVER if kind is NodeKind.VM else ""
    if kind is not NodeKind.VM:
        place.refuse(f"driver is for nodes of kind vm, and this one is of kind {kind}")
    branch: str = scalar(place, str, "driver")
    if branch not in DRIVERS:
        place.refuse(f"driver is {branch!r}: must be one of {', '.join(DRIVERS)}")
    return branch


def _check_simulated(spec: NodeSpec, place: Place) -> None:
    """The simulated driver plays a few models, all healthy, and names the cards itself."""
    if not spec.cards:
        place.refuse("a node of kind vm needs at least one card")
    for row in spec.cards:
        if row.model not in SIMULATED:
            place.refuse(f"the simulated driver plays no {row.model!r}: must be one of {', '.join(SIMULATED)}")
        if row.uuid or row.numa is not None or not row.healthy:
            place.refuse("cards of a node of kind vm have model, memMiB and count: the driver decides the rest")


def _name(place: Place) -> str:
    name: str = scalar(place, str, "name")
    if not _NAME.fullmatch(name):
        place.refuse(f"name is {name!r}: must be 1 to 40 of a-z, 0-9 and -, not at the ends")
    return name


def _count(place: Place) -> int:
    count: int = scalar(place, int, "count")
    if not 1 <= count <= MAX_LIGHT_NODES:
        place.refuse(f"count is {count}: must be from 1 to {MAX_LIGHT_NODES}")
    return count


def _kind(place: Place) -> NodeKind:
    written: Any = scalar(place, str, "kind")
    if written not in list(NodeKind):
        place.refuse(f"kind is {written!r}: must be one of {', '.join(NodeKind)}")
    return NodeKind(written)


def _labels(place: Place) -> dict[str, str]:
    """Label names and values as Kubernetes takes them."""
    if place.node.tag != "tag:yaml.org,2002:map":
        place.refuse("labels: expected a mapping of names to texts")
    labels: dict[str, str] = {}
    for key_node, value_node in place.node.value:
        key = Place(key_node, place.file)
        name: str = scalar(key, str, "the label's name")
        value: str = scalar(Place(value_node, place.file), str, f"label {name}")
        if not _LABEL_KEY.fullmatch(name):
            key.refuse(f"label name {name!r}: must be [prefix/]name as Kubernetes takes it")
        if not _LABEL_VALUE.fullmatch(value):
            Place(value_node, place.file).refuse(f"label {name} is {value!r}: at most 63 letters, digits, -, _ and .")
        labels[name] = value
    return labels


def cards_file(spec: NodeSpec) -> str:
    """The text of the device plugin's `--simulate` file on that node (JSON is YAML)."""
    rows = [
        {
            "model": row.model,
            "memMiB": row.mem_mib,
            "count": row.count,
            "healthy": row.healthy,
            **({"uuid": row.uuid} if row.uuid else {}),
            **({"numa": row.numa} if row.numa is not None else {}),
        }
        for row in spec.cards
    ]
    return json.dumps({"cards": rows}, indent=1) + "\n"


def cards_of(spec: NodeSpec, max_instances: int) -> tuple[Card, ...]:
    """The cards as the device plugin would publish them on the node."""
    return tuple(
        Card(
            index=index,
            minor=index,
            uuid=row.uuid or card_uuid(spec.name, index),
            model=row.model,
            mem_mib=row.mem_mib,
            units=units_of(row.mem_mib),
            max_instances=max_instances,
            healthy=row.healthy,
            numa=row.numa,
        )
        for index, row in enumerate(expand(spec.cards))
    )
