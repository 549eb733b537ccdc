# SPDX-License-Identifier: Apache-2.0
"""Every way in for a forged allocation, tried with real requests."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from cgpu.core.names import (
    ANNOTATION_ALLOCATION,
    ANNOTATION_ASSUME_TIME,
    ANNOTATION_DEVICES,
    ANNOTATION_GPUSHARE,
    ANNOTATION_IDX,
    ANNOTATION_RESIZE_STATUS,
    ANNOTATION_RESIZED,
    LABEL_IGNORE,
    RESOURCE_CORE,
    RESOURCE_MEM,
    SCHEDULER_NAME,
)
from tests.cluster.harness import Cluster

SPACE = "admission"
OPTED_OUT = "admission-ignored"
FORGED = json.dumps({"main": {"GPU-1": {"mem": 14, "core": 0}}})
ADDED_LINE = f"schedulerName: {SCHEDULER_NAME}"


@pytest.fixture(scope="module", autouse=True)
def spaces(cluster: Cluster) -> Iterator[None]:
    """A namespace of this file, and one that opted out."""
    labels = {SPACE: {}, OPTED_OUT: {LABEL_IGNORE: "true"}}
    for name, marks in labels.items():
        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": marks}}
        cluster.apply(json.dumps(made))
        cluster.wait(lambda name=name: cluster.get("-n", name, "serviceaccount", "default"))
    yield
    cluster.delete("namespace", *labels)


@pytest.fixture(autouse=True)
def _no_pods_stay(cluster: Cluster) -> Iterator[None]:
    yield
    for space in (SPACE, OPTED_OUT):
        cluster.kubectl("-n", space, "delete", "pods,deployments", "--all", "--now")


def pod(
    name: str = "p", mem: str = "3", *, space: str = SPACE, resource: str = RESOURCE_MEM, **spec: Any
) -> dict[str, Any]:
    """A pod that asks for `mem`; '' asks for nothing. `annotations` and `labels` go to the metadata."""
    meta = {"name": name, "namespace": space}
    meta |= {key: spec.pop(key) for key in ("annotations", "labels") if key in spec}
    main = {
        "name": "main",
        "image": "localhost/busybox:1",
        "imagePullPolicy": "Never",
        "command": ["sleep", "1000"],
        "resources": {"limits": {resource: mem} if mem else {}},
    }
    base = {"containers": [main], "terminationGracePeriodSeconds": 0}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": base | spec}


def create(cluster: Cluster, manifest: dict[str, Any], *words: str) -> str:
    """ "" when it was created, else why not."""
    return cluster.try_kubectl("create", "-f", "-", *words, text=json.dumps(manifest)).stderr


def post(cluster: Cluster, path: str, body: dict[str, Any]) -> str:
    """A raw POST; "" or why it was refused."""
    return cluster.try_kubectl("create", "--raw", path, "-f", "-", text=json.dumps(body)).stderr


def scheduler_of(cluster: Cluster, name: str, space: str = SPACE) -> str:
    return str(cluster.get("-n", space, "pod", name)["spec"]["schedulerName"])


def sets_scheduler(cluster: Cluster) -> bool:
    """Whether this cluster sets it by itself: policies of kind MutatingAdmissionPolicy v1 came with 1.36."""
    return int(cluster.version.split(".")[1]) >= 36


def waiting(cluster: Cluster, name: str = "p", **fields: Any) -> None:
    """A pod of ours that stays unbound: it asks for more than any card has."""
    assert create(cluster, pod(name, "1000", schedulerName=SCHEDULER_NAME, **fields)) == ""


# ---- schedulerName


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(pod(), id="a pod"),
        pytest.param(pod(schedulerName="default-scheduler"), id="the default by name"),
        pytest.param(pod(mem="5", resource=RESOURCE_CORE), id="compute only"),
        pytest.param(
            pod(mem="", initContainers=[{**pod()["spec"]["containers"][0], "name": "init"}]), id="init container only"
        ),
    ],
)
def test_a_share_without_a_scheduler_gets_ours_or_the_line_to_add(cluster: Cluster, manifest: dict[str, Any]) -> None:
    refused = create(cluster, manifest)

    if sets_scheduler(cluster):
        assert refused == ""
        assert scheduler_of(cluster, "p") == SCHEDULER_NAME
    else:
        assert ADDED_LINE in refused


def test_another_scheduler_is_refused_with_the_line_to_add(cluster: Cluster) -> None:
    refused = create(cluster, pod(schedulerName="theirs"))

    assert "theirs" in refused
    assert ADDED_LINE in refused


def test_a_node_by_name_does_not_go_round_the_scheduler_unseen(cluster: Cluster) -> None:
    """It is admitted as our scheduler's; without a binding of ours the device plugin hands nothing out."""
    assert create(cluster, pod(nodeName="node-1", schedulerName=SCHEDULER_NAME)) == ""
    cluster.wait(
        lambda: any("GPUShareAllocateFailed" in row["reason"] for row in cluster.get("-n", SPACE, "events")["items"]),
        about="the refusal as an event",
    )

    assert cluster.get("-n", SPACE, "pod", "p")["status"]["phase"] == "Pending"


