# SPDX-License-Identifier: Apache-2.0
"""Scheduling on a real Kubernetes: kube-scheduler calls the extender, kubelets run the pods.

node-1 has two T4 (14 GiB each), node-2 an A10 (22) and a T4 (14). After every test the extender's books equal what
the pods' annotations say, and no card holds more than it has.
"""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from cgpu.core.annotations import allocation_of, decode_devices
from cgpu.core.names import ANNOTATION_ALLOCATION, ANNOTATION_CORDON, ANNOTATION_DEVICES, SCHEDULER_NAME
from cgpu.core.pods import claim_of, holds
from cgpu.core.usage import holdings_of
from cgpu.kube.objects import decode_pod
from tests.cluster.harness import Cluster, first_line

SPACE = "scheduling"
SYSTEM = "kube-system"
Books = dict[str, int]

PARALLEL_BINDS = """
import json, sys, threading, urllib.request
def bind(body):
    request = urllib.request.Request("http://127.0.0.1:12345/gpushare-scheduler/bind", json.dumps(body).encode())
    ready.wait()
    with urllib.request.urlopen(request, timeout=20) as answer:
        errors.append(json.load(answer)["Error"])
bodies, errors = json.load(sys.stdin), []
ready = threading.Barrier(len(bodies))
threads = [threading.Thread(target=bind, args=(body,)) for body in bodies]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(json.dumps(errors))
"""


KEEP_THE_NODE = """
import json, select, sys, urllib.request
body = sys.stdin.readline().encode()
url = "http://127.0.0.1:12345/gpushare-scheduler/filter"
while True:
    with urllib.request.urlopen(urllib.request.Request(url, body), timeout=20) as answer:
        assert json.load(answer)["NodeNames"] == ["node-1"]
    print("kept", flush=True)
    if select.select([sys.stdin], [], [], 0.2)[0]:
        break
"""


def pod(name: str, *mem: int | str, **fields: Any) -> dict[str, Any]:
    """A pod with one sleeping container a size; `fields`: node, labels, and keys of the spec."""
    limits = [{"limits": {"aliyun.com/gpu-mem": size}} for size in mem]
    command = {"image": "localhost/busybox:1", "command": ["sleep", "3600"]}
    place = {"nodeSelector": {"kubernetes.io/hostname": fields.pop("node")}} if "node" in fields else {}
    labels = fields.pop("labels", {})
    containers = [{"name": f"app{index}", "resources": limit, **command} for index, limit in enumerate(limits)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": SPACE, "labels": {"app": "test", **labels}},
        "spec": {
            "schedulerName": SCHEDULER_NAME,  # the older Kubernetes sets none
            "terminationGracePeriodSeconds": 0,
            "containers": containers,
            **place,
            **fields,
        },
    }


def create(cluster: Cluster, *objects: dict[str, Any]) -> None:
    """Create them in one call."""
    cluster.apply(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))


