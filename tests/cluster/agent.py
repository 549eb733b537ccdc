# SPDX-License-Identifier: Apache-2.0
"""Pods bound by hand to the cards a test wants, in the name of our scheduler, and what they got."""

import json
from collections.abc import Mapping
from typing import Any

from cgpu.cards import card_uuid
from cgpu.core.names import ANNOTATION_ALLOCATION, RESOURCE_MEM, SCHEDULER_NAME
from tests.cluster.books import offered
from tests.cluster.harness import Cluster

SCHEDULER = "deployment/ack-ai-installer-scheduler"
PLUGIN = "app.kubernetes.io/component=device-plugin"
ACCOUNT = "system:serviceaccount:kube-system:ack-ai-installer-scheduler"
TOLD = "told=all"
STAY = f"env; echo {TOLD}; sleep 100000"
END = f"env; echo {TOLD}"


def container(name: str, mem: int = 0, command: str = STAY, **more: Any) -> dict[str, Any]:
    """A container that prints its environment, and last TOLD."""
    limits = {RESOURCE_MEM: mem} if mem else {}
    return {
        "name": name,
        "image": "localhost/busybox:1",
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", command],
        "resources": {"limits": limits},
        **more,
    }


def pod(name: str, *containers: dict[str, Any], init: tuple[dict[str, Any], ...] = (), **labels: str) -> dict[str, Any]:
    """A pod of this file's tests."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"test": "agent", **labels}},
        "spec": {
            "schedulerName": SCHEDULER_NAME,
            "terminationGracePeriodSeconds": 0,
            "initContainers": list(init),
            "containers": list(containers),
        },
    }


class Agent:
    """A node's agent seen from outside. The scheduler is away: tests decide which pod gets which card, and when."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def create(self, *pods: dict[str, Any]) -> None:
        """Create pods; nobody binds them."""
        self.cluster.kubectl("create", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))

    def bind(self, name: str, cards: Mapping[str, tuple[int, int]], node: str = "node-1") -> None:
        """Bind with the annotation: container → (GPU index, GiB)."""
        allocation = {
            container: {card_uuid(node, index): {"mem": mem, "core": 0}} for container, (index, mem) in cards.items()
        }
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "annotations": {ANNOTATION_ALLOCATION: json.dumps(allocation)}},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        path = f"/api/v1/namespaces/default/pods/{name}/binding"
        self.cluster.kubectl("create", "--raw", path, "-f", "-", f"--as={ACCOUNT}", text=json.dumps(body))

    def run(self, *pods: dict[str, Any], node: str = "node-1", **cards: int) -> None:
        """Create pods, bind each to its card (by name, `-` written `_`) and wait until they run."""
        self.create(*pods)
        for row in pods:
            index = cards[row["metadata"]["name"].replace("-", "_")]
            self.bind(row["metadata"]["name"], {name: (index, mem) for name, mem in sizes(row).items()}, node)
        self.ready(*(row["metadata"]["name"] for row in pods))

    def ready(self, *names: str) -> None:
        """Wait until pods run."""
        self.cluster.wait_for("condition=Ready", *(f"pod/{name}" for name in names))

    def env(self, name: str, container_name: str) -> dict[str, str]:
        """What a container sees, from its first words."""
        lines = self.cluster.wait(lambda: self._told(name, container_name), about=f"{name} has told its environment")
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def _told(self, name: str, container_name: str) -> list[str]:
        lines = self.cluster.kubectl("logs", name, "-c", container_name).splitlines()
        return lines if TOLD in lines else []

    def share(self, name: str, container_name: str) -> tuple[str, str]:
        """(GiB, GPU index) that a container sees."""
        env = self.env(name, container_name)
        return env.get("ALIYUN_COM_GPU_MEM_CONTAINER", ""), env.get("ALIYUN_COM_GPU_MEM_IDX", "")

    def kill_container(self, name: str, node: str = "node-1") -> None:
        """End the pod's only container, so that the kubelet starts it again."""
        self.kill_task(self.task(name, node), node)

    def kill_task(self, task: str, node: str = "node-1") -> None:
        """SIGKILL for a container by its containerd id."""
        self.cluster.node_exec(node, ["ctr", "-n", "k8s.io", "task", "kill", "-s", "KILL", task])

    def task(self, name: str, node: str = "node-1") -> str:
        """containerd's id of the pod's running container, "" when none runs; asked of containerd itself."""
        selector = f'labels."io.kubernetes.pod.name"=={name},labels."io.cri-containerd.kind"==container'
        known = self.cluster.node_exec(node, ["ctr", "-n", "k8s.io", "container", "ls", "-q", selector]).split()
        tasks = self.cluster.node_exec(node, ["ctr", "-n", "k8s.io", "task", "ls"]).splitlines()
        running = {line.split()[0] for line in tasks if line.split()[2:] == ["RUNNING"]}
        return next((id_ for id_ in known if id_ in running), "")

    def restarts(self, name: str) -> int:
        """How often the pod's first container was started again."""
        return int(self.cluster.get("pod", name)["status"]["containerStatuses"][0]["restartCount"])

    def restarted(self, name: str, count: int) -> None:
        """Wait until the container runs for the (count+1)th time."""
        self.cluster.wait(
            lambda: (
                self.restarts(name) >= count
                and "running" in self.cluster.get("pod", name)["status"]["containerStatuses"][0]["state"]
            ),
            about=f"{name} was started again",
        )

    def allocatable(self, node: str = "node-1", resource: str = RESOURCE_MEM) -> str:
        """What the node offers now."""
        return str(self.cluster.get("node", node)["status"]["allocatable"].get(resource, ""))

    def offers(self, units: int, node: str = "node-1") -> None:
        """Wait until the node offers this many GiB, by its kubelet's own word too: what the API server has may be old."""
        self.cluster.wait(lambda: offered(self.cluster, node) == units, about=f"{node}'s kubelet has {units} GiB")
        self.cluster.wait(lambda: self.allocatable(node) == str(units), about=f"{node} offers {units} GiB")

    def registrations(self, node: str = "node-1") -> int:
        """How often the node's plugin has registered with its kubelet."""
        name = self.plugin(node)
        log = self.cluster.kubectl("logs", "-n", "kube-system", name)
        return log.count("aliyun.com/gpu-mem: registered with the kubelet")

    def plugin(self, node: str = "node-1") -> str:
        """Name of the node's plugin pod, once it is there and ready."""
        return self.cluster.wait(lambda: self._plugin(node), about=f"the plugin of {node} is ready")

    def _plugin(self, node: str) -> str:
        rows = self.cluster.get("pods", "-n", "kube-system", "-l", PLUGIN)["items"]
        for row in rows:
            there = row["spec"].get("nodeName") == node and "deletionTimestamp" not in row["metadata"]
            if there and any(status["ready"] for status in row["status"].get("containerStatuses", ())):
                return str(row["metadata"]["name"])
        return ""

    def events(self, reason: str, about: str) -> list[str]:
        """Messages of events on a node, or on the pod that has the name now."""
        kind = "node" if about in self.cluster.nodes else "pod"
        uid = self.cluster.get(kind, about)["metadata"]["uid"]
        rows = self.cluster.get("events", "-A", f"--field-selector=reason={reason}")["items"]
        return [row["message"] for row in rows if row["involvedObject"].get("uid") == uid]

    def set_cards(self, *healthy: bool, node: str = "node-1") -> None:
        """Rewrite the node's card file: as many T4 as there are values."""
        rows = [{"model": "Tesla T4", "memMiB": 15109, "healthy": value} for value in healthy]
        text = json.dumps({"cards": rows})
        script = f"echo '{text}' > /etc/cgpu/cards.new && mv /etc/cgpu/cards.new /etc/cgpu/cards.yaml"
        self.cluster.node_exec(node, ["sh", "-c", script])

    def clear(self) -> None:
        """Delete this file's pods."""
        self.cluster.kubectl("delete", "pod", "-l", "test=agent", "--ignore-not-found", "--now")


def sizes(row: dict[str, Any]) -> dict[str, int]:
    """container → GiB it asks for."""
    rows = [*row["spec"]["initContainers"], *row["spec"]["containers"]]
    return {item["name"]: item["resources"]["limits"][RESOURCE_MEM] for item in rows if item["resources"]["limits"]}
