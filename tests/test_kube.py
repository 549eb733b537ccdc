# SPDX-License-Identifier: Apache-2.0
"""The API server's adapter: what is decoded, how errors read, how watches go on, how often events speak."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from cgpu.core.errors import (
    CgpuError,
    ConflictError,
    ExpiredError,
    ForbiddenError,
    NotFoundError,
    SettingError,
    UnavailableError,
)
from cgpu.core.model import Container, ContainerKind, Pod
from cgpu.kube.client import KubeClient, load_configuration
from cgpu.kube.events import BURST, EventRecorder, Reference
from cgpu.kube.objects import NODES, PODS, decode_node, decode_page, decode_pod
from cgpu.kube.reflector import RELIST_AFTER, Reflector
from tests.extender.conftest import eventually
from tests.fake_api import FakeApi, make_node, make_pod, serving, write_kubeconfig

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


@asynccontextmanager
async def _answering(tmp_path: Path, status: int, body: Any) -> AsyncIterator[KubeClient]:
    async def answer(request: web.Request) -> web.Response:
        return (
            web.json_response(body, status=status)
            if not isinstance(body, str)
            else web.Response(text=body, status=status)
        )

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    write_kubeconfig(tmp_path / "kubeconfig", f"http://127.0.0.1:{runner.addresses[0][1]}")
    async with await KubeClient.connect(tmp_path / "kubeconfig") as client:
        yield client
    await runner.cleanup()


@pytest.mark.parametrize(
    ("status", "want"),
    [
        pytest.param(401, ForbiddenError, id="not known"),
        pytest.param(403, ForbiddenError, id="not allowed"),
        pytest.param(404, NotFoundError, id="not there"),
        pytest.param(409, ConflictError, id="changed meanwhile"),
        pytest.param(410, ExpiredError, id="too old"),
        pytest.param(429, UnavailableError, id="too many requests"),
        pytest.param(500, UnavailableError, id="a fault"),
    ],
)
async def test_errors_have_the_api_servers_own_text(tmp_path: Path, status: int, want: type[CgpuError]) -> None:
    async with _answering(tmp_path, status, {"kind": "Status", "code": status, "message": "its own text"}) as client:
        with pytest.raises(want, match=f"GET /api/v1/namespaces/d/pods/p: {status}: its own text"):
            await client.get_pod("d", "p")


async def test_an_error_that_is_no_status_is_shown(tmp_path: Path) -> None:
    async with _answering(tmp_path, 502, "<html>bad gateway</html>") as client:
        with pytest.raises(UnavailableError, match="502: <html>bad gateway"):
            await client.list_nodes()


async def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    write_kubeconfig(tmp_path / "kubeconfig", "http://127.0.0.1:1")
    async with await KubeClient.connect(tmp_path / "kubeconfig") as client:
        with pytest.raises(
            UnavailableError, match=r"GET /api/v1/nodes: the API server http://127.0.0.1:1 does not answer"
        ):
            await client.list_nodes()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        pytest.param(None, "No such file or directory", id="missing"),
        pytest.param("", "", id="empty"),
        pytest.param("a: [", "", id="no YAML"),
        pytest.param("- x", "", id="a list"),
        pytest.param("apiVersion: v1\nkind: Config\ncurrent-context: x", "", id="a context that is not there"),
    ],
)
async def test_a_kubeconfig_that_cannot_be_used_is_named(tmp_path: Path, content: str | None, why: str) -> None:
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)
    with pytest.raises(SettingError, match=f"kubeconfig {path} cannot be used: .*{why}"):
        await load_configuration(path)


async def test_without_a_kubeconfig_the_environment_decides(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="the pod's service account cannot be used"):
        await load_configuration(None, {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"})
    write_kubeconfig(tmp_path / "config", "http://127.0.0.1:9")
    assert (await load_configuration(None, {"KUBECONFIG": str(tmp_path / "config")})).host == "http://127.0.0.1:9"


async def test_requests_say_what_they_should(tmp_path: Path) -> None:
    seen: list[tuple[str, str, str, Any]] = []

    async def keep(request: web.Request) -> web.Response:
        body = await request.json() if request.can_read_body else None
        seen.append((request.method, request.path, request.headers["Content-Type"], body))
        return web.json_response({"metadata": {"name": "n"}})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", keep)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    write_kubeconfig(tmp_path / "kubeconfig", f"http://127.0.0.1:{runner.addresses[0][1]}")
    async with await KubeClient.connect(tmp_path / "kubeconfig") as client:
        await client.patch_node_annotations("n", {"a": "1", "b": None})
        await client.patch_node_status("n", {"aliyun.com/gpu-count": "2"})
        await client.patch_node_labels("n", {"c": None})
        await client.patch_pod_condition("d", "p", "u", {"type": "t", "status": "True"})
        await client.bind("d", "p", "u", "n", {"k": "v"})
        assert json.loads(await client.proxy_get("d", "p", 12347, "/usage"))
    await runner.cleanup()
    merge = "application/merge-patch+json"
    assert seen[:4] == [
        ("PATCH", "/api/v1/nodes/n", merge, {"metadata": {"annotations": {"a": "1", "b": None}}}),
        ("PATCH", "/api/v1/nodes/n/status", merge, {"status": {"capacity": {"aliyun.com/gpu-count": "2"}}}),
        ("PATCH", "/api/v1/nodes/n", merge, {"metadata": {"labels": {"c": None}}}),
        (
            "PATCH",
            "/api/v1/namespaces/d/pods/p/status",
            "application/strategic-merge-patch+json",
            {"metadata": {"uid": "u"}, "status": {"conditions": [{"type": "t", "status": "True"}]}},
        ),
    ]
    method, path, _, body = seen[4]
    assert (method, path) == ("POST", "/api/v1/namespaces/d/pods/p/binding")
    assert body["metadata"] == {"name": "p", "namespace": "d", "uid": "u", "annotations": {"k": "v"}}
    assert body["target"]["name"] == "n"
    assert seen[5][1] == "/api/v1/namespaces/d/pods/p:12347/proxy/usage"


class Seen:
    """A sink that keeps what it was told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def replace(self, objects: Mapping[str, Pod]) -> None:
        self.told.append(("all", ",".join(sorted(objects))))

    def changed(self, item: Pod) -> None:
        self.told.append(("changed", item.key))

    def deleted(self, item: Pod) -> None:
        self.told.append(("deleted", item.key))


