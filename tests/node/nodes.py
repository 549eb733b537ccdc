# SPDX-License-Identifier: Apache-2.0
"""A cluster with a node that is a virtual machine: pods of it, what its kernel says, what was told about it.

CGPU_TEST_NODE_STATE names one that is up (`cgpu sandbox up --vm-nodes 1`) and stays up; else one is made.
"""

import json
import operator
import os
import subprocess
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from cgpu.core.names import LABEL_SCHEDULE, RESOURCE_CORE, RESOURCE_MEM
from cgpu.procfs import Instance, parse_instance
from cgpu.sandbox.lifecycle import Plan, down, up
from cgpu.sandbox.progress import cache_folder
from cgpu.sandbox.release import NAMESPACE
from cgpu.sandbox.sandbox import attach
from cgpu.sandbox.spec import machine_nodes
from tests.cluster.harness import Cluster, state_folder

PROJECT: Final = Path(__file__).parents[2]
EXAMPLES: Final = PROJECT / "examples/isolated"
NODE: Final = "vm-1"
BRANCH: Final = "535"
"""Of the driver that the machine plays."""
PLUGIN: Final = "app.kubernetes.io/component=device-plugin"
DAEMONSET: Final = "daemonset/ack-ai-installer-device-plugin"
ALLOCATE: Final = (EXAMPLES / "allocate.py").read_text()
"""Allocates till it is refused: says MiB and CUDA's error."""
HOLD: Final = f"{ALLOCATE}\nprint('held', flush=True)\nimport sys\nsys.stdin.read()\n"
"""Does, says so, and keeps it till its input ends."""
T4: Final = 15109
SIZES: Final = {"six": 6475, "eight": 8633}
"""MiB that two pods of the `pods` fixture see, which fill a T4."""
LONG_S: Final = 400
"""How long a pod may take to start: what it costs when a test fails, in an emulated machine on a host however busy."""
FORGED: Final = {"CGPU_DISABLE": "true", "NVIDIA_VISIBLE_DEVICES": "all", "ALIYUN_COM_GPU_MEM_CONTAINER": "0"}
"""What a pod would write to be let off; it has no effect."""


@contextmanager
def machine() -> Iterator[Cluster]:
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


def manifest(name: str, mem: int, core: int = 0, priority_class: str = "", **containers: int) -> str:
    """A pod that sleeps, in an image with glibc and Python; `containers`: further ones and their GiB, 0 = no share."""
    limits = {RESOURCE_MEM: str(mem), **({RESOURCE_CORE: str(core)} if core else {})}
    rows = [_container("main", limits)]
    rows += [_container(other, {RESOURCE_MEM: str(size)} if size else {}) for other, size in containers.items()]
    spec = {"terminationGracePeriodSeconds": 1, "containers": rows}
    spec |= {"priorityClassName": priority_class} if priority_class else {}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})


def _container(name: str, limits: Mapping[str, str]) -> dict[str, Any]:
    return {
        "name": name,
        "image": "localhost/cgpu:1.0.0",
        "imagePullPolicy": "Never",
        "command": ["sleep", "3600"],
        "resources": {"limits": limits},
        "env": [{"name": key, "value": value} for key, value in FORGED.items()],
    }


def started(cluster: Cluster, *manifests: str) -> None:
    """Apply pods and wait until they are ready."""
    for text in manifests:
        cluster.apply(text)
    names = [json.loads(text)["metadata"]["name"] for text in manifests]
    ready(cluster, *names)


def ready(cluster: Cluster, *pods: str) -> None:
    """Wait until pods are ready."""
    cluster.wait_for("condition=Ready", *(f"pod/{name}" for name in pods), timeout_s=LONG_S)


def share(units: int) -> int:
    """MiB that a container with so many units of a T4's 14 sees."""
    return T4 * units // 14


def rows(cluster: Cluster) -> list[Instance]:
    """Every instance, as the kernel has it."""
    return [parse_instance(line) for line in cluster.node_exec(NODE, ["cat", "/proc/cgpu_km/inst_ctl"]).splitlines()]


def instances(cluster: Cluster) -> dict[str, int]:
    """MiB by instance."""
    return {row.id: row.mem >> 20 for row in rows(cluster)}


def instance_of(cluster: Cluster, pod: str) -> Instance:
    """The only instance of a pod."""
    notes = cluster.node_exec(NODE, ["sh", "-c", 'for f in /run/cgpu/*.json; do echo "$f $(cat "$f")"; done'])
    found = {}
    for line in notes.splitlines():
        path, _, text = line.partition(" ")
        found[json.loads(text)["pod"]] = Path(path).stem
    return next(row for row in rows(cluster) if row.id == found[pod])


def shown(cluster: Cluster, pod: str) -> int:
    """MiB that nvidia-smi shows in a pod."""
    query = ("nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits")
    return int(cluster.kubectl("exec", pod, "-c", "main", "--", *query))


