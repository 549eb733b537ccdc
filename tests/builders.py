# SPDX-License-Identifier: Apache-2.0
"""Objects for tests: keyword defaults, one line an object."""

from collections.abc import Iterable

from cgpu.core.model import Ask, Card, CardState, Claim, Container, ContainerKind, NodeState, Pod
from cgpu.core.names import LABEL_GPU_COUNT, MAX_INSTANCES_DEFAULT, Placement


def make_card(
    index: int = 0, units: int = 15, *, max_instances: int = MAX_INSTANCES_DEFAULT, healthy: bool = True
) -> Card:
    """A card of `units` GiB."""
    return Card(index, index, f"GPU-{index}", "Tesla T4", units * 1024 + 100, units, max_instances, healthy)


def make_node(
    *free: int,
    units: int | Iterable[int] | None = None,
    name: str = "node-a",
    placement: Placement = Placement.BINPACK,
    core_mem: bool = False,
) -> NodeState:
    """A node whose cards have `free` GiB left; `units` as large as the card is (default: as much as is free)."""
    sizes = list(free) if units is None else [units] * len(free) if isinstance(units, int) else list(units)
    states = [
        CardState(make_card(index, size), mem=size - left)
        for index, (left, size) in enumerate(zip(free, sizes, strict=True))
    ]
    return NodeState(name, tuple(states), placement, core_mem)


def make_claim(
    *mem: int, init: Iterable[int] = (), sidecars: Iterable[int] = (), gpu_count: int = 1, core: int = 0
) -> Claim:
    """Init containers first, then sidecars, then the app containers."""
    asks = [
        *(Ask(f"init{i}", ContainerKind.INIT, size, core) for i, size in enumerate(init)),
        *(Ask(f"side{i}", ContainerKind.SIDECAR, size, core) for i, size in enumerate(sidecars)),
        *(Ask(f"app{i}", ContainerKind.APP, size, core) for i, size in enumerate(mem)),
    ]
    return Claim(tuple(asks), gpu_count)


def make_pod(*mem: str, name: str = "pod", gpu_count: str = "", core: str = "", **fields: object) -> Pod:
    """A pod with one app container a size."""
    containers = tuple(Container(f"app{i}", ContainerKind.APP, size, core) for i, size in enumerate(mem))
    labels = {LABEL_GPU_COUNT: gpu_count} if gpu_count else {}
    values: dict[str, object] = {"containers": containers, "labels": labels, **fields}
    return Pod(uid=f"uid-{name}", namespace="default", name=name, **values)  # type: ignore[arg-type]
