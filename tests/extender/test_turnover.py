# SPDX-License-Identifier: Apache-2.0
"""Pods come and go: when a card is free again, and that the books are exact afterwards."""

import asyncio
import random

import pytest

from tests.extender.conftest import Extender, eventually, run_pods, set_nodes
from tests.fake_api import FakeApi, Json, make_pod


async def test_a_deployment_scaled_up_and_down_leaves_the_books_exact(api: FakeApi, extender: Extender) -> None:
    await set_nodes(api, extender, a=(15, 15), b=(15,))
    for _ in range(5):
        pods = [make_pod(f"p{index}", 4) for index in range(9)]
        assert "" not in await run_pods(api, extender, *pods)
        assert await extender.used() == {"a": [12, 12], "b": [12]}
        for pod in pods:
            await api.drop_pod(f"default/{pod['metadata']['name']}")
        await eventually(lambda: _empty(extender))


@pytest.mark.parametrize(
    ("deleted", "end"),
    [
        pytest.param(
            True,
            {"phase": "Running", "containerStatuses": [{"state": {"terminated": {"exitCode": 0}}}]},
            id="of a pod that is being deleted",
        ),
        pytest.param(False, {"phase": "Succeeded"}, id="of a job"),
        pytest.param(False, {"phase": "Failed"}, id="of a job that is tried again"),
        pytest.param(False, {"phase": "Failed", "reason": "Evicted"}, id="of a pod that was evicted"),
    ],
)
async def test_a_newcomer_waits_until_the_containers_have_ended(
    api: FakeApi, extender: Extender, deleted: bool, end: Json
) -> None:
    await set_nodes(api, extender, a=(15,))
    assert await run_pods(api, extender, make_pod("old", 10)) == ["a"]
    old = api.pods["default/old"]
    if deleted:
        old["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    running = {"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]}
    for number, (status, want) in enumerate(((running, ["", 10]), (end, ["a", 10]))):
        old["status"] = status
        await api.set_pod(old)
        new = make_pod(f"new-{number}", 10)
        await api.set_pod(new)  # whoever knows this pod knows what was told before it
        await extender.seen(new)
        assert [await extender.schedule(new), (await extender.used())["a"][0]] == want


@pytest.mark.parametrize("seed", range(3))
async def test_pods_that_come_and_go_at_once_with_readers_pass_no_card(
    api: FakeApi, extender: Extender, seed: int
) -> None:
    """Eight that schedule and delete, and one that reads all the time: each answer is within the cards, the last is exact."""
    sizes = {"a": (15, 15), "b": (11, 24)}
    await set_nodes(api, extender, **sizes)
    placed: dict[str, int] = {}
    working = asyncio.Event()

    async def work(lane: int) -> None:
        order = random.Random(8 * seed + lane)
        for turn in range(8):
            pod = make_pod(f"p{lane}-{turn}", order.randint(1, 12))
            await api.set_pod(pod)
            if await extender.schedule(pod):
                placed[pod["metadata"]["name"]] = int(
                    pod["spec"]["containers"][0]["resources"]["limits"]["aliyun.com/gpu-mem"]
                )
            if order.random() < 0.6 and placed:
                name = order.choice(sorted(placed))
                placed.pop(name)
                await api.drop_pod(f"default/{name}")

    async def read() -> int:
        looks = 0
        while not working.is_set():
            used = await extender.used()
            assert all(0 <= held <= size for name in sizes for held, size in zip(used[name], sizes[name], strict=True))
            looks += 1
        return looks

    reader = asyncio.create_task(read())
    await asyncio.gather(*(work(lane) for lane in range(8)))
    working.set()

    assert await reader > 0
    await eventually(lambda: _holds(extender, sum(placed.values())))


async def _holds(extender: Extender, want: int) -> bool:
    return sum(sum(cards) for cards in (await extender.used()).values()) == want


async def _empty(extender: Extender) -> bool:
    return not any(sum(cards) for cards in (await extender.used()).values())
