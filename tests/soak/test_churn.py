# SPDX-License-Identifier: Apache-2.0
"""Pods come and go through the whole chain while its parts are killed; afterwards all books say the same."""

import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.cluster.agent import END, PLUGIN, Agent, container, pod
from tests.cluster.books import assert_books, booked, cdi_files, grants
from tests.cluster.harness import Cluster

ROUNDS = 10
PODS = 12

BREAK: tuple[Callable[[Cluster], None], ...] = (
    lambda cluster: cluster.restart("node-1/kubelet"),
    lambda cluster: cluster.kill_pod("kube-system", PLUGIN),
    lambda cluster: cluster.restart("node-2/containerd"),
    lambda cluster: cluster.kill_pod("kube-system", "app.kubernetes.io/component=scheduler"),
    lambda cluster: cluster.restart("kube-apiserver"),
)


def random_pod(order: random.Random, name: str) -> dict[str, Any]:
    """One container, two, or an init container before one that soon ends."""
    size = order.randint(1, 6)
    shapes = (
        lambda: pod(name, container("c", size)),
        lambda: pod(name, container("a", size), container("b", 1)),
        lambda: pod(name, container("c", size, "env; sleep 2"), init=(container("i", size + 1, END),)),
    )
    return order.choice(shapes)()


def _held(cluster: Cluster) -> int:
    """GiB held on all nodes."""
    return sum(sum(booked(cluster, node).values()) for node in cluster.nodes)


@pytest.mark.timeout(900)
def test_churn_with_parts_killed_leaves_the_books_exact(
    cluster: Cluster, record_property: Callable[[str, object], None]
) -> None:
    agent, order, start = Agent(cluster), random.Random(20), time.monotonic()
    try:
        for turn in range(ROUNDS):
            agent.create(*(random_pod(order, f"churn-{turn}-{number}") for number in range(PODS)))
            BREAK[turn % len(BREAK)](cluster)
            time.sleep(order.uniform(1, 4))  # random moments are what this test is about
            rows = cluster.get("pods", "-l", "test=agent")["items"]
            gone = order.sample(rows, len(rows) * 2 // 3)
            cluster.kubectl("delete", "pod", "--wait=false", *(row["metadata"]["name"] for row in gone))
        cluster.wait(lambda: _held(cluster) > 0, about="the scheduler that was cut off last works again")
        assert_books(cluster)
        held = {node: booked(cluster, node) for node in cluster.nodes}
    finally:
        agent.clear()
    assert_books(cluster)
    for node in cluster.nodes:
        cluster.wait(lambda node=node: not grants(cluster, node) and not cdi_files(cluster, node), 30)
    figure = f"{ROUNDS * PODS} pods in {time.monotonic() - start:.0f} s, {len(BREAK)} kinds of kills; at the end {held}"
    record_property("figure", figure)
    print(f"soak: {figure}")
