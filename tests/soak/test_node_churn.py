# SPDX-License-Identifier: Apache-2.0
"""Sixty pods of random sizes come and go on a node with the module, while its programs are killed."""

import os
import random
from collections.abc import Callable
from functools import partial

import pytest

from cgpu.sandbox.release import NAMESPACE
from tests.cluster.harness import Cluster
from tests.node.nodes import DAEMONSET, LONG_S, NODE, PLUGIN, manifest, nothing_left, rows
from tests.soak.node_books import agree, complaints

PODS = int(os.environ.get("CGPU_TEST_PODS", "60"))
UNITS = 14
PATIENT = 0.7
KILL_EVERY = 7
VICTIMS = ("plugin", "kubelet", "containerd")


def kill(cluster: Cluster, what: str) -> None:
    """End a program of the node at once; another takes its place."""
    if what == "plugin":
        cluster.kill_pod(NAMESPACE, PLUGIN)
    else:
        cluster.node_exec(NODE, ["sh", "-c", f"pkill -KILL -x {what}; true"])


@pytest.mark.timeout(7200)
def test_pods_that_come_and_go_while_programs_are_killed_leave_equal_books(
    empty: Cluster, record_property: Callable[[str, object], None]
) -> None:
    """A new pod takes the room of some that leave; most of these ran, the others leave in the middle of their start."""
    draw = random.Random(7)
    there: dict[str, int] = {}
    ended: list[str] = []
    for number in range(PODS):
        mem = draw.randint(1, 6)
        while sum(there.values()) + mem > UNITS:
            leaving = draw.choice(sorted(there))
            del there[leaving]
            if draw.random() < PATIENT:
                ended.append(empty.wait(partial(phase, empty, leaving), LONG_S, about=f"{leaving} runs or is refused"))
            empty.kubectl("delete", "pod", leaving, "--wait=false")
        empty.apply(manifest(f"churn-{number}", mem))
        there[f"churn-{number}"] = mem
        if number % KILL_EVERY == KILL_EVERY - 1:
            kill(empty, VICTIMS[number // KILL_EVERY % len(VICTIMS)])
    empty.kubectl("rollout", "status", "-n", NAMESPACE, DAEMONSET, f"--timeout={LONG_S}s")

    agree(empty)
    ran, refused = ended.count("Running") + len(rows(empty)), ended.count("Failed")
    figure = f"{PODS} pods, of which {ran} ran and {refused} were refused while the plugin was away"
    record_property("figure", figure)
    print(f"soak: {figure}")
    assert ran > PODS // 4

    empty.delete("pod", "--all")
    nothing_left(empty)
    assert complaints(empty) == []


def phase(cluster: Cluster, pod: str) -> str:
    """How a pod's start ended, "" before that."""
    found = str(cluster.get("pod", pod)["status"]["phase"])
    return "" if found == "Pending" else found