@asynccontextmanager
async def _reflecting(tmp_path: Path, **query: str) -> AsyncIterator[tuple[FakeApi, Reflector[Pod], Seen]]:
    async with serving(tmp_path / "kubeconfig") as api:
        api.page_size = 2
        for index in range(5):
            await api.set_pod(make_pod(f"p{index}", 1))
        async with await KubeClient.connect(tmp_path / "kubeconfig") as client:
            seen = Seen()
            reflector = Reflector(client, PODS, seen, **query)
            task = asyncio.create_task(reflector.run())
            await asyncio.wait_for(reflector.synced.wait(), 60)
            yield api, reflector, seen
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_a_reflector_lists_in_pages_and_then_follows(tmp_path: Path) -> None:
    async with _reflecting(tmp_path) as (api, reflector, seen):
        assert api.lists == 3
        await api.set_pod(make_pod("new", 1))
        await api.drop_pod("default/p0")
        await eventually(lambda: len(seen.told) == 3)
        assert seen.told[0][1].count(",") == 4
        assert seen.told[1:] == [("changed", "default/new"), ("deleted", "default/p0")]
        assert sorted(reflector.objects) == [f"default/{name}" for name in ("new", "p1", "p2", "p3", "p4")]


async def test_a_watch_that_was_cut_goes_on_without_a_list(tmp_path: Path) -> None:
    async with _reflecting(tmp_path) as (api, _, seen):
        await api.cut_watches()
        await api.set_pod(make_pod("new", 1))
        await eventually(lambda: ("changed", "default/new") in seen.told)
        assert api.lists == 3


