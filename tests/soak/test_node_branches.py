# SPDX-License-Identifier: Apache-2.0
"""A node whose driver is of another branch after a reboot: what runs there, and what pods get from then on."""

from collections.abc import Iterator

import pytest

from cgpu.core.names import EVENT_ALLOCATE_FAILED
from tests.cluster.harness import Cluster
from tests.node.nodes import (
    ALLOCATE,
    LONG_S,
    NODE,
    instances,
    manifest,
    nothing_left,
    ready,
    reboot,
    said,
    share,
    shown,
    started,
)
from tests.soak.node_books import agree, complaints


@pytest.fixture(scope="module")
def changing(node: Cluster) -> Iterator[Cluster]:
    """The node without pods; afterwards its driver is again the one that it had."""
    node.delete("pod", "--all")
    nothing_left(node)
    yield node
    node.delete("pod", "--all")
    reboot(node)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "branch",
    [pytest.param("550", id="a newer branch"), pytest.param("470", id="an older branch, whose kernel part is closed")],
)
def test_a_driver_of_another_branch_after_a_reboot(changing: Cluster, branch: str) -> None:
    """A pod of before is told to be deleted, since the disks forget; the pods after it have their shares of that driver."""
    started(changing, manifest("before", 6))
    assert not driver(changing, "before").startswith(f"{branch}.")

    reboot(changing, branch)

    assert f"on driver branch {branch};" in changing.node_exec(NODE, ["dmesg"])
    ready(changing, "before")
    changing.wait(
        lambda: said(changing, EVENT_ALLOCATE_FAILED, "before", "runs without it"),
        LONG_S,
        about="the pod of before is told",
    )
    assert instances(changing) == {}
    changing.delete("pod", "before")
    started(changing, manifest("six", 6), manifest("eight", 8))
    for pod, units in (("six", 6), ("eight", 8)):
        assert driver(changing, pod).startswith(f"{branch}.")
        assert shown(changing, pod) == share(units)
        words = changing.kubectl("exec", "-i", pod, "-c", "main", "--", "python3", "-", text=ALLOCATE).split()
        assert share(units) - 1024 < int(words[0]) < share(units)
        assert words[-1] == "2"
    agree(changing)
    assert complaints(changing) == []
    changing.delete("pod", "six", "eight")
    nothing_left(changing)


def driver(cluster: Cluster, pod: str) -> str:
    """The version that nvidia-smi shows in a pod."""
    query = ("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    return cluster.kubectl("exec", pod, "-c", "main", "--", *query).strip()
