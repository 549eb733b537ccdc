# SPDX-License-Identifier: Apache-2.0
"""The values everything else speaks of. All are immutable; memory is in GiB units unless a name says otherwise."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from cgpu.core.names import MAX_INSTANCES_DEFAULT, Placement


@dataclass(frozen=True, slots=True)
class Card:
    """One GPU of a node, as the device plugin publishes it."""

    index: int  # NVML's
    minor: int  # /dev/nvidia<minor>
    uuid: str
    model: str
    mem_mib: int
    units: int  # GiB offered
    max_instances: int = MAX_INSTANCES_DEFAULT
    healthy: bool = True
    numa: int | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """A part of one card: `mem` GiB, and `core` percent of its compute (0 = not asked)."""

    mem: int
    core: int = 0


Allocation = Mapping[str, Mapping[str, Share]]
"""container name → card UUID → share; init containers included."""


class ContainerKind(StrEnum):
    """How a container counts: app and sidecar add up, a plain init container ends before the next starts."""

    APP = "app"
    SIDECAR = "sidecar"
    INIT = "init"


@dataclass(frozen=True, slots=True)
class Container:
    """A container of a pod with what it asks for; quantities are kept as written, so that a bad one can be named."""

    name: str
    kind: ContainerKind = ContainerKind.APP
    mem: str = ""  # limit of aliyun.com/gpu-mem, "" = none
    core: str = ""  # limit of aliyun.com/gpu-core.percentage


@dataclass(frozen=True, slots=True)
class Start:
    """One start of a container: the container runtime's id, and when, RFC 3339."""

    id: str
    at: str = ""


@dataclass(frozen=True, slots=True)
class Pod:
    """What the project reads of a pod. `containers`: init containers in order, then the app containers in order."""

    uid: str
    namespace: str
    name: str
    containers: tuple[Container, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    node: str = ""
    nominated: str = ""  # the node that preemption makes room on for it
    phase: str = "Pending"
    scheduler_name: str = ""
    priority: int = 0
    priority_class: str = ""
    deleting: bool = False
    start_time: str = ""  # RFC 3339, "" before the kubelet has seen it
    ended: bool = False  # every container has terminated, whatever the phase says
    running: Mapping[str, Start] = field(default_factory=dict)  # those of its containers with a share that run

    @property
    def key(self) -> str:
        """`namespace/name`, as people write it."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Node:
    """What the project reads of a node object; quantities as written."""

    name: str
    uid: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    address: str = ""  # its internal IP, "" before the kubelet has reported one
    ready: bool = True
    unschedulable: bool = False
    runtime: str = ""  # its container runtime and version, such as containerd://2.4.2
    capacity: Mapping[str, str] = field(default_factory=dict)
    allocatable: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The name: nodes have no namespace."""
        return self.name


@dataclass(frozen=True, slots=True)
class Ask:
    """One container's request, read and checked: GiB over all its cards, percent of compute."""

    name: str
    kind: ContainerKind
    mem: int
    core: int = 0


@dataclass(frozen=True, slots=True)
class Claim:
    """What a pod asks of one node: each container's ask on `gpu_count` cards."""

    asks: tuple[Ask, ...]
    gpu_count: int = 1

    def per_card(self, ask: Ask) -> Share:
        """One container's share of each of its cards."""
        return Share(ask.mem // self.gpu_count, ask.core)


@dataclass(frozen=True, slots=True)
class CardState:
    """A card with what is held on it."""

    card: Card
    mem: int = 0
    core: int = 0
    instances: int = 0
    cordoned: bool = False

    @property
    def usable(self) -> bool:
        """Whether new shares may go there."""
        return self.card.healthy and not self.cordoned

    @property
    def free(self) -> int:
        """GiB that can still be handed out, never below 0."""
        return max(0, self.card.units - self.mem)


@dataclass(frozen=True, slots=True)
class NodeState:
    """A node as the scheduler sees it: its cards in index order with what is held."""

    name: str
    cards: tuple[CardState, ...]
    placement: Placement = Placement.BINPACK
    core_mem: bool = False  # the node also offers aliyun.com/gpu-core.percentage

    @property
    def total(self) -> int:
        """GiB of all cards."""
        return sum(state.card.units for state in self.cards)

    @property
    def used(self) -> int:
        """GiB held on all cards."""
        return sum(state.mem for state in self.cards)
