# SPDX-License-Identifier: Apache-2.0
"""The books stay right whatever happens to watches and processes."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.extender.conftest import Extender, eventually, free_port, running
from tests.fake_api import FakeApi, Json, make_node, make_pod


def bound(name: str, mem: int, node: str = "a", card: int = 0) -> Json:
    """A pod as it is after its binding."""
    return make_pod(
        name,
        mem,
        node=node,
        annotations={"cgpu.aliyun.com/allocation": f'{{"app0":{{"GPU-{node}-{card}":{{"mem":{mem},"core":0}}}}}}'},
    )


async def _uses(extender: Extender, **want: list[int]) -> None:
    async def equal() -> bool:
        return await extender.used() == want

    await eventually(equal)


async def test_the_books_are_rebuilt_from_annotations_at_start(api: FakeApi, tmp_path: Path) -> None:
    await api.set_node(make_node("a", 15, 15))
    api.page_size = 3
    for index in range(10):
        await api.set_pod(bound(f"p{index}", 1, card=index % 2))
    await api.set_pod(bound("elsewhere", 3, node="deleted"))
    async with running(api, tmp_path) as extender:
        assert await extender.used() == {"a": [5, 5]}


async def test_an_extender_that_comes_back_has_the_books_of_before(api: FakeApi, tmp_path: Path) -> None:
    await api.set_node(make_node("a", 15, 15))
    pods = [make_pod(f"p{index}", 4) for index in range(6)]
    for pod in pods:
        await api.set_pod(pod)
    async with running(api, tmp_path) as extender:
        assert [await extender.schedule(pod) for pod in pods[:3]] == ["a"] * 3
        before = await extender.used()
    async with running(api, tmp_path) as extender:
        assert await extender.used() == before
        assert [await extender.schedule(pod) for pod in pods[3:]] == ["a"] * 3


@pytest.mark.parametrize("how", ["cut", "410"])
async def test_a_watch_that_ends_is_taken_up_again(api: FakeApi, extender: Extender, how: str) -> None:
    await api.set_node(make_node("a", 15))
    await _uses(extender, a=[0])
    if how == "410":
        api.expire()
    await api.cut_watches()
    await api.set_pod(bound("p", 6))
    await _uses(extender, a=[6])
    await api.cut_watches()
    await api.drop_pod("default/p")
    await _uses(extender, a=[0])


async def test_changes_while_no_watch_listens_are_seen_by_the_next_list(api: FakeApi, extender: Extender) -> None:
    await api.set_node(make_node("a", 15))
    await api.set_node(make_node("b", 15))
    await api.set_pod(bound("p", 6))
    await _uses(extender, a=[6], b=[0])
    api.mute = True
    await api.drop_pod("default/p")
    await api.drop_node("b")
    await api.set_pod(bound("q", 4))
    api.mute = False
    api.expire()
    await api.cut_watches()
    await _uses(extender, a=[4])


async def test_events_that_a_watch_skips_are_found_by_comparison(
    api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred pods come and go with events missing: the books are exact again without a restart."""
    monkeypatch.setattr("extender.cache.GRACE_SECONDS", 0.2)
    await api.set_node(make_node("a", 200))
    async with running(api, tmp_path, compare_seconds=1) as extender:
        for index in range(100):
            api.mute = index % 3 == 0
            await api.set_pod(bound(f"p{index}", 1))
            if index % 2:
                api.mute = index % 5 == 0
                await api.drop_pod(f"default/p{index}")
        api.mute = False
        await _uses(extender, a=[50])
        for index in range(0, 100, 2):
            api.mute = index % 4 == 0
            await api.drop_pod(f"default/p{index}")
        await _uses(extender, a=[0])
        seen = await extender.get("/metrics")
        assert "cgpu_extender_books_drift_bytes" in seen


async def test_a_changed_record_raises_the_drift_and_changes_no_books(api: FakeApi, extender: Extender) -> None:
    await api.set_node(make_node("a", 15, 15))
    await api.set_pod(bound("p", 6, card=0))
    await _uses(extender, a=[6, 0])
    await api.set_pod(bound("p", 6, card=1))
    await eventually(lambda: _drifts(extender, 6 << 30))
    assert await extender.used() == {"a": [6, 0]}


async def _drifts(extender: Extender, want: int) -> bool:
    metrics = await extender.get("/metrics")
    found = [line for line in metrics.splitlines() if line.startswith("cgpu_extender_books_drift_bytes ")]
    return float(found[0].split()[1]) == want


async def test_nothing_on_the_way_of_a_pod_lists(api: FakeApi, extender: Extender) -> None:
    await api.set_node(make_node("a", 40, 40))
    await _uses(extender, a=[0, 0])
    lists = api.lists
    pods = [make_pod(f"p{index}", 2) for index in range(30)]
    for pod in pods:
        await api.set_pod(pod)
    assert await asyncio.gather(*(extender.schedule(pod) for pod in pods)) == ["a"] * 30
    assert api.lists == lists


async def test_the_process_is_ready_only_with_its_books_and_ends_on_a_signal(api: FakeApi, tmp_path: Path) -> None:
    """The real process, killed and started again while pods come."""
    await api.set_node(make_node("a", 15))
    verbs, reads = free_port(), free_port()
    command = [
        sys.executable,
        "-m",
        "extender",
        f"--kubeconfig={tmp_path / 'kubeconfig'}",
        f"--verb-address=127.0.0.1:{verbs}",
        f"--read-address=127.0.0.1:{reads}",
    ]
    for number, want in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, 0)):
        await api.set_pod(bound(f"p{int(number)}", 3))
        process = await asyncio.create_subprocess_exec(*command, env={**os.environ, "PYTHONPATH": "."})
        ready = await eventually(lambda: _used_of(reads))
        assert ready == f'{{"nodes":[{{"name":"a","totalGPU":15,"usedGPU":{3 * len(api.pods)}'
        process.send_signal(number)
        assert await process.wait() == want


async def _used_of(port: int) -> str:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return ""
    try:
        writer.write(b"GET /readyz HTTP/1.0\r\n\r\n")
        if b" 200 " not in (await reader.read()).partition(b"\r\n")[0]:
            return ""
    finally:
        writer.close()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /gpushare-scheduler/inspect HTTP/1.0\r\n\r\n")
    answer = (await reader.read()).decode()
    writer.close()
    return answer.partition("\r\n\r\n")[2].partition(',"devs"')[0]
