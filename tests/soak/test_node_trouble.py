# SPDX-License-Identifier: Apache-2.0
"""What goes wrong on a node that is a virtual machine: cards that fail, processes that outlive their pods, a power cut."""

from collections.abc import Iterator

import pytest

from cgpu.core.names import EVENT_RECOVERED, EVENT_UNHEALTHY
from tests.cluster.harness import Cluster
from tests.node.nodes import (
    LONG_S,
    NODE,
    instances,
    manifest,
    nothing_left,
    offered,
    ready,
    said,
    share,
    shown,
    started,
)
from tests.soak.node_books import agree, complaints


@pytest.fixture
def calm(node: Cluster) -> Iterator[Cluster]:
    """The node without pods, before and after."""
    node.delete("pod", "--all")
    nothing_left(node)
    yield node
    node.delete("pod", "--all")


def inject(cluster: Cluster, words: str) -> None:
    """A fault of the simulated driver."""
    cluster.node_exec(NODE, ["sh", "-c", f"echo {words} > /proc/nvsim"])


def test_a_card_that_falls_off_the_bus_takes_no_pods_until_it_is_back(calm: Cluster) -> None:
    """The pod that is there keeps its share of the books and of the kernel's."""
    started(calm, manifest("there", 4))
    before = instances(calm)
    inject(calm, "xid 0 79 0")
    try:
        calm.wait(lambda: offered(calm) == 0, LONG_S, about="nothing is offered")
        calm.wait(
            lambda: said(calm, EVENT_UNHEALTHY, NODE, "GPU 0"), LONG_S, about="the node says that its card failed"
        )
        assert instances(calm) == before
    finally:
        inject(calm, "restore 0")
    calm.wait(lambda: offered(calm) == 14, LONG_S, about="the card is offered again")
    calm.wait(lambda: said(calm, EVENT_RECOVERED, NODE, "answers again"), LONG_S, about="the node says so")
    assert instances(calm) == before
    started(calm, manifest("late", 6))
    assert shown(calm, "late") == share(6)
    agree(calm)


def test_a_force_deleted_pod_keeps_its_instance_until_its_process_has_ended(calm: Cluster) -> None:
    started(calm, manifest("forced", 5))
    before = instances(calm)
    calm.node_exec(NODE, ["pkill", "-STOP", "-x", "kubelet"])
    try:
        calm.kubectl("delete", "pod", "forced", "--force", "--grace-period=0")
        calm.wait(lambda: calm.try_kubectl("get", "pod", "forced").returncode, about="the API server has no such pod")
        assert calm.node_exec(NODE, ["pgrep", "-x", "sleep"])
        assert instances(calm) == before
    finally:
        calm.node_exec(NODE, ["pkill", "-CONT", "-x", "kubelet"])
    nothing_left(calm)


def test_after_a_power_cut_in_the_middle_of_pod_starts_nobody_has_what_the_kubelet_does_not_know(calm: Cluster) -> None:
    """The machine's disks forget everything: its kubelet starts the pods without the ids that it gave, so without a GPU."""
    started(calm, manifest("first", 6))
    booted = boot_of(calm)
    for name, mem in (("second", 3), ("third", 2), ("fourth", 3)):
        calm.apply(manifest(name, mem))
    calm.wait(lambda: len(instances(calm)) > 1, LONG_S, about="a further pod is about to start")
    calm.kill(f"{NODE}/qemu")
    calm.start(f"{NODE}/qemu")

    calm.wait(lambda: boot_of(calm) != booted, LONG_S, about="it boots")
    calm.wait(lambda: modules(calm) and offered(calm) == 14, 2 * LONG_S, about="the card is offered again")
    ready(calm, "first")
    assert instances(calm) == {}
    assert calm.kubectl("exec", "first", "-c", "main", "--", "sh", "-c", "ls -d /dev/nvidia* 2>&-; true") == ""
    calm.delete("pod", "--all")
    started(calm, manifest("after", 6), manifest("beside", 8))
    assert (shown(calm, "after"), shown(calm, "beside")) == (share(6), share(8))
    agree(calm)
    assert complaints(calm) == []


def boot_of(cluster: Cluster) -> str:
    """Which start of the machine this is."""
    return cluster.node_exec(NODE, ["cat", "/proc/sys/kernel/random/boot_id"])


def modules(cluster: Cluster) -> str:
    """The version of our module's core that runs."""
    return cluster.node_exec(NODE, ["grep", "-v", "none", "/proc/cgpu_km/version"])
