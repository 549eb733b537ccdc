# SPDX-License-Identifier: Apache-2.0
"""True limits in pods: a node that is a virtual machine, the kernel module, the driver's own nvidia-smi and libcuda."""

import pytest

from cgpu.core.names import EVENT_UNSCHEDULABLE
from tests.cluster.harness import Cluster
from tests.node.nodes import (
    ALLOCATE,
    LONG_S,
    SIZES,
    manifest,
    nothing_left,
    said,
    shown,
    usage,
)


@pytest.mark.parametrize("pod", SIZES)
def test_nvidia_smi_shows_the_share(pods: Cluster, pod: str) -> None:
    assert shown(pods, pod) == SIZES[pod]


@pytest.mark.parametrize("pod", SIZES)
def test_cuda_is_refused_beyond_the_share_and_the_neighbour_is_untouched(pods: Cluster, pod: str) -> None:
    words = pods.kubectl("exec", "-i", pod, "-c", "main", "--", "python3", "-", text=ALLOCATE).split()

    assert words[-1] == "2"
    assert SIZES[pod] - 1024 < int(words[0]) <= SIZES[pod]


def test_the_plugin_tells_limit_use_and_refusals_as_the_kernel_counts_them(pods: Cluster) -> None:
    rows = usage(pods)

    assert {pod: row["limitBytes"] >> 20 for pod, row in rows.items()} == SIZES
    assert {pod: row["usedBytes"] for pod, row in rows.items()} == dict.fromkeys(SIZES, 0)
    assert all(row["oom"] >= 1 for row in rows.values())


def test_a_third_pod_waits_and_is_told_why(pods: Cluster) -> None:
    pods.apply(manifest("third", 1))
    try:
        pods.wait(lambda: said(pods, EVENT_UNSCHEDULABLE, "third", "1 GiB"), LONG_S, about="it is told why it waits")
    finally:
        pods.delete("pod", "third")


@pytest.mark.parametrize("container", ["main", "beside"])
def test_genuine_nodes_cannot_be_opened_even_by_root(pods: Cluster, container: str) -> None:
    """The card's, its control node's and the one of unified memory: made anew, none can be opened."""
    script = "for n in '195 0' '195 255' '510 0'; do rm -f /tmp/g; mknod /tmp/g c $n; cat /tmp/g; echo $?; done; true"
    tried = pods.try_kubectl("exec", "six", "-c", container, "--", "sh", "-c", script)

    assert tried.stdout.split() == ["1"] * 3
    assert tried.stderr.lower().count("not permitted") == 3


def test_a_container_without_a_share_beside_one_with_has_no_gpu(pods: Cluster) -> None:
    assert pods.kubectl("exec", "six", "-c", "beside", "--", "sh", "-c", "ls -d /dev/nvidia* 2>&-; true") == ""


def test_nothing_is_left_after_the_pods(pods: Cluster) -> None:
    pods.delete("pod", *SIZES)

    nothing_left(pods)
