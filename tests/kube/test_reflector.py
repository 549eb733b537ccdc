# SPDX-License-Identifier: Apache-2.0
"""How a list and its watch go on."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from cgpu.core.model import Pod
from cgpu.kube.client import KubeClient
from cgpu.kube.objects import NODES, PODS, decode_pod
from cgpu.kube.reflector import RELIST_AFTER, Reflector
from tests.extender.conftest import eventually
from tests.fake_api import FakeApi, make_node, make_pod, serving


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
