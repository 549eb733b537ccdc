# SPDX-License-Identifier: Apache-2.0
"""The node's half of a live resize, through the whole plugin: annotations in, kernel limits and answers out."""

from collections.abc import Callable
from typing import Any

import pytest

from cgpu.core.errors import UnavailableError
from cgpu.core.names import ANNOTATION_RESIZE_REQUEST, ANNOTATION_RESIZE_STATUS, ANNOTATION_RESIZED
from cgpu.core.resize import encode_sizes
from tests.deviceplugin.conftest import Bench, bound, until
from tests.fake_instances import FolderInstances
from tests.fakes import Wire, wire_pod


class Stage:
    """A node in mode cgpu with one running pod of 6 GiB."""

    def __init__(self, node: Bench) -> None:
        self.node = node
        self.module = FolderInstances(node.folder / "instances")
        self.pod: Wire = bound(wire_pod("one", 6), app0=0)

    async def start(self) -> None:
        self.node.api.label(schedule="cgpu")
        await self.node.start(self.module)
        await self.node.ready(28)
        await self.node.run(self.pod, "app0")

    def write(self, **sizes: int | str | None) -> None:
        """request, resized or status, as the user and the extender write them."""
        keys = {"request": ANNOTATION_RESIZE_REQUEST, "resized": ANNOTATION_RESIZED, "status": ANNOTATION_RESIZE_STATUS}
        texts = {
            keys[name]: encode_sizes({"app0": value}) if isinstance(value, int) else value
            for name, value in sizes.items()
        }
        self.node.api.annotate(self.pod, texts)

    @property
    def size(self) -> int:
        [row] = self.module.made()
        return int(row["mem"][0])

    @property
    def status(self) -> str:
        return str(self.pod["metadata"]["annotations"].get(ANNOTATION_RESIZE_STATUS, ""))

    async def until(self, true: Callable[[], Any]) -> None:
        await until(true, f"{self.size} GiB, {self.status!r}")


@pytest.fixture
async def stage(node: Bench) -> Stage:
    made = Stage(node)
    await made.start()
    return made


async def test_a_share_grows_when_the_books_have_grown(stage: Stage) -> None:
    stage.write(request=8)
    stage.write(resized=8)

    await stage.until(lambda: stage.status == "applied")
    assert stage.size == 8


async def test_a_share_shrinks_before_the_books_do_and_a_restart_keeps_that(stage: Stage) -> None:
    stage.write(request=4)
    await stage.until(lambda: stage.status == 'limited: {"app0":{"mem":4}}')
    assert stage.size == 4

    [env] = [await stage.node.kubelet.run_container(stage.pod, "app0")]

    assert (stage.size, env["ALIYUN_COM_GPU_MEM_CONTAINER"]) == (4, "4")


async def test_a_share_in_use_does_not_shrink(stage: Stage) -> None:
    stage.module.used = 5
    stage.write(request=4)

    await stage.until(lambda: stage.status.startswith('refused: {"app0":{"mem":4}}: 4 GiB are refused'))
    assert stage.size == 6


async def test_what_the_kernel_does_not_give_goes_back_to_the_books(stage: Stage) -> None:
    stage.module.most = 7
    stage.write(request=8)
    stage.write(resized=8)

    await stage.until(lambda: stage.status.startswith('limited: {"app0":{"mem":6}}: 8 GiB are refused'))
    stage.write(resized=6, status='refused: {"app0":{"mem":8}}: it was refused')
    await stage.node.kubelet.run_container(stage.pod, "app0")
    assert stage.size == 6


async def test_a_plugin_that_was_killed_half_way_goes_on(stage: Stage) -> None:
    await stage.node.stop()
    stage.write(request=8)
    stage.write(resized=8)

    await stage.node.start(stage.module)

    await stage.until(lambda: stage.status == "applied")
    assert stage.size == 8


async def test_an_api_server_that_is_away_is_told_later(stage: Stage) -> None:
    stage.node.api.fail = UnavailableError("away")
    stage.write(request=4)
    await stage.until(lambda: stage.size == 4)
    stage.node.api.fail = None

    await stage.until(lambda: stage.status.startswith("limited"))
