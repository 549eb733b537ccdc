# SPDX-License-Identifier: Apache-2.0
"""Compute shares and high priority of pods on a node that is a virtual machine."""

import json
from collections.abc import Iterator, Mapping

import pytest

from cgpu.core.names import RESOURCE_CORE
from tests.cluster.harness import Cluster
from tests.node.nodes import EXAMPLES, LONG_S, NODE, instance_of, manifest, mode, nothing_left, started, usage

BUSY = (EXAMPLES / "busy.py").read_text()
BUSY_S = "150"
URGENT = "urgent"
PRIO_RATIO = 0.80


@pytest.fixture(scope="module")
def weighed(node: Cluster) -> Iterator[Cluster]:
    """Two pods with 30 and 60 percent of a card's compute."""
    with mode(node, "core_mem", RESOURCE_CORE):
        started(node, manifest("small", 4, 30), manifest("large", 8, 60))
        yield node
        node.delete("pod", "small", "large")


def test_percentages_are_weights_of_a_card_with_fixed_shares(weighed: Cluster) -> None:
    assert (instance_of(weighed, "small").weight, instance_of(weighed, "large").weight) == (6, 12)
    told = "cat /proc/cgpu_km/0/policy /proc/cgpu_km/0/max_inst /proc/cgpu_km/0/free_weight"
    assert weighed.node_exec(NODE, ["sh", "-c", told]).split() == ["3", "20", "2"]


def test_two_busy_pods_get_their_percentages_of_the_time(weighed: Cluster) -> None:
    ids = {instance_of(weighed, pod).id: pod for pod in ("small", "large")}
    with (
        weighed.kubectl_running("exec", "small", "--", "python3", "-c", BUSY, BUSY_S),
        weighed.kubectl_running("exec", "large", "--", "python3", "-c", BUSY, BUSY_S),
    ):
        usage(weighed)
        weighed.wait(
            lambda: _divided(weighed, ids), LONG_S, about="it is divided by 1:2, as soon as the host gives time"
        )
        ratios = {pod: row["utilization"] for pod, row in usage(weighed).items()}
    assert ratios["large"] > ratios["small"] > 0


def _divided(cluster: Cluster, ids: Mapping[str, str]) -> bool:
    """Whether both worked so much in the last seconds that their shares tell; more than its own nobody ever has."""
    shares, longest = of_the_time(cluster, ids)
    assert shares["small"] < 0.30 * 1.01 + longest, shares
    assert shares["large"] < 0.60 * 1.01 + longest, shares
    # a machine by a loaded host's clock falls short of what it would give
    return shares["small"] > 0.15 and 1.8 < shares["large"] / shares["small"] < 2.2


def of_the_time(cluster: Cluster, ids: Mapping[str, str]) -> tuple[dict[str, float], float]:
    """Each pod's part of some seconds of the machine, and what a kernel at each end of them may add."""
    before = counted(cluster)
    cluster.wait(lambda: counted(cluster)[0] - before[0] > 3e9, LONG_S, about="3 s of the machine have gone by")
    after = counted(cluster)
    wall = after[0] - before[0]
    return {pod: (after[1][id_] - before[1][id_]) / wall for id_, pod in ids.items()}, 2 * 5e6 / wall


def counted(cluster: Cluster) -> tuple[int, dict[str, int]]:
    """The machine's clock, and busy nanoseconds by instance."""
    text = cluster.node_exec(NODE, ["sh", "-c", "cut -d' ' -f1 /proc/uptime; cat /proc/cgpu_km/inst_ctl"])
    uptime, *lines = text.splitlines()
    words = {line.split()[0]: dict(word.split("=") for word in line.split()[1:]) for line in lines}
    return int(float(uptime) * 1e9), {id_: int(row["busy_ns"]) for id_, row in words.items()}


def test_a_pod_that_asks_for_memory_alone_does_not_fit_there(weighed: Cluster) -> None:
    weighed.apply(manifest("alone", 1))
    try:
        weighed.wait(
            lambda: "needs aliyun.com/gpu-core.percentage too" in weighed.kubectl("describe", "pod", "alone"),
            about="it is told what to ask for",
        )
    finally:
        weighed.delete("pod", "alone")


@pytest.fixture
def urgent(node: Cluster) -> Iterator[Cluster]:
    """The chart lists a PriorityClass; a pod of it, and one of none."""
    nothing_left(node)
    node.install(f"highPriorityClasses={{{URGENT}}}")
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": URGENT}, "value": 10}
    node.apply(json.dumps(kind))
    try:
        started(node, manifest("plain", 4), manifest("first", 4, priority_class=URGENT))
        yield node
    finally:
        node.delete("pod", "plain", "first")
        node.delete("priorityclass", URGENT)
        node.install()


def test_a_pod_of_a_listed_priority_class_wakes_into_at_most_prio_ratio_percent(urgent: Cluster) -> None:
    ids = {instance_of(urgent, pod).id: pod for pod in ("plain", "first")}
    assert (instance_of(urgent, "plain").highprio, instance_of(urgent, "first").highprio) == (0, 1)
    assert urgent.kubectl("exec", "first", "--", "printenv", "ALIYUN_COM_GPU_HIGH_PRIO") == "1\n"

    with (
        urgent.kubectl_running("exec", "plain", "--", "python3", "-c", BUSY, BUSY_S),
        urgent.kubectl_running("exec", "first", "--", "python3", "-c", BUSY, BUSY_S),
    ):
        urgent.wait(lambda: _preferred(urgent, ids), LONG_S, about="the urgent one has most of the card, not all")


def _preferred(cluster: Cluster, ids: Mapping[str, str]) -> bool:
    """Whether the urgent pod got more than twice of what the other did, while both worked."""
    shares, longest = of_the_time(cluster, ids)
    if shares["plain"] > 0.05:
        assert shares["first"] < PRIO_RATIO * 1.01 + longest, shares
    return shares["plain"] > 0.05 and shares["first"] > 2 * shares["plain"]