def pods(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """The namespace's pods by name."""
    return {item["metadata"]["name"]: item for item in cluster.get("pods", "-n", SPACE)["items"]}


def bound(cluster: Cluster) -> dict[str, str]:
    """pod → node, of those that have one."""
    return {name: item["spec"]["nodeName"] for name, item in pods(cluster).items() if item["spec"].get("nodeName")}


def cards_of(item: dict[str, Any]) -> set[str]:
    """UUIDs of a bound pod's cards."""
    allocation = json.loads(item["metadata"]["annotations"][ANNOTATION_ALLOCATION])
    return {uuid for shares in allocation.values() for uuid in shares}


def read(cluster: Cluster, path: str) -> str:
    """An answer of the extender's read listener, through the API server's pod proxy."""
    return cluster.kubectl("get", "--raw", f"/api/v1/namespaces/{SYSTEM}/pods/{cluster.scheduler()}:12346/proxy{path}")


def booked(cluster: Cluster) -> Books:
    """card UUID → GiB, as the extender has it, cards without pods left out."""
    report = json.loads(read(cluster, "/gpushare-scheduler/inspect"))
    devices = [dev for node in report["nodes"] for dev in node["devs"]]
    assert all(dev["usedGPU"] <= dev["totalGPU"] for dev in devices), devices
    return {dev["uuid"]: dev["usedGPU"] for dev in devices if dev["usedGPU"]}


def annotated(cluster: Cluster) -> Books:
    """The same, worked out from the pods' annotations; it never is more than a card has."""
    nodes = {item["metadata"]["name"]: item for item in cluster.get("nodes")["items"]}
    cards = {
        name: decode_devices(item["metadata"]["annotations"][ANNOTATION_DEVICES])
        for name, item in nodes.items()
        if ANNOTATION_DEVICES in item["metadata"].get("annotations", {})
    }
    held: Counter[str] = Counter()
    for item in cluster.get("pods", "-A")["items"]:
        found = decode_pod(json.dumps(item).encode())
        claim = claim_of(found) if found.node else None
        if claim is not None and holds(found):
            allocation = allocation_of(found, claim, cards[found.node])
            assert allocation is not None, f"{found.key} is bound without cards"
            held.update({uuid: holding.mem for uuid, holding in holdings_of(claim, allocation).items()})
    units = {card.uuid: card.units for listed in cards.values() for card in listed}
    assert all(held[uuid] <= units[uuid] for uuid in held), (held, units)
    return dict(held)


def books_are_exact(cluster: Cluster) -> bool:
    """Whether extender and annotations agree at this moment."""
    return booked(cluster) == annotated(cluster)


def messages(cluster: Cluster, name: str) -> list[str]:
    """Texts of our event on a pod."""
    chosen = f"involvedObject.name={name},reason=GPUShareUnschedulable"
    return [item["message"] for item in cluster.get("events", "-n", SPACE, "--field-selector", chosen)["items"]]


@pytest.fixture(autouse=True)
def space(cluster: Cluster) -> Iterator[None]:
    """An empty namespace, and exact books when the test ends."""
    if cluster.try_kubectl("create", "namespace", SPACE).returncode:
        clear(cluster)
    cluster.wait(lambda: cluster.get("-n", SPACE, "serviceaccount", "default"), about="pods can be created")
    yield
    cluster.wait(lambda: books_are_exact(cluster), about="books = annotations")
    clear(cluster)


def clear(cluster: Cluster) -> None:
    """Remove everything, and see the books empty of it."""
    cluster.kubectl("delete", "deployments,pods", "--all", "-n", SPACE, "--wait", "--grace-period=0", "--force")
    cluster.wait(lambda: books_are_exact(cluster), about="books = annotations")


def test_two_equal_pods_get_a_card_each_and_see_it(cluster: Cluster) -> None:
    create(cluster, pod("a", 8, node="node-1"), pod("b", 8, node="node-1"))
    cluster.wait_for("condition=Ready", "pod/a", "pod/b", "-n", SPACE)
    found = pods(cluster)
    assert cards_of(found["a"]).isdisjoint(cards_of(found["b"]))
    for name in "ab":
        env = dict(
            line.split("=", 1)
            for line in cluster.kubectl("exec", "-n", SPACE, name, "--", "env").splitlines()
            if "=" in line
        )
        assert env["ALIYUN_COM_GPU_MEM_IDX"] == found[name]["metadata"]["annotations"]["ALIYUN_COM_GPU_MEM_IDX"]
        assert (env["ALIYUN_COM_GPU_MEM_CONTAINER"], env["ALIYUN_COM_GPU_MEM_DEV"]) == ("8", "14")


def test_twenty_parallel_pods_with_one_feasible_node(cluster: Cluster) -> None:
    """kube-scheduler skips prioritize then: filter itself has to keep the place."""
    create(cluster, *[pod(f"p{index}", 5, node="node-1") for index in range(20)])
    cluster.wait(lambda: len(bound(cluster)) == 4, about="two pods of 5 GiB a card of 14")
    cluster.wait(lambda: any("largest free: 4 GiB" in text for text in messages(cluster, waiting(cluster))))
    assert len(bound(cluster)) == 4
    assert sorted(annotated(cluster).values()) == [10, 10]


def waiting(cluster: Cluster) -> str:
    """A pod that has no node."""
    return next(name for name, item in sorted(pods(cluster).items()) if "nodeName" not in item["spec"])


def test_twenty_parallel_binds_for_the_last_slot(cluster: Cluster) -> None:
    """A volume that is missing keeps kube-scheduler off the pods; the binds come by our own hands."""
    volume = [{"name": "v", "persistentVolumeClaim": {"claimName": "missing"}}]
    create(cluster, pod("first", 8, node="node-1"), *[pod(f"p{index}", 8, volumes=volume) for index in range(20)])
    cluster.wait(lambda: "first" in bound(cluster))
    bodies = [
        {"PodName": name, "PodNamespace": SPACE, "PodUID": item["metadata"]["uid"], "Node": "node-1"}
        for name, item in pods(cluster).items()
        if name != "first"
    ]
    command = [
        "exec",
        "-i",
        "-n",
        SYSTEM,
        cluster.scheduler(),
        "-c",
        "extender",
        "--",
        "python3",
        "-c",
        PARALLEL_BINDS,
    ]
    errors = json.loads(cluster.kubectl(*command, text=json.dumps(bodies)))
    assert errors.count("") == 1
    assert set(errors) - {""} == {"node-1 has 12 GiB free but no single GPU has 8 GiB (largest free: 6 GiB)"}
    assert len(bound(cluster)) == 2
    assert sorted(annotated(cluster).values()) == [8, 8]


def test_pods_that_no_card_takes_wait_with_their_numbers(cluster: Cluster) -> None:
    create(cluster, pod("unit", "10G"), pod("above", 25), pod("odd", 7, labels={"aliyun.com/gpu-count": "2"}))
    for name, want in (
        ("unit", "10000000000 GiB was asked and the unit is GiB: write 10, not 10G"),
        ("above", "node-2: no single GPU has 25 GiB at all (2 GPUs, the largest 22 GiB)"),
        ("odd", "aliyun.com/gpu-mem: 7 not divisible by 2"),
    ):
        cluster.wait(lambda name=name, want=want: any(want in text for text in messages(cluster, name)), about=name)
    assert bound(cluster) == {}
    report = json.loads(read(cluster, f"/gpushare-scheduler/inspect?pod={SPACE}/above"))
    assert (report["state"], report["reason"]) == ("pending", "never-fits")


def test_a_21st_share_of_one_gib_waits_and_says_why(cluster: Cluster) -> None:
    """Two pods of ten containers fill the instances of the A10, whose T4 neighbour takes no new pods."""
    small = next(
        card.uuid
        for card in decode_devices(cluster.get("node", "node-2")["metadata"]["annotations"][ANNOTATION_DEVICES])
        if card.units == 14
    )
    volume = [{"name": "v", "persistentVolumeClaim": {"claimName": "missing"}}]
    create(cluster, pod("both-cards", 4, labels={"aliyun.com/gpu-count": "2"}, volumes=volume))
    cluster.kubectl("annotate", "node", "node-2", "--overwrite", f"{ANNOTATION_CORDON}={small}")
    try:
        cluster.wait(lambda: takers(cluster, "both-cards") == {"node-1"}, about="the extender knows of the cordon")
        create(cluster, *[pod(f"ten{index}", *[1] * 10, node="node-2") for index in range(2)])
        cluster.wait(lambda: len(bound(cluster)) == 2)
        create(cluster, pod("last", 1, node="node-2"))
        cluster.wait(lambda: is_refused(cluster, "last", "no GPU takes another instance (20 of 20)"))
        assert "last" not in bound(cluster)
    finally:
        cluster.kubectl("annotate", "node", "node-2", f"{ANNOTATION_CORDON}-")
    cluster.wait(lambda: "last" in bound(cluster), about="the cordon is gone: the waiting pod starts")


def takers(cluster: Cluster, name: str) -> set[str]:
    """The nodes that take a waiting pod, as the extender tells."""
    report = json.loads(read(cluster, f"/gpushare-scheduler/inspect?pod={SPACE}/{name}"))
    return {row["name"] for row in report["nodes"] if row["takes"]}


def is_refused(cluster: Cluster, name: str, reason: str) -> bool:
    """Whether kube-scheduler tells the pod this reason of ours."""
    conditions = pods(cluster)[name]["status"].get("conditions", [])
    return any(reason in condition.get("message", "") for condition in conditions)


def test_a_deployment_scaled_up_and_down_five_times_leaves_the_books_exact(cluster: Cluster) -> None:
    template = pod("x", 2)
    spec = {
        "replicas": 0,
        "selector": {"matchLabels": {"app": "test"}},
        "template": {"metadata": {"labels": {"app": "test"}}, "spec": template["spec"]},
    }
    create(
        cluster,
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": SPACE}, "spec": spec},
    )
    for _ in range(5):
        cluster.kubectl("scale", "-n", SPACE, "deployment/d", "--replicas=10")
        cluster.wait(lambda: sum(booked(cluster).values()) == 20, about="ten pods of 2 GiB are booked")
        cluster.kubectl("scale", "-n", SPACE, "deployment/d", "--replicas=0")
        cluster.wait(lambda: not booked(cluster), about="nothing is booked")
    assert annotated(cluster) == {}


def test_preemption_takes_the_pods_of_one_card(cluster: Cluster) -> None:
    create(
        cluster,
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 1000},
        *[pod(f"low{index}", 7, node="node-1") for index in range(4)],
    )
    cluster.wait(lambda: len(bound(cluster)) == 4)
    before = pods(cluster)
    create(cluster, pod("high", 14, node="node-1", priorityClassName="urgent"))
    cluster.wait(lambda: "high" in bound(cluster), about="the pod of higher priority runs")
    after = pods(cluster)
    gone = {frozenset(cards_of(item)) for name, item in before.items() if name not in after}
    assert gone == {frozenset(cards_of(after["high"]))}
    assert sum(name.startswith("low") for name in after) == 2


