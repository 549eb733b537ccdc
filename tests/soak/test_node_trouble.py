# SPDX-License-Identifier: Apache-2.0
"""What goes wrong on a node that is a virtual machine: cards that fail, processes that outlive their pods, a power cut."""

import pytest

from cgpu.core.names import EVENT_ALLOCATE_FAILED, EVENT_RECOVERED, EVENT_UNHEALTHY
from tests.cluster.harness import Cluster
from tests.node.nodes import (
    LONG_S,
    NODE,
    inspect,
    instances,
    manifest,
    nothing_left,
    offered,
    ready,
    reboot,
    said,
    share,
    shown,
    started,
)
from tests.soak.node_books import agree, complaints


def inject(cluster: Cluster, words: str) -> None:
    """A fault of the simulated driver."""
    cluster.node_exec(NODE, ["sh", "-c", f"echo {words} > /proc/nvsim"])


def test_a_card_that_falls_off_the_bus_takes_no_pods_until_it_is_back(empty: Cluster) -> None:
    """The pod that is there keeps its share of the books and of the kernel's."""
    started(empty, manifest("there", 4))
    before = instances(empty)
    inject(empty, "xid 0 79 0")
    try:
        empty.wait(lambda: offered(empty) == 0, LONG_S, about="nothing is offered")
        empty.wait(
            lambda: said(empty, EVENT_UNHEALTHY, NODE, "GPU 0"), LONG_S, about="the node says that its card failed"
        )
        assert instances(empty) == before
    finally:
        inject(empty, "restore 0")
    empty.wait(lambda: offered(empty) == 14, LONG_S, about="the card is offered again")
    empty.wait(lambda: said(empty, EVENT_RECOVERED, NODE, "answers again"), LONG_S, about="the node says so")
    assert instances(empty) == before
    started(empty, manifest("late", 6))
    assert shown(empty, "late") == share(6)
    agree(empty)


def test_a_force_deleted_pod_keeps_its_instance_until_its_process_has_ended(empty: Cluster) -> None:
    started(empty, manifest("forced", 5))
    before = instances(empty)
    empty.node_exec(NODE, ["pkill", "-STOP", "-x", "kubelet"])
    try:
        empty.kubectl("delete", "pod", "forced", "--force", "--grace-period=0")
        empty.wait(lambda: empty.try_kubectl("get", "pod", "forced").returncode, about="the API server has no such pod")
        assert empty.node_exec(NODE, ["pgrep", "-x", "sleep"])
        assert instances(empty) == before
    finally:
        empty.node_exec(NODE, ["pkill", "-CONT", "-x", "kubelet"])
    nothing_left(empty)


@pytest.mark.timeout(3600)
def test_after_a_power_cut_in_the_middle_of_pod_starts_nobody_has_what_the_kubelet_does_not_know(
    empty: Cluster,
) -> None:
    """The machine's disks forget everything: its kubelet starts the pods without the ids that it gave, so without a GPU, which is told."""
    started(empty, manifest("first", 6))
    for name, mem in (("second", 3), ("third", 2), ("fourth", 3)):
        empty.apply(manifest(name, mem))
    empty.wait(lambda: len(instances(empty)) > 1, LONG_S, about="a further pod is about to start")
    reboot(empty)

    ready(empty, "first")
    assert instances(empty) == {}
    empty.wait(
        lambda: said(
            empty, EVENT_ALLOCATE_FAILED, "first", "container main asks for aliyun.com/gpu-mem: 6 and runs without"
        ),
        LONG_S,
        about="the pod says that it runs without its GPU, and what to do",
    )
    empty.wait(lambda: "WITHOUT GPU" in inspect(empty, "--details").stdout, LONG_S, about="so does kubectl inspect")
    assert empty.kubectl("exec", "first", "-c", "main", "--", "sh", "-c", "ls -d /dev/nvidia* 2>&-; true") == ""
    empty.delete("pod", "--all")
    started(empty, manifest("after", 6), manifest("beside", 8))
    assert (shown(empty, "after"), shown(empty, "beside")) == (share(6), share(8))
    agree(empty)
    assert complaints(empty) == []
