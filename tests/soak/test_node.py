# SPDX-License-Identifier: Apache-2.0
"""True limits in pods: a node that is a virtual machine, the kernel module, the driver's own nvidia-smi and libcuda.

One sandbox serves all of it. CGPU_TEST_NODE_STATE names one that is up (`cgpu sandbox up --vm-nodes 1`) and stays up.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cgpu.core.names import EVENT_UNSCHEDULABLE, RESOURCE_MEM
from cgpu.sandbox.lifecycle import Plan, down, up
from cgpu.sandbox.sandbox import attach
from cgpu.sandbox.spec import machine_nodes
from tests.cluster.harness import Cluster, state_folder

PROJECT = Path(__file__).parents[2]
NODE = "vm-1"
ALLOCATE = (PROJECT / "examples/isolated/allocate.py").read_text()
SIZES = {"six": 6475, "eight": 8633}


def manifest(name: str, mem: int) -> str:
    """A pod that sleeps, in an image with glibc and Python."""
    container = {
        "name": "main",
        "image": "localhost/cgpu:1.0.0",
        "imagePullPolicy": "Never",
        "command": ["sleep", "3600"],
        "resources": {"limits": {RESOURCE_MEM: str(mem)}},
        "env": [{"name": name, "value": value} for name, value in FORGED.items()],
    }
    spec = {"terminationGracePeriodSeconds": 1, "containers": [container]}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})


FORGED = {"CGPU_DISABLE": "true", "NVIDIA_VISIBLE_DEVICES": "all", "ALIYUN_COM_GPU_MEM_CONTAINER": "0"}
"""What a pod would write to be let off; it has no effect."""


@pytest.fixture(scope="module")
def node() -> Iterator[Cluster]:
    """A cluster with one virtual machine, our chart installed: the plugin has loaded the module."""
    given = os.environ.get("CGPU_TEST_NODE_STATE")
    state = Path(given).resolve() if given else state_folder("node")
    try:
        cluster = Cluster(
            attach(state) if given else up(Plan(state, machine_nodes(1), project=PROJECT), print), PROJECT
        )
        cluster.install()
        yield cluster
    finally:
        if not given:
            down(state, print)


@pytest.fixture(scope="module")
def pods(node: Cluster) -> Iterator[Cluster]:
    """Two pods that fill the card."""
    for name, mem in (("six", 6), ("eight", 8)):
        node.apply(manifest(name, mem))
    node.wait_for("condition=Ready", *(f"pod/{name}" for name in SIZES))
    yield node
    node.delete("pod", *SIZES)


def instances(cluster: Cluster) -> dict[str, int]:
    """MiB by instance, as the kernel has it."""
    lines = cluster.node_exec(NODE, ["cat", "/proc/cgpu_km/inst_ctl"]).splitlines()
    pairs = [(line.split()[0], dict(word.split("=") for word in line.split()[1:])) for line in lines]
    return {id_: int(values["mem"]) >> 20 for id_, values in pairs}


def shown(cluster: Cluster, pod: str) -> int:
    """MiB that nvidia-smi shows in a pod."""
    query = ("nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits")
    return int(cluster.kubectl("exec", pod, "--", *query))


def said(cluster: Cluster, reason: str, about: str, text: str) -> bool:
    """Whether an event of that reason says the text."""
    selector = f"--field-selector=reason={reason},involvedObject.name={about}"
    return any(text in item["message"] for item in cluster.get("events", "--all-namespaces", selector)["items"])


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

    pods.wait(lambda: not instances(pods), about="the kernel has no instance")
    left = "ls /run/cgpu/*.json /var/run/cdi/*.json; grep cgpufs /proc/mounts"
    assert pods.node_exec(NODE, ["sh", "-c", f"{left}; true"]) == ""