def said(cluster: Cluster, reason: str, about: str, text: str) -> bool:
    """Whether an event of that reason says the text."""
    selector = f"--field-selector=reason={reason},involvedObject.name={about}"
    return any(text in item["message"] for item in cluster.get("events", "--all-namespaces", selector)["items"])


def offered(cluster: Cluster, resource: str = RESOURCE_MEM) -> int:
    """Units of a resource that pods can have on the node."""
    return int(cluster.get("node", NODE)["status"]["allocatable"].get(resource, 0))


def restarts(cluster: Cluster, pod: str) -> list[int]:
    """How often each container of a pod was started again."""
    return [row["restartCount"] for row in cluster.get("pod", pod)["status"]["containerStatuses"]]


@contextmanager
def holding(cluster: Cluster, pod: str) -> Iterator[None]:
    """A process in the pod holds all that the pod may have, while the block runs."""
    with cluster.kubectl_running("exec", "-i", pod, "-c", "main", "--", "python3", "-c", HOLD) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        assert holder.stdout.readline() == "held\n"
        yield


def kill_containers(cluster: Cluster, *pods: str) -> None:
    """Kill the first process of every container of the pods and wait until the kubelet started them again."""
    before = {pod: restarts(cluster, pod) for pod in pods}
    cluster.node_exec(NODE, ["pkill", "-KILL", "-x", "sleep"])
    for pod, counts in before.items():
        again = partial(_restarted, cluster, pod, counts)
        cluster.wait(again, LONG_S, about=f"the containers of {pod} started again")
    ready(cluster, *pods)


def _restarted(cluster: Cluster, pod: str, counts: list[int]) -> bool:
    """Whether each container of a pod has been started again since."""
    return all(map(operator.gt, restarts(cluster, pod), counts))


def restart_plugin(cluster: Cluster) -> None:
    """Kill the plugin's pod and wait for its successor."""
    cluster.kill_pod(NAMESPACE, PLUGIN)
    cluster.kubectl("rollout", "status", "-n", NAMESPACE, DAEMONSET, "--timeout=400s")


def reboot(cluster: Cluster, branch: str = BRANCH) -> None:
    """The machine loses power and comes back, with a driver of this branch; its module runs and its card is offered."""
    booted = boot_of(cluster)
    spec = next(spec for spec in machine_nodes(1) if spec.name == NODE)
    state = Path(cluster.sandbox.record.state)
    cluster.kill(f"{NODE}/qemu")
    cluster.sandbox.machine(NODE).start(
        replace(spec, driver=branch), cache_folder() / "stores" / (state / "store").read_text(), PROJECT
    )
    cluster.wait(lambda: boot_of(cluster) != booted, LONG_S, about="it boots")
    cluster.wait(lambda: module_version(cluster) and offered(cluster) == 14, 2 * LONG_S, about="the card is offered")


def boot_of(cluster: Cluster) -> str:
    """Which start of the machine this is."""
    return cluster.node_exec(NODE, ["cat", "/proc/sys/kernel/random/boot_id"])


def module_version(cluster: Cluster) -> str:
    """Of the core that runs; a failure while none does."""
    return cluster.node_exec(NODE, ["grep", "-v", "none", "/proc/cgpu_km/version"]).strip()


def nothing_left(cluster: Cluster) -> None:
    """Wait until the kernel has no instance; then no note, no CDI file and no mount may be there."""
    cluster.wait(lambda: not instances(cluster), LONG_S, about="the kernel has no instance")
    left = "ls /run/cgpu/*.json /run/cgpu/grants/*.json /var/run/cdi/*.json; grep cgpufs /proc/mounts"
    cluster.wait(lambda: not cluster.node_exec(NODE, ["sh", "-c", f"{left}; true"]), about="nothing is left")


@contextmanager
def mode(cluster: Cluster, name: str, resource: str) -> Iterator[None]:
    """The node in another mode while the block runs."""
    nothing_left(cluster)
    cluster.kubectl("label", "--overwrite", "node", NODE, f"{LABEL_SCHEDULE}={name}")
    try:
        cluster.wait(lambda: offered(cluster, resource) > 0, about=f"{resource} is offered")
        yield
    finally:
        nothing_left(cluster)
        cluster.kubectl("label", "--overwrite", "node", NODE, f"{LABEL_SCHEDULE}=cgpu")
        cluster.wait(lambda: offered(cluster, RESOURCE_CORE) == 0, about="the mode is cgpu again")


def inspect(cluster: Cluster, *words: str) -> "subprocess.CompletedProcess[str]":
    """`kubectl inspect cgpu`."""
    command = [str(Path(sysconfig.get_path("scripts")) / "kubectl-inspect-cgpu"), *words]
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def usage(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """What the plugin tells of each pod's share."""
    [plugin] = cluster.get("pods", "-n", NAMESPACE, "-l", PLUGIN)["items"]
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{plugin['metadata']['name']}:12347/proxy/usage"
    return {row["pod"]: row for row in json.loads(cluster.kubectl("get", "--raw", path))["instances"]}
