# SPDX-License-Identifier: Apache-2.0
"""Sixty pods of random sizes come and go on a node with the module, while its programs are killed."""

import os
import random
from collections.abc import Iterator
from functools import partial

import pytest

from cgpu.sandbox.release import NAMESPACE
from tests.cluster.harness import Cluster
from tests.soak.node_books import agree, complaints
from tests.soak.nodes import DAEMONSET, LONG_S, NODE, PLUGIN, manifest, nothing_left, rows

PODS = int(os.environ.get("CGPU_TEST_PODS", "60"))
ALIVE = 5
KILL_EVERY = 7
VICTIMS = ("plugin", "kubelet", "containerd")


@pytest.fixture
def empty(node: Cluster) -> Iterator[Cluster]:
    """The node without pods, before and after."""
    node.delete("pod", "--all")
    nothing_left(node)
    yield node
    node.delete("pod", "--all")


def kill(cluster: Cluster, what: str) -> None:
    """End a program of the node at once; another takes its place."""
    if what == "plugin":
        cluster.kill_pod(NAMESPACE, PLUGIN)
    else:
        cluster.node_exec(NODE, ["sh", "-c", f"pkill -KILL -x {what}; true"])


@pytest.mark.timeout(7200)
def test_pods_that_come_and_go_while_programs_are_killed_leave_equal_books(empty: Cluster) -> None:
    draw = random.Random(7)
    alive: list[str] = []
    for number in range(PODS):
        empty.apply(manifest(f"churn-{number}", draw.randint(1, 5)))
        alive.append(f"churn-{number}")
        if len(alive) > ALIVE:
            leaving = alive.pop(draw.randrange(ALIVE))
            if draw.random() < 0.5:  # the others leave before they run
                empty.wait(partial(started_or_waits, empty, leaving), LONG_S, about=f"{leaving} has an end")
            empty.kubectl("delete", "pod", leaving, "--wait=false")
        if number % KILL_EVERY == KILL_EVERY - 1:
            kill(empty, VICTIMS[number // KILL_EVERY % len(VICTIMS)])
    empty.kubectl("rollout", "status", "-n", NAMESPACE, DAEMONSET, f"--timeout={LONG_S}s")

    agree(empty)
    assert rows(empty)

    empty.delete("pod", "--all")
    nothing_left(empty)
    assert complaints(empty) == []


def started_or_waits(cluster: Cluster, pod: str) -> bool:
    """Whether a pod runs, was refused, or waits for room on the card."""
    row = cluster.get("pod", pod)
    return "nodeName" not in row["spec"] or row["status"]["phase"] != "Pending"
