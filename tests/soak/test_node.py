# SPDX-License-Identifier: Apache-2.0
"""True limits in pods: a node that is a virtual machine, the kernel module, the driver's own nvidia-smi and libcuda."""

from collections.abc import Iterator

import pytest

from cgpu.core.names import EVENT_UNSCHEDULABLE
from tests.cluster.harness import Cluster
from tests.soak.nodes import EXAMPLES, manifest, nothing_left, said, shown, started

ALLOCATE = (EXAMPLES / "allocate.py").read_text()
SIZES = {"six": 6475, "eight": 8633}


@pytest.fixture(scope="module")
def pods(node: Cluster) -> Iterator[Cluster]:
    """Two pods that fill the card."""
    started(node, manifest("six", 6), manifest("eight", 8))
    yield node
    node.delete("pod", *SIZES)


@pytest.mark.parametrize("pod", SIZES)
def test_nvidia_smi_shows_the_share(pods: Cluster, pod: str) -> None:
    assert shown(pods, pod) == SIZES[pod]


@pytest.mark.parametrize("pod", SIZES)
def test_cuda_is_refused_beyond_the_share_and_the_neighbour_is_untouched(pods: Cluster, pod: str) -> None:
    words = pods.kubectl("exec", "-i", pod, "--", "python3", "-", text=ALLOCATE).split()

    assert words[-1] == "2"
    assert SIZES[pod] - 1024 < int(words[0]) <= SIZES[pod]


def test_a_third_pod_waits_and_is_told_why(pods: Cluster) -> None:
    pods.apply(manifest("third", 1))
    try:
        pods.wait(lambda: said(pods, EVENT_UNSCHEDULABLE, "third", "1 GiB"), about="it is told why it waits")
    finally:
        pods.delete("pod", "third")


def test_genuine_nodes_cannot_be_opened_even_by_root(pods: Cluster) -> None:
    tried = pods.try_kubectl("exec", "six", "--", "sh", "-c", "mknod /tmp/g c 195 0 && exec 3<>/tmp/g")

    assert tried.returncode != 0
    assert "not permitted" in tried.stderr.lower()


def test_nothing_is_left_after_the_pods(pods: Cluster) -> None:
    pods.delete("pod", *SIZES)

    nothing_left(pods)
