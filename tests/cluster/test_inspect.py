# SPDX-License-Identifier: Apache-2.0
"""`kubectl inspect cgpu` as a plugin of kubectl, on real pods."""

import json
import os
import subprocess
import sysconfig
from collections.abc import Iterator
from typing import Any

import pytest

from cgpu.core.names import RESOURCE_MEM, SCHEDULER_NAME
from tests.cluster.harness import Cluster

SPACE = "inspect"


@pytest.fixture
def space(cluster: Cluster) -> Iterator[str]:
    """A namespace that is gone afterwards."""
    cluster.apply(json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}))
    cluster.wait(lambda: cluster.get("-n", SPACE, "serviceaccount", "default"))
    yield SPACE
    cluster.delete("namespace", SPACE)


def inspect(cluster: Cluster, *words: str) -> "subprocess.CompletedProcess[str]":
    """As a user types it: kubectl finds the command on PATH."""
    folders = [str(cluster.sandbox.programs["kubectl"].parent), sysconfig.get_path("scripts"), os.environ["PATH"]]
    environment = {**os.environ, "PATH": ":".join(folders), "KUBECONFIG": str(cluster.kubeconfig)}
    return subprocess.run(["kubectl", "inspect", "cgpu", *words], env=environment, capture_output=True, text=True)


def books(cluster: Cluster) -> dict[str, Any]:
    done = inspect(cluster, "-o", "json")
    assert done.returncode == 0, done.stderr
    read: dict[str, Any] = json.loads(done.stdout)
    return read


def pod(name: str, mem: int, command: str = "sleep 1000") -> dict[str, Any]:
    main = {
        "name": "main",
        "image": "localhost/busybox:1",
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", command],
        "resources": {"limits": {RESOURCE_MEM: mem}},
    }
    spec = {
        "schedulerName": SCHEDULER_NAME,
        "containers": [main],
        "terminationGracePeriodSeconds": 0,
        "restartPolicy": "Never",
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": SPACE}, "spec": spec}


def pods_of(read: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Name → GiB booked a card, of this file's pods."""
    rows = [row for node in read["nodes"] for row in node["pods"] if row["namespace"] == SPACE]
    return {row["name"]: tuple(row["booked"].values()) for row in rows}


def test_books_follow_a_pod_from_its_start_to_its_end(cluster: Cluster, space: str) -> None:
    before = books(cluster)
    cluster.apply(json.dumps(pod("three", 3)))
    cluster.wait_for("condition=Ready", "-n", space, "pod/three")

    held = books(cluster)
    details = inspect(cluster, "-d").stdout

    assert pods_of(held) == {"three": (3,)}
    assert held["allocated"] == before["allocated"] + 3
    assert held["total"] == before["total"]
    assert any(line.split()[:2] == ["three", SPACE] for line in details.splitlines())

    cluster.kubectl("-n", space, "delete", "pod", "three", "--now")

    assert before == books(cluster)


def test_a_pod_that_ended_holds_nothing(cluster: Cluster, space: str) -> None:
    before = books(cluster)["allocated"]
    cluster.apply(json.dumps(pod("ends", 3, "true")))
    cluster.wait_for("jsonpath={.status.phase}=Succeeded", "-n", space, "pod/ends")

    assert pods_of(books(cluster)) == {}
    assert before == books(cluster)["allocated"]


def test_the_table_agrees_with_what_nodes_offer(cluster: Cluster) -> None:
    lines = inspect(cluster).stdout.splitlines()
    header, *rows = lines[: lines.index(next(line for line in lines if set(line) == {"-"}))]
    offered = {
        row["metadata"]["name"]: row["status"]["capacity"][RESOURCE_MEM] for row in cluster.get("nodes")["items"]
    }

    assert header.startswith("NAME")
    assert {row.split()[0]: row.split()[-1].split("/")[1] for row in rows} == offered


def test_one_node_and_an_unknown_one(cluster: Cluster) -> None:
    first = cluster.nodes[0]

    assert [line.split()[0] for line in inspect(cluster, first).stdout.splitlines()[1:2]] == [first]
    refused = inspect(cluster, "nowhere")
    assert refused.returncode == 2
    assert "no node is named 'nowhere'" in refused.stderr


def test_the_chart_tests_itself(cluster: Cluster) -> None:
    """`helm test`: the extender is ready, and its books list the nodes."""
    assert "Succeeded" in cluster.helm("test", "ack-ai-installer")


def test_metrics_are_served_through_the_services(cluster: Cluster) -> None:
    """The services that the chart makes for Prometheus lead to OpenMetrics."""
    for service, port, path, want in (
        ("scheduler", 12346, "gpushare-scheduler/metrics", "cgpu_extender_binds_total"),
        ("device-plugin", 12347, "metrics", "cgpu_gpu_memory_total_bytes"),
    ):
        proxy = f"/api/v1/namespaces/kube-system/services/ack-ai-installer-{service}:{port}/proxy/{path}"
        cluster.wait(lambda proxy=proxy, want=want: want in cluster.kubectl("get", "--raw", proxy), about=want)