def test_pods_without_a_share_are_nobodys_business(cluster: Cluster) -> None:
    assert create(cluster, pod("plain", "")) == ""
    assert create(cluster, pod("theirs", "", schedulerName="theirs")) == ""
    assert scheduler_of(cluster, "plain") == "default-scheduler"


def test_a_deployment_carries_the_refusal(cluster: Cluster) -> None:
    row = pod(schedulerName="theirs", labels={"app": "web"})
    template = {"metadata": {"labels": {"app": "web"}}, "spec": row["spec"]}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    made = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": SPACE},
        "spec": spec,
    }
    cluster.apply(json.dumps(made))

    def told() -> bool:
        rows = cluster.get("-n", SPACE, "deployment", "web")["status"].get("conditions", [])
        return any(ADDED_LINE in row["message"] for row in rows)

    cluster.wait(told, about="the deployment says why it has no pods")


# ---- what the API server itself refuses


@pytest.mark.parametrize(
    ("mem", "said"),
    [("0.5", RESOURCE_MEM), ("500m", RESOURCE_MEM), ("-1", RESOURCE_MEM), ("50%", "quantities must match")],
)
def test_no_part_of_a_gib(cluster: Cluster, mem: str, said: str) -> None:
    assert said in create(cluster, pod(mem=mem, schedulerName=SCHEDULER_NAME))


def test_a_quota_of_a_namespace_counts_gib(cluster: Cluster) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "gpu", "namespace": SPACE},
        "spec": {"hard": {f"requests.{RESOURCE_MEM}": "24"}},
    }
    cluster.apply(json.dumps(quota))
    try:
        cluster.wait(lambda: cluster.get("-n", SPACE, "resourcequota", "gpu").get("status", {}).get("hard"))
        assert create(cluster, pod(mem="16", schedulerName=SCHEDULER_NAME)) == ""

        refused = create(cluster, pod("q", mem="16", schedulerName=SCHEDULER_NAME))
    finally:
        cluster.kubectl("-n", SPACE, "delete", "resourcequota", "gpu")

    name = f"requests.{RESOURCE_MEM}"
    assert f"requested: {name}=16, used: {name}=16, limited: {name}=24" in refused


# ---- opting out


@pytest.mark.parametrize(
    ("space", "labels"),
    [
        pytest.param(OPTED_OUT, {}, id="by the namespace"),
        pytest.param(SPACE, {LABEL_IGNORE: "true"}, id="by the pod"),
    ],
)
def test_who_opted_out_is_left_alone(cluster: Cluster, space: str, labels: dict[str, str]) -> None:
    assert create(cluster, pod(space=space, schedulerName="theirs", labels=labels)) == ""
    assert create(cluster, pod("q", space=space, labels=labels, annotations={ANNOTATION_IDX: "0"})) == ""
    assert scheduler_of(cluster, "q", space) == "default-scheduler"


def test_a_pod_that_opted_out_cannot_come_back_with_what_it_wrote(cluster: Cluster) -> None:
    assert create(cluster, pod(labels={LABEL_IGNORE: "true"}, annotations={ANNOTATION_ALLOCATION: FORGED})) == ""

    back = cluster.try_kubectl("-n", SPACE, "label", "pod", "p", f"{LABEL_IGNORE}-")

    assert "cannot be taken from a pod" in back.stderr


