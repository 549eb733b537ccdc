# SPDX-License-Identifier: Apache-2.0
"""`kubectl inspect cgpu` against an API server over real HTTP: what it prints, and what it says when it cannot."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from cgpu.cli.inspect import PLUGIN_SELECTOR, main
from cgpu.core.model import Share
from cgpu.core.names import ANNOTATION_ALLOCATION, ANNOTATION_DEVICES
from tests.extender.conftest import eventually
from tests.fake_api import FakeApi, Json, make_node, make_pod, write_kubeconfig

MIB = 1 << 20
COMMAND = Path(sys.executable).parent / "kubectl-inspect-cgpu"


class Cluster(FakeApi):
    """Two nodes with three cards, one without; plugins answer /usage through the API server's proxy."""

    def __init__(self) -> None:
        super().__init__()
        self.usage: dict[str, object] = {}  # plugin's pod → body

    def app(self) -> web.Application:
        app = super().app()
        app.router.add_get("/api/v1/namespaces/kube-system/pods/{target}/proxy/usage", self._usage)
        return app

    async def fill(self) -> None:
        """A pod of 3 on node-a's second card, one of 4 per card on both, and one that node-b has not placed yet."""
        await self.set_node(with_address(make_node("node-b", 22), "192.0.2.2"))
        await self.set_node(with_address(make_node("node-a", 15, 15), "192.0.2.1"))
        await self.set_node({"metadata": {"name": "plain", "uid": "node-plain"}, "status": {}})
        await self.set_pod(given("one", {"app0": {"GPU-node-a-1": Share(3)}}, 3))
        await self.set_pod(
            given(
                "two", {"app0": {f"GPU-node-a-{card}": Share(4) for card in (0, 1)}}, 8, {"aliyun.com/gpu-count": "2"}
            )
        )
        await self.set_pod(make_pod("unbound", 2))
        await self.set_pod(make_pod("plugin-a", namespace="kube-system", node="node-a"))

    async def _usage(self, request: web.Request) -> web.Response:
        assert request.match_info["target"] == "plugin-a:12347"
        return web.json_response(self.usage)


def with_address(node: Json, address: str) -> Json:
    node["status"]["addresses"] = [{"type": "InternalIP", "address": address}]
    return node


def given(name: str, shares: dict[str, dict[str, Share]], mem: int, labels: dict[str, str] | None = None) -> Json:
    """A running pod of node-a with its allocation."""
    text = json.dumps(
        {
            container: {uuid: {"mem": share.mem, "core": share.core} for uuid, share in cards.items()}
            for container, cards in shares.items()
        }
    )
    pod = make_pod(name, mem, node="node-a", annotations={ANNOTATION_ALLOCATION: text}, labels=labels or {})
    pod["status"] = {"phase": "Running"}
    return pod


