# SPDX-License-Identifier: Apache-2.0
"""A running extender on a fake API server, and a scheduler's hands to call it with."""

import asyncio
import io
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from cgpu.settings import Address
from extender.__main__ import Settings, serve
from tests.fake_api import FakeApi, Json, make_node, serving


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def eventually(true: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Wait until the callable (or what it awaits) gives something true."""
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        value = true()
        if asyncio.iscoroutine(value):
            value = await value
        if value:
            return value
        assert asyncio.get_running_loop().time() < deadline, f"not within {seconds} s: last seen {value!r}"
        await asyncio.sleep(0.02)


@dataclass
class Extender:
    """One running extender, spoken to as kube-scheduler does."""

    settings: Settings
    session: aiohttp.ClientSession
    api: FakeApi

    async def post(self, verb: str, body: Any) -> Any:
        """The answer's JSON; `body` is JSON or raw bytes."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        url = f"http://{self.settings.verb_address}/gpushare-scheduler/{verb}"
        async with self.session.post(
            url, data=io.BytesIO(raw), headers={"Content-Type": "application/json"}
        ) as response:
            assert response.status == 200, await response.text()
            return json.loads(await response.read())

    async def get(self, path: str, status: int = 200) -> Any:
        """JSON of the read listener, or text."""
        async with self.session.get(f"http://{self.settings.read_address}{path}") as response:
            text = await response.text()
            assert response.status == status, text
            return json.loads(text) if response.content_type == "application/json" else text

    async def filter(self, pod: Json, *nodes: str) -> Json:
        """filter; all nodes of the API server by default."""
        names = list(nodes) or sorted(self.api.nodes)
        answer = await self.post("filter", {"Pod": pod, "Nodes": None, "NodeNames": names})
        assert isinstance(answer, dict)
        return answer

    async def prioritize(self, pod: Json, *nodes: str) -> dict[str, int]:
        """prioritize: host → score."""
        rows = await self.post("prioritize", {"Pod": pod, "Nodes": None, "NodeNames": list(nodes)})
        return {row["Host"]: row["Score"] for row in rows}

    async def bind(self, pod: Json, node: str) -> str:
        """bind: "" or the error."""
        meta = pod["metadata"]
        body = {"PodName": meta["name"], "PodNamespace": meta["namespace"], "PodUID": meta["uid"], "Node": node}
        return str((await self.post("bind", body))["Error"])

    async def schedule(self, pod: Json) -> str:
        """What kube-scheduler does with a pending pod: the node's name, or "" when none takes it."""
        passed = (await self.filter(pod))["NodeNames"]
        if len(passed) > 1:
            scores = await self.prioritize(pod, *passed)
            passed = [max(scores, key=lambda name: scores[name])]
        if not passed or await self.bind(pod, passed[0]):
            return ""
        return str(passed[0])

    async def used(self) -> dict[str, list[int]]:
        """node → GiB used of each card."""
        report = await self.get("/gpushare-scheduler/inspect")
        return {node["name"]: [dev["usedGPU"] for dev in node["devs"]] for node in report["nodes"]}

    async def seen(self, pod: Json) -> None:
        """Wait until the extender knows the pod."""
        key = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        await eventually(lambda: self._knows(key))

    async def _knows(self, key: str) -> bool:
        url = f"http://{self.settings.read_address}/gpushare-scheduler/inspect"
        async with self.session.get(url, params={"pod": key}) as response:
            return response.status == 200


async def set_nodes(api: FakeApi, extender: Extender, **units: tuple[int, ...]) -> None:
    """Nodes with cards of so many GiB, and an extender that knows them."""
    for name, sizes in units.items():
        await api.set_node(make_node(name, *sizes))
    await eventually(lambda: knows_nodes(extender, set(units)))


async def knows_nodes(extender: Extender, names: set[str]) -> bool:
    """Whether it has all of these nodes in its books."""
    return names <= set(await extender.used())


async def run_pods(api: FakeApi, extender: Extender, *pods: Json) -> list[str]:
    """Create the pods, then schedule one after the other: the node of each, or ""."""
    for pod in pods:
        await api.set_pod(pod)
    return [await extender.schedule(pod) for pod in pods]


@asynccontextmanager
async def running(api: FakeApi, folder: Path, *, ready: bool = True, **change: Any) -> AsyncIterator[Extender]:
    """An extender on this API server until the block ends; `change`: settings; `ready`: wait until it is."""
    kubeconfig = folder / "kubeconfig"
    settings = Settings(
        kubeconfig=kubeconfig,
        verb_address=Address("127.0.0.1", free_port()),
        read_address=Address("127.0.0.1", free_port()),
    )
    stop = asyncio.Event()
    task = asyncio.create_task(serve(replace(settings, **change), stop))
    async with aiohttp.ClientSession() as session:
        extender = Extender(replace(settings, **change), session, api)
        try:
            await eventually(lambda: _answers(extender, task, "/readyz" if ready else "/healthz"))
            yield extender
        finally:
            stop.set()
            await task


async def _answers(extender: Extender, task: "asyncio.Task[None]", path: str) -> bool:
    if task.done():
        task.result()
    try:
        async with extender.session.get(f"http://{extender.settings.read_address}{path}") as response:
            return response.status == 200
    except aiohttp.ClientConnectionError:
        return False


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[FakeApi]:
    """A fake API server; `tmp_path/kubeconfig` leads to it."""
    async with serving(tmp_path / "kubeconfig") as fake:
        yield fake


@pytest.fixture
async def extender(api: FakeApi, tmp_path: Path) -> AsyncIterator[Extender]:
    """An extender on an empty API server."""
    async with running(api, tmp_path) as started:
        yield started