def test_a_pod_cannot_opt_out_to_forge(cluster: Cluster) -> None:
    waiting(cluster)

    done = cluster.try_kubectl(
        "-n", SPACE, "patch", "pod", "p", "--type=merge", "-p", metadata(ANNOTATION_ALLOCATION, FORGED, LABEL_IGNORE)
    )

    assert ANNOTATION_ALLOCATION in done.stderr


def metadata(key: str, value: str, label: str = "") -> str:
    """A merge patch that sets an annotation, and perhaps a label."""
    meta = {"annotations": {key: value}} | ({"labels": {label: "true"}} if label else {})
    return json.dumps({"metadata": meta})


# ---- forged allocations: each way in by itself


@pytest.mark.parametrize(
    "key",
    [
        ANNOTATION_ALLOCATION,
        ANNOTATION_RESIZED,
        ANNOTATION_RESIZE_STATUS,
        ANNOTATION_GPUSHARE,
        ANNOTATION_IDX,
        ANNOTATION_ASSUME_TIME,
    ],
)
def test_created_with_an_allocation(cluster: Cluster, key: str) -> None:
    refused = create(cluster, pod(schedulerName=SCHEDULER_NAME, annotations={key: FORGED}))

    assert f"only the scheduler writes {key}" in refused


@pytest.mark.parametrize("subresource", ["", "status"])
def test_updated_with_an_allocation(cluster: Cluster, subresource: str) -> None:
    waiting(cluster)
    way = [f"--subresource={subresource}"] if subresource else []

    done = cluster.try_kubectl(
        "-n", SPACE, "patch", "pod", "p", *way, "--type=merge", "-p", metadata(ANNOTATION_ALLOCATION, FORGED)
    )

    assert f"only the scheduler writes {ANNOTATION_ALLOCATION}" in done.stderr


def test_an_ordinary_annotation_is_free(cluster: Cluster) -> None:
    waiting(cluster)

    cluster.kubectl("-n", SPACE, "annotate", "pod", "p", "team=blue")


def binding(annotations: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "p", "namespace": SPACE, "annotations": annotations},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "node-1"},
    }


@pytest.mark.parametrize("path", ["pods/p/binding", "bindings"])
def test_bound_with_an_allocation(cluster: Cluster, path: str) -> None:
    waiting(cluster)

    refused = post(cluster, f"/api/v1/namespaces/{SPACE}/{path}", binding({ANNOTATION_ALLOCATION: FORGED}))

    assert f"only the scheduler {SCHEDULER_NAME} binds with {ANNOTATION_ALLOCATION}" in refused
    assert "nodeName" not in cluster.get("-n", SPACE, "pod", "p")["spec"]


def test_other_schedulers_bind_without_our_annotations(cluster: Cluster) -> None:
    assert create(cluster, pod(mem="", schedulerName="theirs")) == ""

    assert post(cluster, f"/api/v1/namespaces/{SPACE}/pods/p/binding", binding({"team": "blue"})) == ""
    assert cluster.get("-n", SPACE, "pod", "p")["spec"]["nodeName"] == "node-1"


def test_what_our_scheduler_wrote_stays_as_it_is(cluster: Cluster) -> None:
    assert create(cluster, pod(schedulerName=SCHEDULER_NAME)) == ""
    cluster.wait_for("condition=Ready", "-n", SPACE, "pod/p")
    before = cluster.get("-n", SPACE, "pod", "p")["metadata"]["annotations"][ANNOTATION_ALLOCATION]

    for change in (FORGED, None):
        patch = json.dumps({"metadata": {"annotations": {ANNOTATION_ALLOCATION: change}}})
        done = cluster.try_kubectl("-n", SPACE, "patch", "pod", "p", "--type=merge", "-p", patch)
        assert f"only the scheduler writes {ANNOTATION_ALLOCATION}" in done.stderr

    assert before == cluster.get("-n", SPACE, "pod", "p")["metadata"]["annotations"][ANNOTATION_ALLOCATION]


# ---- forged cards