@pytest.fixture
async def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Cluster]:
    """That cluster; $KUBECONFIG leads to it."""
    made = Cluster()
    await made.fill()
    runner = web.AppRunner(made.app(), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    write_kubeconfig(tmp_path / "kubeconfig", f"http://127.0.0.1:{runner.addresses[0][1]}")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    yield made
    await runner.cleanup()


async def inspect(*argv: str) -> int:
    """The command, in a thread of its own because it has its own event loop."""
    return await asyncio.to_thread(main, argv)


async def test_the_table_has_a_row_a_node_sorted_by_name(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert await inspect() == 0

    rows = capsys.readouterr().out.splitlines()
    assert rows[0].split() == [
        "NAME", "IPADDRESS", "GPU0(Allocated/Total)", "GPU1(Allocated/Total)", "GPU", "Memory(GiB)"
    ]  # fmt: skip
    assert [row.split() for row in rows[1:3]] == [
        ["node-a", "192.0.2.1", "4/15", "7/15", "11/30"],
        ["node-b", "192.0.2.2", "0/22", "-", "0/22"],
    ]
    assert rows[3:] == ["-" * max(map(len, rows)), "Allocated/Total GPU Memory In Cluster:", "11/52 (21%)"]


async def test_one_node_alone(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert await inspect("node-b") == 0

    out = capsys.readouterr().out
    assert "node-a" not in out
    assert out.endswith("0/22 (0%)\n")


async def test_a_bound_pod_without_cards_is_pending(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    await cluster.set_pod(make_pod("waits", 5, node="node-b"))

    assert await inspect("node-b") == 0
    rows = capsys.readouterr().out.splitlines()
    assert "PENDING(Allocated)" in rows[0]
    assert rows[1].split() == ["node-b", "192.0.2.2", "0/22", "5", "5/22"]


async def test_details_have_a_row_a_pod_with_what_it_really_uses(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.usage = {
        "instances": [
            {"namespace": "default", "pod": "two", "usedBytes": 100 * MIB},
            {"namespace": "default", "pod": "two", "usedBytes": 50 * MIB},
            {"namespace": "default", "pod": "one", "usedBytes": None},
        ],
        "unserved": [{"namespace": "default", "pod": "one", "container": "app0"}],
    }

    assert await inspect("node-a", "-d") == 0
    rows = [row.split() for row in capsys.readouterr().out.splitlines()]
    assert ["one", "default", "0", "3", "-", "app0"] in rows
    assert ["two", "default", "4", "4", "150", "-"] in rows
    assert ["Allocated", ":", "11", "(36%)"] in rows
    assert ["Total", ":", "30"] in rows


@pytest.mark.parametrize(
    "usage",
    [
        pytest.param({"instances": None}, id="no list"),
        pytest.param([], id="another type"),
        pytest.param({"instances": [{}]}, id="rows without keys"),
    ],
)
async def test_a_plugin_that_answers_nonsense_costs_only_the_used_column(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], usage: object
) -> None:
    cluster.usage = usage  # type: ignore[assignment]

    assert await inspect("-d", "node-a") == 0
    assert ["one", "default", "0", "3", "-"] in [row.split() for row in capsys.readouterr().out.splitlines()]


async def test_json_has_the_same_facts(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert await inspect("-o", "json") == 0

    answer = json.loads(capsys.readouterr().out)
    assert (answer["allocated"], answer["total"]) == (11, 52)
    first = answer["nodes"][0]
    assert first["gpus"] == [{"index": 0, "allocated": 4, "total": 15}, {"index": 1, "allocated": 7, "total": 15}]
    assert [(pod["name"], pod["booked"]) for pod in first["pods"]] == [("one", {"1": 3}), ("two", {"0": 4, "1": 4})]


async def test_a_node_whose_annotation_cannot_be_read_is_named_and_the_others_shown(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.nodes["node-b"]["metadata"]["annotations"][ANNOTATION_DEVICES] = "[{]"

    assert await inspect() == 0
    told = capsys.readouterr()
    assert f"node node-b: {ANNOTATION_DEVICES}" in told.err
    assert told.out.endswith("11/30 (36%)\n")


@pytest.mark.parametrize(
    ("node", "want"),
    [
        pytest.param("nod-a", "no node is named 'nod-a'; kubectl get nodes lists them", id="unknown node"),
        pytest.param("plain", f"node plain offers no GPU shares: it has no annotation {ANNOTATION_DEVICES}", id="not ours"),
    ],
)  # fmt: skip
async def test_a_node_that_cannot_be_shown_is_a_usage_error(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], node: str, want: str
) -> None:
    assert await inspect(node) == 2
    assert want in capsys.readouterr().err


async def test_an_api_server_that_refuses_is_status_1(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.closed = True

    assert await inspect() == 1
    assert "etcd is away" in capsys.readouterr().err


def test_an_api_server_that_is_not_there_is_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_kubeconfig(tmp_path / "kubeconfig", "http://127.0.0.1:1")

    assert main(["--kubeconfig", str(tmp_path / "kubeconfig")]) == 1
    assert "127.0.0.1:1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "want"),
    [
        pytest.param(["-o", "yaml"], "'yaml'", id="no such output"),
        pytest.param(["--watch", "soon"], "'soon' is no number of seconds from 0.1 to 3600", id="no number"),
        pytest.param(["--watch", "0"], "'0' is no number of seconds from 0.1 to 3600", id="too often"),
        pytest.param(["--watch", "nan"], "'nan' is no number of seconds from 0.1 to 3600", id="not a number"),
        pytest.param(["a", "b"], "unrecognized arguments: b", id="two nodes"),
        pytest.param(["--nodes"], "unrecognized arguments: --nodes", id="no such flag"),
    ],
)
def test_a_wrong_argument_is_named(argv: list[str], want: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(argv)

    assert ended.value.code == 2
    assert want in capsys.readouterr().err


async def test_watching_asks_again_until_it_is_interrupted(cluster: Cluster) -> None:
    # a suite in the background of a shell inherits an ignored SIGINT: the command gets the default back, as on a terminal
    words = ("env", "--default-signal=INT", COMMAND, "--watch", "0.1")
    process = await asyncio.create_subprocess_exec(
        *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )

    async def looked_twice() -> bool:
        return cluster.lists >= 6  # three a look: nodes, pods, plugins

    try:
        await eventually(looked_twice, seconds=60)
    finally:
        process.send_signal(signal.SIGINT)
        out, err = await process.communicate()

    assert (process.returncode, err.decode()) == (130, "")
    assert "11/52 (21%)" in out.decode()


def test_plugins_are_found_by_the_labels_of_the_chart() -> None:
    chart = Path(__file__).parents[2] / "deploy/helm/ack-ai-installer"
    daemonset = (chart / "templates/deviceplugin-daemonset.yaml").read_text()
    labels = dict(pair.split("=") for pair in PLUGIN_SELECTOR.split(","))

    assert f"name: {labels['app.kubernetes.io/name']}\n" in (chart / "Chart.yaml").read_text()
    assert f'"component" "{labels["app.kubernetes.io/component"]}"' in daemonset