async def test_cuts_with_changes_between_them_are_not_failures_in_a_row(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with _reflecting(tmp_path) as (api, reflector, seen):
        for turn in range(1, RELIST_AFTER + 2):
            await api.set_pod(make_pod(f"new{turn}", 1))
            await eventually(lambda turn=turn: ("changed", f"default/new{turn}") in seen.told)
            await api.cut_watches()
            await eventually(lambda turn=turn: caplog.text.count("again in at most") == turn)
        assert reflector.relists == 1


async def test_after_410_everything_is_listed_anew(tmp_path: Path) -> None:
    async with _reflecting(tmp_path) as (api, reflector, seen):
        api.mute = True
        await api.drop_pod("default/p0")
        api.mute = False
        api.expire()
        await api.cut_watches()
        await eventually(lambda: reflector.relists == 2)
        assert "default/p0" not in reflector.objects
        assert seen.told[-1] == ("all", "default/p1,default/p2,default/p3,default/p4")


async def test_repairs_are_told_like_events(tmp_path: Path) -> None:
    async with _reflecting(tmp_path) as (_, reflector, seen):
        added = decode_pod(json.dumps(make_pod("x", 1)).encode())
        reflector.repair({"default/x": added, "default/p0": None, "default/never": None})
        assert seen.told[1:] == [("changed", "default/x"), ("deleted", "default/p0")]


async def test_nodes_are_listed_by_the_same_means(tmp_path: Path) -> None:
    async with serving(tmp_path / "kubeconfig") as api:
        await api.set_node(make_node("a", 15))
        async with await KubeClient.connect(tmp_path / "kubeconfig") as client:
            assert [node.name for node in await client.list_nodes()] == ["a"]
            assert (await client.list(NODES)).continue_token == ""


ABOUT = Reference("Pod", "p", "u", "d")


async def test_events_speak_once_a_minute_unless_they_change(tmp_path: Path) -> None:
    now = [1_800_000_000.0]
    async with serving(tmp_path / "kubeconfig") as api, await KubeClient.connect(tmp_path / "kubeconfig") as client:
        recorder = EventRecorder(client, "tester", clock=lambda: now[0])
        for moment, text, want in ((0, "a", 1), (59, "a", 1), (59, "b", 2), (60, "b", 2), (200, "b", 2)):
            now[0] = 1_800_000_000.0 + moment
            await recorder.warning(ABOUT, "Why", text)
            assert len(api.events) == want, (moment, text)
        assert [(event["message"], event["count"]) for event in api.events] == [("a", 1), ("b", 2)]
        assert api.events[0]["involvedObject"] == {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "p",
            "uid": "u",
            "namespace": "d",
        }
        assert api.events[1]["lastTimestamp"] == "2027-01-15T08:03:20Z"


async def test_a_flood_of_events_is_dropped_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(tmp_path / "kubeconfig") as api, await KubeClient.connect(tmp_path / "kubeconfig") as client:
        recorder = EventRecorder(client, "tester", clock=lambda: 0.0)
        for index in range(BURST + 3):
            await recorder.normal(ABOUT, "Why", str(index))
        assert len(api.events) == BURST
        assert caplog.text.count("too many events") == 3


async def test_an_event_that_cannot_be_written_is_logged_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with _answering(tmp_path, 403, {"code": 403, "message": "forbidden"}) as client:
        recorder = EventRecorder(client, "tester", clock=lambda: 0.0)
        await recorder.warning(ABOUT, "Why", "x" * 2000)
        await recorder.warning(ABOUT, "Why", "x" * 2000)
    assert caplog.text.count("event Why for Pod p is lost") == 2


def test_starting_a_command_does_not_import_the_generated_clients() -> None:
    code = "import sys, cgpu.kube.client; print(*(name for name in sys.modules if name.startswith('kubernetes.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    loaded = set(done.stdout.split())
    assert "kubernetes.aio.config.kube_config" in loaded
    assert not {"kubernetes.client", "kubernetes.dynamic", "kubernetes.aio.dynamic"} & loaded
    assert not [name for name in loaded if name.startswith("kubernetes.aio.client.models.")]
