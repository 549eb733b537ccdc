# SPDX-License-Identifier: Apache-2.0
"""`kubectl inspect cgpu resize` against an API server over real HTTP, with hands that answer as our services do."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from cgpu.cli.inspect import main
from cgpu.core.annotations import encode_allocation
from cgpu.core.model import Share
from cgpu.core.names import (
    ANNOTATION_ALLOCATION,
    ANNOTATION_RESIZE_REQUEST,
    ANNOTATION_RESIZE_STATUS,
    ANNOTATION_RESIZED,
)
from cgpu.core.resize import encode_sizes
from tests.extender.conftest import eventually
from tests.fake_api import FakeApi, make_pod, serving


@pytest.fixture
async def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FakeApi]:
    """A running pod with 4 GiB on each of two cards, one with two containers, and one that is not bound."""
    async with serving(tmp_path / "kubeconfig") as fake:
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        two = {"app0": {"GPU-0": Share(4), "GPU-1": Share(4)}}
        labels = {"aliyun.com/gpu-count": "2"}
        written = {ANNOTATION_ALLOCATION: encode_allocation(two)}
        await fake.set_pod(make_pod("wide", 8, node="node-a", labels=labels, annotations=written))
        pair = {"app0": {"GPU-0": Share(2)}, "app1": {"GPU-0": Share(3)}}
        written = {ANNOTATION_ALLOCATION: encode_allocation(pair)}
        await fake.set_pod(make_pod("pair", 2, 3, node="node-a", annotations=written))
        await fake.set_pod(make_pod("waits", 2))
        yield fake


async def answer(api: FakeApi, key: str, wish: str, **texts: str | None) -> None:
    """Write what the services would as soon as the wish is there; without a wish, take back the refusal."""
    keys = {"resized": ANNOTATION_RESIZED, "status": ANNOTATION_RESIZE_STATUS}
    await eventually(lambda: api.pods[key]["metadata"]["annotations"].get(ANNOTATION_RESIZE_REQUEST, "") == wish)
    pod = json.loads(json.dumps(api.pods[key]))
    annotations = {**pod["metadata"]["annotations"], **{keys[name]: text for name, text in texts.items()}}
    pod["metadata"]["annotations"] = {name: text for name, text in annotations.items() if text is not None}
    await api.set_pod(pod)


async def resize(*words: str) -> int:
    """The command, in a thread of its own because it has its own event loop; argparse ends it for usage."""

    def call() -> int:
        with suppress(SystemExit):
            return main(["resize", *words])
        return 2

    return await asyncio.to_thread(call)


async def test_the_command_ends_when_kernel_and_books_have_the_new_size(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    wish = encode_sizes({"app0": 6})
    both = asyncio.gather(resize("wide", "--gpu-mem", "6"), answer(api, "default/wide", wish, resized=wish))
    await answer(api, "default/wide", wish, resized=wish, status="applied")

    assert (await both)[0] == 0
    assert capsys.readouterr().out == "default/wide: container app0: 8 GiB -> 6 GiB\n"


async def test_a_refusal_is_told_and_can_be_asked_for_again(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    wish = encode_sizes({"app1": 9})
    words = ("default/pair", "--container", "app1", "--gpu-mem", "9")
    refused = f"refused: {wish}: GPU 0 is full"
    assert (await asyncio.gather(resize(*words), answer(api, "default/pair", wish, status=refused)))[0] == 1
    assert f"default/pair keeps its size: {refused}" in capsys.readouterr().err

    again = asyncio.create_task(resize(*words))
    await answer(api, "default/pair", "", status=None)
    await answer(api, "default/pair", wish, resized=wish, status="applied")

    assert await again == 0


async def test_nobody_who_answers_is_told_too(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    assert await resize("wide", "--gpu-mem", "6", "--timeout", "0.1") == 1

    assert "not done yet (nobody has answered yet)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "status", "why"),
    [
        pytest.param(("wide", "--gpu-mem", "7"), 2, "--gpu-mem 7: a multiple of 2", id="two cards"),
        pytest.param(("wide", "--gpu-mem", "0"), 2, "1 GiB a card at least", id="nothing"),
        pytest.param(
            ("pair", "--gpu-mem", "4"), 2, "--container is missing: pod default/pair has app0, app1", id="whose"
        ),
        pytest.param(("pair", "--container=x", "--gpu-mem", "4"), 2, "--container x: no such share", id="nobody"),
        pytest.param(("waits", "--gpu-mem", "4"), 2, "pod default/waits holds no share of a GPU", id="not bound"),
        pytest.param(("gone", "--gpu-mem", "4"), 1, "pods not found", id="no such pod"),
        pytest.param(("wide",), 2, "--gpu-mem", id="no size"),
    ],
)
async def test_a_wrong_wish_is_told_before_it_is_written(
    api: FakeApi, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], status: int, why: str
) -> None:
    assert await resize(*words) == status

    assert why in capsys.readouterr().err
    assert not any(ANNOTATION_RESIZE_REQUEST in pod["metadata"]["annotations"] for pod in api.pods.values())