def test_a_place_that_comes_free_without_any_event_wakes_the_pod(cluster: Cluster) -> None:
    """A pod that never is bound holds the node until we saw the refusal; no object changes when its last hold ends."""
    inside = ["exec", "-i", "-n", SYSTEM, cluster.scheduler(), "-c", "extender", "--", "python3", "-c", KEEP_THE_NODE]
    ghost = pod("ghost", 14, 14)
    ghost["metadata"]["uid"] = "ghost"
    with cluster.kubectl_running(*inside) as keeping:
        assert keeping.stdin is not None
        assert keeping.stdout is not None
        print(json.dumps({"Pod": ghost, "NodeNames": ["node-1"]}), file=keeping.stdin, flush=True)
        assert first_line(keeping.stdout) == "kept\n"
        create(cluster, pod("real", 14, node="node-1"))
        cluster.wait(lambda: is_refused(cluster, "real", "no single GPU has 14 GiB free"))
    cluster.wait(lambda: "real" in bound(cluster), about="the pod that was kept out is bound")


def kill_extender(cluster: Cluster) -> None:
    """kill -9 of the extender's process; its kubelet starts another."""
    item = cluster.get("pod", "-n", SYSTEM, cluster.scheduler())
    status = next(row for row in item["status"]["containerStatuses"] if row["name"] == "extender")
    container = status["containerID"].removeprefix("containerd://")
    node = item["spec"]["nodeName"]
    cluster.node_exec(node, ["ctr", "--namespace=k8s.io", "tasks", "kill", "--signal=SIGKILL", container])
    cluster.wait(lambda: restarts(cluster) > status["restartCount"], about="the extender was started again")