@pytest.mark.parametrize("subresource", ["", "status"])
@pytest.mark.parametrize("value", ["[]", None])
def test_a_nodes_cards_are_the_plugins_to_write(cluster: Cluster, subresource: str, value: str | None) -> None:
    way = [f"--subresource={subresource}"] if subresource else []
    patch = json.dumps({"metadata": {"annotations": {ANNOTATION_DEVICES: value}}})

    done = cluster.try_kubectl("patch", "node", "node-1", *way, "--type=merge", "-p", patch)

    assert f"only the device plugin writes {ANNOTATION_DEVICES}" in done.stderr


def test_a_gpu_count_among_the_annotations_is_warned_of(cluster: Cluster) -> None:
    count = {"aliyun.com/gpu-count": "2"}

    said = create(cluster, pod(mem="4", schedulerName=SCHEDULER_NAME, annotations=count))
    assert said.startswith("Warning: ")
    assert "the annotation aliyun.com/gpu-count has no effect: write it as a label of the pod" in said
    assert scheduler_of(cluster, "p") == SCHEDULER_NAME
    assert create(cluster, pod("q", "4", schedulerName=SCHEDULER_NAME, annotations=count, labels=count)) == ""


def test_a_new_node_brings_no_cards(cluster: Cluster) -> None:
    made = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "forged", "annotations": {ANNOTATION_DEVICES: "[]"}},
    }

    assert f"only the device plugin writes {ANNOTATION_DEVICES}" in create(cluster, made)


def test_the_plugin_of_one_node_does_not_write_for_another(cluster: Cluster) -> None:
    token = token_of_plugin(cluster, "node-1")
    patch = json.dumps({"metadata": {"annotations": {ANNOTATION_DEVICES: "[]"}}})

    def as_plugin(node: str) -> str:
        words = ["patch", "node", node, "--type=merge", "-p", patch, "--dry-run=server"]
        return cluster.try_kubectl(*bearer(cluster, token), *words).stderr

    assert as_plugin("node-1") == ""
    assert "cannot write cgpu.aliyun.com/devices of another" in as_plugin("node-2")


def test_the_plugin_of_a_node_answers_resizes_of_its_own_pods_and_changes_nothing_else(cluster: Cluster) -> None:
    for number in (1, 2):
        assert create(cluster, pod(f"on-{number}", mem="", nodeName=f"node-{number}")) == ""
    token = token_of_plugin(cluster, "node-1")
    answer = {ANNOTATION_RESIZE_STATUS: "applied"}

    def as_plugin(name: str, meta: dict[str, Any], **spec: Any) -> str:
        patch = json.dumps({"metadata": meta, **({"spec": spec} if spec else {})})
        words = ["-n", SPACE, "patch", "pod", name, "--type=merge", "-p", patch, "--dry-run=server"]
        return cluster.try_kubectl(*bearer(cluster, token), *words).stderr

    alone = f"changes nothing of a pod but its annotation {ANNOTATION_RESIZE_STATUS}"
    assert as_plugin("on-1", {"annotations": answer}) == ""
    assert "cannot change pods of another" in as_plugin("on-2", {"annotations": answer})
    assert alone in as_plugin("on-1", {"annotations": answer | {ANNOTATION_RESIZED: FORGED}})
    assert alone in as_plugin("on-1", {"annotations": answer, "labels": {"team": "blue"}})
    assert alone in as_plugin("on-1", {"annotations": answer}, activeDeadlineSeconds=1)


def token_of_plugin(cluster: Cluster, node: str) -> str:
    """What the device plugin of a node shows to the API server: it is bound to the plugin's pod, and so to the node."""
    plugins = cluster.get("-n", "kube-system", "pods", "-l", "app.kubernetes.io/component=device-plugin")["items"]
    one = next(row for row in plugins if row["spec"].get("nodeName") == node)["metadata"]
    return cluster.kubectl(
        "-n", "kube-system", "create", "token", "ack-ai-installer-device-plugin",
        "--bound-object-kind=Pod", f"--bound-object-name={one['name']}", f"--bound-object-uid={one['uid']}",
    ).strip()  # fmt: skip


def bearer(cluster: Cluster, token: str) -> list[str]:
    """Flags that make kubectl send this token and nothing of the administrator's."""
    config = json.loads(cluster.kubectl("config", "view", "--raw", "-o", "json"))
    server = config["clusters"][0]["cluster"]["server"]
    return ["--kubeconfig=/dev/null", f"--server={server}", "--insecure-skip-tls-verify", f"--token={token}"]
