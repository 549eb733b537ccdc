# SPDX-License-Identifier: Apache-2.0
"""How requests and errors of the API server's client read."""

import json
import subprocess
import sys
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
from cgpu.kube.client import KubeClient, load_configuration
from tests.fake_api import write_kubeconfig
from tests.kube.server import answering, handling


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
    async with answering(tmp_path, status, {"kind": "Status", "code": status, "message": "its own text"}) as client:
        with pytest.raises(want, match=f"GET /api/v1/namespaces/d/pods/p: {status}: its own text"):
            await client.get_pod("d", "p")


async def test_an_error_that_is_no_status_is_shown(tmp_path: Path) -> None:
    async with answering(tmp_path, 502, "<html>bad gateway</html>") as client:
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

    async with handling(tmp_path, keep) as client:
        await client.patch_node_annotations("n", {"a": "1", "b": None})
        await client.patch_node_status("n", {"aliyun.com/gpu-count": "2"})
        await client.patch_node_labels("n", {"c": None})
        await client.patch_pod_condition("d", "p", "u", {"type": "t", "status": "True"})
        await client.bind("d", "p", "u", "n", {"k": "v"})
        assert json.loads(await client.proxy_get("d", "p", 12347, "/usage"))
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


def test_starting_a_command_does_not_import_the_generated_clients() -> None:
    code = "import sys, cgpu.kube.client; print(*(name for name in sys.modules if name.startswith('kubernetes.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    loaded = set(done.stdout.split())
    assert "kubernetes.aio.config.kube_config" in loaded
    assert not {"kubernetes.client", "kubernetes.dynamic", "kubernetes.aio.dynamic"} & loaded
    assert not [name for name in loaded if name.startswith("kubernetes.aio.client.models.")]