def restarts(cluster: Cluster) -> int:
    """How often the ready extender was started again."""
    item = cluster.get("pod", "-n", SYSTEM, cluster.scheduler())
    return next(int(row["restartCount"]) for row in item["status"]["containerStatuses"] if row["name"] == "extender")


@pytest.mark.parametrize("part", ["extender", "kube-apiserver"])
def test_a_part_killed_while_pods_come_and_go(cluster: Cluster, part: str) -> None:
    """Afterwards no pod is lost and every one that fits runs."""
    create(cluster, *[pod(f"old{index}", 3) for index in range(4)])
    cluster.wait(lambda: len(bound(cluster)) == 4)
    create(cluster, *[pod(f"new{index}", 3) for index in range(6)])
    cluster.kubectl("delete", "pod", "-n", SPACE, "--wait=false", "old0", "old1")
    kill_extender(cluster) if part == "extender" else cluster.restart(part)
    want = {"old2", "old3", *(f"new{index}" for index in range(6))}
    cluster.wait(lambda: set(bound(cluster)) == want, about="exactly the pods that were not deleted have nodes")
    cluster.wait(lambda: sum(booked(cluster).values()) == 24, about="their memory is booked once")
    create(cluster, pod("after", 3))
    cluster.wait(lambda: "after" in bound(cluster), about="and scheduling goes on")


def test_the_metrics_of_the_extender_can_be_scraped(cluster: Cluster) -> None:
    create(cluster, pod("p", 4))
    cluster.wait(lambda: "p" in bound(cluster))
    sample = f'cgpu_namespace_gpu_memory_allocated_bytes{{namespace="{SPACE}"}} '
    cluster.wait(lambda: sample in read(cluster, "/metrics"), about=sample)
    lines = [line for line in read(cluster, "/metrics").splitlines() if line.startswith(sample)]
    assert [float(line.removeprefix(sample)) for line in lines] == [4 << 30]
