# SPDX-License-Identifier: Apache-2.0
"""What of the API server's objects is decoded."""

import json
from typing import Any

import pytest

from cgpu.core.errors import (
    UnavailableError,
)
from cgpu.core.model import Container, ContainerKind, Pod, Start
from cgpu.kube.objects import PODS, decode_node, decode_page, decode_pod

DONE = {"state": {"terminated": {"exitCode": 0}}}
RUNNING = {"state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
WAITING = {"state": {"waiting": {"reason": "PodInitializing"}}}
DELETED = {"name": "p", "namespace": "d", "uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z"}


def _container(name: str, **limits: Any) -> dict[str, Any]:
    return {
        "name": name,
        "resources": {"limits": {f"aliyun.com/{key.replace('_', '-')}": v for key, v in limits.items()}},
    }


def test_a_pod_is_decoded_whole() -> None:
    raw = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "p",
            "namespace": "d",
            "uid": "u",
            "resourceVersion": "5",
            "labels": {"aliyun.com/gpu-count": "2", "app": "x"},
            "annotations": {"ALIYUN_COM_GPU_MEM_IDX": "0", "note": "long"},
            "deletionTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {
            "initContainers": [_container("i", gpu_mem="8"), {**_container("s", gpu_mem=2), "restartPolicy": "Always"}],
            "containers": [
                {
                    "name": "c",
                    "resources": {"limits": {"aliyun.com/gpu-mem": "3", "aliyun.com/gpu-core.percentage": "50"}},
                },
                {"name": "plain"},
                {"name": "requested", "resources": {"requests": {"aliyun.com/gpu-mem": "1"}}},
            ],
            "nodeName": "n",
            "schedulerName": "s",
            "priority": 7,
            "priorityClassName": "high",
        },
        "status": {
            "phase": "Running",
            "nominatedNodeName": "m",
            "startTime": "2026-01-01T00:00:00Z",
            "containerStatuses": [RUNNING],
        },
    }
    assert decode_pod(json.dumps(raw).encode()) == Pod(
        uid="u",
        namespace="d",
        name="p",
        containers=(
            Container("i", ContainerKind.INIT, "8"),
            Container("s", ContainerKind.SIDECAR, "2"),
            Container("c", ContainerKind.APP, "3", "50"),
            Container("plain"),
            Container("requested", ContainerKind.APP, "1"),
        ),
        labels={"aliyun.com/gpu-count": "2"},
        annotations={"ALIYUN_COM_GPU_MEM_IDX": "0"},
        node="n",
        nominated="m",
        phase="Running",
        scheduler_name="s",
        priority=7,
        priority_class="high",
        deleting=True,
        start_time="2026-01-01T00:00:00Z",
    )


@pytest.mark.parametrize(
    ("meta", "apps", "inits", "want"),
    [
        pytest.param(DELETED, [DONE], None, True, id="deleted, its container has ended"),
        pytest.param(DELETED, [DONE], [DONE], True, id="deleted, init and app have ended"),
        pytest.param(DELETED, [RUNNING], None, False, id="deleted, still running"),
        pytest.param(DELETED, [DONE], [RUNNING], False, id="deleted, its sidecar still runs"),
        pytest.param(DELETED, [WAITING], [DONE], False, id="deleted before it started: it may be starting"),
        pytest.param(DELETED, None, None, False, id="deleted, the kubelet has not said anything"),
        pytest.param({"name": "p"}, [DONE], None, False, id="between two restarts"),
    ],
)
def test_containers_have_ended_only_after_deletion(meta: Any, apps: Any, inits: Any, want: bool) -> None:
    pod = {
        "metadata": meta,
        "spec": {"containers": [{"name": "c"}]},
        "status": {"phase": "Running", "containerStatuses": apps, "initContainerStatuses": inits},
    }
    assert decode_pod(json.dumps(pod).encode()).ended is want


@pytest.mark.parametrize(
    ("apps", "inits", "want"),
    [
        pytest.param(None, None, {}, id="the kubelet has not said anything"),
        pytest.param([{"name": "c", **WAITING}], None, {}, id="waiting"),
        pytest.param([{"name": "c", "containerID": "containerd://1", **DONE}], None, {}, id="ended"),
        pytest.param(
            [{"name": "c", "containerID": "containerd://1", **RUNNING}, {"name": "plain", **RUNNING}],
            [{"name": "i", "containerID": "containerd://2", "state": {"running": {"startedAt": None}}}],
            {"c": Start("containerd://1", "2026-01-01T00:00:00Z"), "i": Start("containerd://2")},
            id="only those with a share, init containers too",
        ),
    ],
)
def test_containers_that_run_are_known_by_their_start(apps: Any, inits: Any, want: Any) -> None:
    pod = {
        "metadata": {"name": "p"},
        "spec": {
            "containers": [_container("c", gpu_mem="3"), {"name": "plain"}],
            "initContainers": [_container("i", gpu_mem=2)],
        },
        "status": {"phase": "Running", "containerStatuses": apps, "initContainerStatuses": inits},
    }
    assert decode_pod(json.dumps(pod).encode()).running == want


def test_a_node_is_decoded() -> None:
    raw = {
        "metadata": {"name": "n", "uid": "u", "labels": {"a": "b"}, "annotations": {"c": "d"}},
        "spec": {"unschedulable": True},
        "status": {
            "addresses": [{"type": "Hostname", "address": "n"}, {"type": "InternalIP", "address": "10.0.0.1"}],
            "conditions": [{"type": "DiskPressure", "status": "True"}, {"type": "Ready", "status": "False"}],
            "capacity": {"aliyun.com/gpu-mem": "30", "cpu": 2},
            "allocatable": {"aliyun.com/gpu-mem": "15"},
        },
    }
    node = decode_node(json.dumps(raw).encode())
    assert (node.name, node.uid, node.labels, node.annotations) == ("n", "u", {"a": "b"}, {"c": "d"})
    assert (node.address, node.ready, node.unschedulable) == ("10.0.0.1", False, True)
    assert node.capacity == {"aliyun.com/gpu-mem": "30", "cpu": "2"}
    assert node.allocatable == {"aliyun.com/gpu-mem": "15"}


@pytest.mark.parametrize(
    "raw", [b"", b"<html>", b'{"metadata": 5}', b"[]"], ids=["empty", "a web page", "a wrong type", "a list"]
)
def test_what_is_no_kubernetes_says_so(raw: bytes) -> None:
    for decode in (decode_pod, decode_node):
        with pytest.raises(UnavailableError, match="is this address a Kubernetes API"):
            decode(raw)
    with pytest.raises(UnavailableError, match="is this address a Kubernetes API"):
        decode_page(raw or b"x", PODS)
