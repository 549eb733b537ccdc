# SPDX-License-Identifier: Apache-2.0
"""Instances of pods outlive everything but their pods: restarts of the node's programs, and a plugin's lost notes."""

from functools import partial

import pytest

from tests.cluster.harness import Cluster
from tests.node.nodes import (
    ALLOCATE,
    LONG_S,
    NODE,
    SIZES,
    holding,
    instance_of,
    instances,
    kill_containers,
    manifest,
    nothing_left,
    offered,
    ready,
    restart_plugin,
    restarts,
    shown,
    started,
)


def test_a_debug_container_has_no_gpu(pods: Cluster) -> None:
    words = ("--image=localhost/cgpu:1.0.0", "--image-pull-policy=Never", "--target=main", "--container=looker")
    script = "ls -d /dev/nvidia* 2>&-; mknod /tmp/g c 195 255 && cat /tmp/g; echo end"
    pods.kubectl("debug", "eight", *words, "--profile=general", "--", "sh", "-c", script)

    told = pods.wait(lambda: _logs(pods, "eight", "looker"), LONG_S, about="the debug container has ended")
    assert "/dev/nvidia" not in told
    assert "not permitted" in told.lower()


def _logs(cluster: Cluster, pod: str, container: str) -> str:
    text = cluster.kubectl("logs", pod, "-c", container)
    return text if text.endswith("end\n") else ""


def test_processes_of_exec_count_to_the_share(pods: Cluster) -> None:
    with holding(pods, "six"):
        tried = pods.try_kubectl("exec", "-i", "six", "-c", "main", "--", "python3", "-", text=ALLOCATE)
    assert tried.stdout.split()[:1] == ["0"] or "ended with 2" in tried.stderr


@pytest.mark.parametrize("program", ["containerd", "kubelet"])
def test_a_killed_program_of_the_node_changes_nothing(pods: Cluster, program: str) -> None:
    before, counts = instances(pods), [restarts(pods, pod) for pod in SIZES]
    assert sorted(before.values()) == sorted(SIZES.values())

    pods.node_exec(NODE, ["pkill", "-KILL", "-x", program])
    pods.wait(partial(pods.node_exec, NODE, ["pgrep", "-x", program]), LONG_S, about=f"{program} is back")
    pods.wait(lambda: shown(pods, "six") == SIZES["six"], LONG_S, about="the pod can be entered again")
    pods.wait(lambda: offered(pods) == 14, LONG_S, about="the node offers its card again")
    ready(pods, *SIZES)

    assert instances(pods) == before
    assert [restarts(pods, pod) for pod in SIZES] == counts


def test_restarts_of_plugin_and_containers_change_nothing(pods: Cluster) -> None:
    """Each container has its instance again."""
    before = instances(pods)
    assert sorted(before.values()) == sorted(SIZES.values())

    restart_plugin(pods)
    kill_containers(pods, *SIZES)

    assert instances(pods) == before
    assert {pod: shown(pods, pod) for pod in SIZES} == SIZES


def test_what_a_killed_plugin_left_is_found_and_removed(node: Cluster) -> None:
    node.delete("pod", *SIZES)
    nothing_left(node)
    started(node, manifest("left", 2))
    instance = instance_of(node, "left").id
    node.node_exec(NODE, ["sh", "-c", "rm /run/cgpu/grants/*.json"])
    node.kubectl("delete", "pod", "left", "--wait=false")
    restart_plugin(node)

    node.wait(lambda: instance not in instances(node), LONG_S, about="an instance of no pod is ended")
    nothing_left(node)
