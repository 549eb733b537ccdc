# SPDX-License-Identifier: Apache-2.0
"""Routes, bad input, settings and TLS."""

import asyncio
import ssl
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from cgpu.core.errors import SettingError
from cgpu.settings import Address, read_settings
from extender.__main__ import Settings, main, verb_tls
from extender.app import BODY_LIMIT
from tests.certificates import make_ca
from tests.extender.conftest import Extender, eventually, running
from tests.fake_api import FakeApi, make_node, make_pod


@pytest.mark.parametrize("verb", ["filter", "prioritize", "bind", "preempt"])
@pytest.mark.parametrize(
    ("body", "want"),
    [
        pytest.param(b"", "it is empty", id="no body"),
        pytest.param(b'{"Pod": {"metadata"', "not what kube-scheduler sends", id="a body that was cut off"),
        pytest.param(b"\x00\xff" * 500, "not what kube-scheduler sends", id="no text"),
        pytest.param(b"5", "expected a JSON object", id="another type"),
        pytest.param(b"{}", "is missing", id="an empty object"),
        pytest.param(b" " * (BODY_LIMIT + 1), "larger than 16 MiB: set nodeCacheCapable", id="a huge body"),
    ],
)
async def test_bad_bodies_are_answered_and_the_process_goes_on(
    extender: Extender, verb: str, body: bytes, want: str
) -> None:
    answer = await extender.post(verb, body)
    assert want in answer["Error"]
    assert await extender.get("/healthz") == "ok\n"


