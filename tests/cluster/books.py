# SPDX-License-Identifier: Apache-2.0
"""The same truth, kept in several places: annotations, the kubelet's PodResources, the plugin's grants, the extender.

`assert_books(cluster)` compares them all; a difference is shown with both sides.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc

from cgpu.core.annotations import allocation_of, decode_devices
from cgpu.core.names import ANNOTATION_ALLOCATION, ANNOTATION_DEVICES, EXTENDER_PREFIX, EXTENDER_READ_PORT, RESOURCE_MEM
from cgpu.core.pods import claim_of, holds
from cgpu.core.usage import holdings_of
from cgpu.kube.objects import decode_pod
from cgpu.kubelet import podresources_pb2, podresources_pb2_grpc
from tests.cluster.harness import Cluster

Sizes = dict[tuple[str, str], int]
"""(namespace/pod, container) → GiB."""


def raw_pods(cluster: Cluster, node: str) -> list[dict[str, Any]]:
    """Pods of a node, as the API server has them."""
    return cluster.get("pods", "-A", f"--field-selector=spec.nodeName={node}")["items"]


def annotated(cluster: Cluster, node: str) -> Sizes:
    """What the bindings gave, containers that the kubelet's PodResources lists (no plain init containers)."""
    found: Sizes = {}
    for row in raw_pods(cluster, node):
        text = row["metadata"].get("annotations", {}).get(ANNOTATION_ALLOCATION)
        pod = decode_pod(json.dumps(row).encode())
        if text is None or not holds(pod):
            continue
        plain = {
            item["name"] for item in row["spec"].get("initContainers", ()) if item.get("restartPolicy") != "Always"
        }
        for container, shares in json.loads(text).items():
            if container not in plain:
                found[pod.key, container] = sum(share["mem"] for share in shares.values())
    return found


@contextmanager
def pod_resources(cluster: Cluster, node: str) -> Iterator[podresources_pb2_grpc.PodResourcesListerStub]:
    """The kubelet's PodResources."""
    path = cluster.sandbox.node(node).home.bound("var/lib/kubelet") / "pod-resources" / "kubelet.sock"
    with grpc.insecure_channel(f"unix://{path}") as channel:
        yield podresources_pb2_grpc.PodResourcesListerStub(channel)


def offered(cluster: Cluster, node: str) -> int:
    """GiB that the kubelet itself would hand out now, were no pod there."""
    with pod_resources(cluster, node) as stub:
        answer = stub.GetAllocatableResources(podresources_pb2.AllocatableResourcesRequest(), timeout=20)
    return sum(len(row.device_ids) for row in answer.devices if row.resource_name == RESOURCE_MEM)


def allocated(cluster: Cluster, node: str) -> Sizes:
    """What the kubelet's PodResources says it handed out."""
    with pod_resources(cluster, node) as stub:
        answer = stub.List(podresources_pb2.ListPodResourcesRequest(), timeout=20)
    found: Sizes = {}
    for pod in answer.pod_resources:
        for container in pod.containers:
            ids = {id_ for row in container.devices if row.resource_name == RESOURCE_MEM for id_ in row.device_ids}
            if ids:
                found[f"{pod.namespace}/{pod.name}", container.name] = len(ids)
    return found


def grants(cluster: Cluster, node: str) -> list[dict[str, Any]]:
    """The device plugin's records."""
    text = cluster.node_exec(
        node, ["sh", "-c", "for f in /run/cgpu/grants/*.json; do [ -e $f ] && cat $f && echo; done; true"]
    )
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def cdi_files(cluster: Cluster, node: str) -> list[str]:
    """Names of our CDI files."""
    return cluster.node_exec(node, ["sh", "-c", "ls /var/run/cdi"]).split()


def booked(cluster: Cluster, node: str) -> dict[int, int]:
    """GPU index → GiB held, by Kubernetes' formula, from the annotations."""
    row = cluster.get("node", node)
    cards = decode_devices(row["metadata"]["annotations"][ANNOTATION_DEVICES])
    sums = {card.uuid: 0 for card in cards}
    for raw in raw_pods(cluster, node):
        pod = decode_pod(json.dumps(raw).encode())
        claim = claim_of(pod)
        allocation = allocation_of(pod, claim, cards) if claim is not None and holds(pod) else None
        for uuid, held in (holdings_of(claim, allocation) if claim and allocation else {}).items():
            sums[uuid] += held.mem
    for card in cards:
        assert sums[card.uuid] <= card.units, f"{node}: GPU {card.index} holds {sums[card.uuid]} of {card.units}"
    return {card.index: sums[card.uuid] for card in cards}


def extender_books(cluster: Cluster) -> dict[str, dict[int, int]]:
    """node → GPU index → GiB, as the extender's `inspect` tells."""
    path = (
        f"/api/v1/namespaces/kube-system/pods/{cluster.scheduler()}:{EXTENDER_READ_PORT}/proxy{EXTENDER_PREFIX}/inspect"
    )
    answer = json.loads(cluster.kubectl("get", "--raw", path))
    return {row["name"]: {int(dev["id"]): int(dev["usedGPU"]) for dev in row["devs"]} for row in answer["nodes"]}


def assert_books(cluster: Cluster, nodes: Iterable[str] = (), *, extender: bool = True) -> None:
    """Wait until all books agree (they follow each other by watches), and fail with the last difference otherwise."""
    for node in nodes or cluster.nodes:
        cluster.wait(lambda node=node: _agree(cluster, node), about=f"the books of {node} agree")
    if extender:
        cluster.wait(lambda: _extender_agrees(cluster), about="the extender's books are the annotations'")


def _agree(cluster: Cluster, node: str) -> bool:
    given, handed = annotated(cluster, node), allocated(cluster, node)
    assert given == handed, f"annotations {given}, PodResources {handed}"
    mine = {(f"{row['namespace']}/{row['pod']}", row["container"]): len(row["ids"]) for row in grants(cluster, node)}
    extra = {key: size for key, size in mine.items() if key in given and given[key] != size}
    assert not extra, f"grants {mine}, annotations {given}"
    assert {key[0] for key in mine} <= {key[0] for key in given} | _init_only(cluster, node), f"grants {mine}"
    booked(cluster, node)
    return True


def _init_only(cluster: Cluster, node: str) -> set[str]:
    return {
        f"{row['metadata']['namespace']}/{row['metadata']['name']}"
        for row in raw_pods(cluster, node)
        if ANNOTATION_ALLOCATION in row["metadata"].get("annotations", {})
    }


def _extender_agrees(cluster: Cluster) -> bool:
    told = extender_books(cluster)
    mine = {node: booked(cluster, node) for node in cluster.nodes}
    assert {node: told.get(node) for node in mine} == mine, f"extender {told}, annotations {mine}"
    return True