async def test_a_body_that_never_ends_hinders_nobody(api: FakeApi, extender: Extender) -> None:
    await api.set_node(make_node("a", 15))
    await eventually(extender.used)
    where = extender.settings.verb_address
    _, writer = await asyncio.open_connection(where.host, where.port)
    writer.write(b"POST /gpushare-scheduler/filter HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
    await writer.drain()
    assert (await extender.filter(make_pod("p", 6), "a"))["NodeNames"] == ["a"]
    writer.close()


@pytest.mark.parametrize(
    ("path", "status", "want"),
    [
        pytest.param(
            "/gpushare-scheduler/inspect/nowhere",
            404,
            {"nodes": [], "error": "no node nowhere: kubectl get nodes lists the names"},
            id="an unknown node",
        ),
        pytest.param(
            "/gpushare-scheduler/inspect?pod=x",
            404,
            {"error": "no pod x that asks for GPU memory: write pod=<namespace>/<name>"},
            id="an unknown pod",
        ),
        pytest.param("/gpushare-scheduler/version", 200, {"version": "1.0.0"}, id="the version"),
        pytest.param("/version", 200, {"version": "1.0.0"}, id="the version without prefix"),
        pytest.param("/healthz", 200, "ok\n", id="alive"),
        pytest.param("/gpushare-scheduler/healthz", 200, "ok\n", id="alive, with the prefix"),
        pytest.param("/gpushare-scheduler/readyz", 200, "ok\n", id="ready, with the prefix"),
        pytest.param("/readyz", 200, "ok\n", id="ready"),
    ],
)
async def test_reading(extender: Extender, path: str, status: int, want: Any) -> None:
    assert await extender.get(path, status) == want


async def test_a_wrong_path_names_the_right_ones(extender: Extender) -> None:
    answer = await extender.get("/inspekt", 404)
    assert "GET /gpushare-scheduler/inspect/{node}" in answer["error"]
    url = f"http://{extender.settings.verb_address}/gpushare-scheduler/filter"
    async with extender.session.get(url) as response:
        assert response.status == 405
        assert "POST /gpushare-scheduler/filter" in await response.text()


async def test_verbs_are_not_served_where_everybody_reads(extender: Extender) -> None:
    url = f"http://{extender.settings.read_address}/gpushare-scheduler/bind"
    async with extender.session.post(url, data=b"{}") as response:
        assert response.status == 404


async def test_inspect_shows_cards_and_pods(api: FakeApi, extender: Extender) -> None:
    await api.set_node(make_node("a", 15, 15))
    await api.set_pod(make_pod("p", 2, 3, namespace="team"))
    await extender.seen(api.pods["team/p"])
    await eventually(extender.used)
    assert await extender.schedule(api.pods["team/p"]) == "a"
    node = {
        "name": "a",
        "totalGPU": 30,
        "usedGPU": 5,
        "devs": [
            {
                "id": 0,
                "uuid": "GPU-a-0",
                "totalGPU": 15,
                "usedGPU": 5,
                "pods": [{"name": "p", "namespace": "team", "usedGPU": 5}],
            },
            {"id": 1, "uuid": "GPU-a-1", "totalGPU": 15, "usedGPU": 0, "pods": []},
        ],
    }
    assert await extender.get("/gpushare-scheduler/inspect") == {"nodes": [node], "error": ""}
    assert await extender.get("/gpushare-scheduler/inspect/a") == {"nodes": [node], "error": ""}


async def test_inspect_says_why_a_node_won_and_why_a_pod_waits(api: FakeApi, extender: Extender) -> None:
    for name, size in (("a", 15), ("b", 8), ("c", 4)):
        await api.set_node(make_node(name, size))
    for pod in (make_pod("won", 6), make_pod("waits", 14), make_pod("odd", 7, labels={"aliyun.com/gpu-count": "2"})):
        await api.set_pod(pod)
        await extender.seen(pod)
    await eventually(lambda: _has_nodes(extender, 3))
    assert await extender.schedule(api.pods["default/won"]) == "b"
    won = await extender.get("/gpushare-scheduler/inspect?pod=default/won")
    assert won["why"] == "binpack: best of 2 nodes that take the pod; next best: a"
    assert won["refused"] == {"no single GPU has 6 GiB at all": 1}
    assert (won["state"], won["node"]) == ("bound", "b")
    await api.set_pod(make_pod("big", 10))
    assert await extender.schedule(api.pods["default/big"]) == "a"
    waits = await extender.get("/gpushare-scheduler/inspect?pod=default/waits")
    assert (waits["state"], waits["reason"]) == ("pending", "no-room")
    assert waits["nodes"][0] == {
        "name": "a",
        "takes": False,
        "why": "a has 5 GiB free but no single GPU has 14 GiB (largest free: 5 GiB)",
    }
    odd = await extender.get("/gpushare-scheduler/inspect?pod=default/odd")
    assert (odd["reason"], odd["nodes"]) == ("invalid", [])
    assert "7 not divisible by 2" in odd["why"]


async def _has_nodes(extender: Extender, count: int) -> bool:
    return len(await extender.used()) == count


async def test_metrics_are_openmetrics_with_the_promised_names(api: FakeApi, extender: Extender) -> None:
    await api.set_node(make_node("a", 15, 15))
    for pod in (make_pod("p", 6, namespace="team"), make_pod("never", 16)):
        await api.set_pod(pod)
        await extender.seen(pod)
    await eventually(extender.used)
    assert await extender.schedule(api.pods["team/p"]) == "a"
    families = {family.name: family for family in text_string_to_metric_families(await extender.get("/metrics"))}
    values = {
        (sample.name, *sample.labels.values()): sample.value
        for family in families.values()
        for sample in family.samples
    }
    assert values["cgpu_extender_binds_total", "bound"] == 1
    assert values["cgpu_extender_request_duration_seconds_count", "filter"] == 1
    assert values["cgpu_extender_gpu_fragmentation_ratio",] == 9 / 24
    assert values["cgpu_extender_books_drift_bytes",] == 0
    assert values["cgpu_extender_pending_pods", "never-fits"] == 1
    assert values["cgpu_namespace_gpu_memory_allocated_bytes", "team"] == 6 << 30


async def test_before_the_books_are_rebuilt_verbs_ask_to_wait(api: FakeApi, tmp_path: Path) -> None:
    api.closed = True
    async with running(api, tmp_path, ready=False) as extender:
        assert "still reading the cluster" in await extender.get("/readyz", 503)
        answer = await extender.filter(make_pod("p", 6), "a")
        assert "still reading the cluster" in answer["Error"]
        api.closed = False
        await eventually(lambda: _is_ready(extender))


async def _is_ready(extender: Extender) -> bool:
    async with extender.session.get(f"http://{extender.settings.read_address}/readyz") as response:
        return response.status == 200


@pytest.mark.parametrize(
    ("argv", "want"),
    [
        pytest.param(["--verb-address=0.0.0.0:12345"], "anybody could bind pods", id="verbs beyond this machine"),
        pytest.param(["--verb-address=10.0.0.1:1", "--tls-cert=x"], "belong together", id="half of TLS"),
        pytest.param(
            ["--tls-cert=/none", "--tls-key=/none", "--tls-client-ca=/none"],
            "cannot be used",
            id="files that are missing",
        ),
        pytest.param(["--verb-addres=x"], "did you mean --verb-address", id="a flag mistyped"),
        pytest.param(["--verb-address=12345"], "must be host:port", id="an address without host"),
        pytest.param(
            ["--compare-seconds=0"], "must be a number of seconds from 1 to 86400", id="a number out of range"
        ),
        pytest.param(["--allow-remote-verbs=maybe"], "must be true or false", id="no boolean"),
        pytest.param(["--kubeconfig=/none"], "kubeconfig /none cannot be used", id="a kubeconfig that is missing"),
    ],
)
def test_wrong_settings_end_with_what_to_do(argv: list[str], want: str, capsys: pytest.CaptureFixture[str]) -> None:
    ports = ["--verb-address=127.0.0.1:0", "--read-address=127.0.0.1:0"]
    assert main([*ports, *argv]) == 2
    assert want in capsys.readouterr().err


def test_remote_verbs_need_their_flag() -> None:
    settings = read_settings(Settings, "x", ["--verb-address=0.0.0.0:1", "--allow-remote-verbs"], {})
    assert verb_tls(settings) is None


async def test_with_tls_only_clients_of_the_ca_are_heard(api: FakeApi, tmp_path: Path) -> None:
    ca, other = make_ca("ca"), make_ca("other")
    server = ca.issue(tmp_path, "server", "127.0.0.1")
    good, bad = ca.issue(tmp_path, "good"), other.issue(tmp_path, "bad")
    files = {"tls_cert": server.cert, "tls_key": server.key, "tls_client_ca": ca.write(tmp_path / "ca.crt")}
    async with running(api, tmp_path, **files) as extender:
        url = f"https://{extender.settings.verb_address}/gpushare-scheduler/bind"
        for pair, heard in ((good, True), (bad, False), (None, False)):
            context = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
            if pair is not None:
                context.load_cert_chain(pair.cert, pair.key)
            try:
                async with extender.session.post(url, data=b"{}", ssl=context) as response:
                    assert "PodName is missing" in await response.text()
                    assert heard
            except (aiohttp.ClientConnectionError, ssl.SSLError):
                assert not heard


def test_loopback_is_recognised() -> None:
    hosts = {"127.0.0.1": True, "127.9.9.9": True, "::1": True, "localhost": True, "0.0.0.0": False, "10.1.1.1": False}
    assert {host: Address(host, 1).is_loopback for host in hosts} == hosts


def test_settings_errors_are_input_errors() -> None:
    with pytest.raises(SettingError):
        read_settings(Settings, "x", ["--log-level=loud"], {})
