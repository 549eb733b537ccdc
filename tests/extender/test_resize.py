# SPDX-License-Identifier: Apache-2.0
"""The books' half of a live resize, through the whole extender on an API server over HTTP."""

import json
import socket
from pathlib import Path

import pytest

from cgpu.core.names import ANNOTATION_RESIZE_REQUEST, ANNOTATION_RESIZE_STATUS, ANNOTATION_RESIZED
from cgpu.core.resize import encode_sizes
from tests.extender.conftest import Extender, eventually, running
from tests.fake_api import FakeApi, Json, make_node, make_pod


def size(mem: int) -> str:
    return encode_sizes({"app0": mem})


async def annotate(api: FakeApi, name: str, **texts: str) -> None:
    """request, resized or status of a pod."""
    keys = {"request": ANNOTATION_RESIZE_REQUEST, "resized": ANNOTATION_RESIZED, "status": ANNOTATION_RESIZE_STATUS}
    pod = json.loads(json.dumps(api.pods[f"default/{name}"]))
    pod["metadata"]["annotations"] |= {keys[key]: text for key, text in texts.items()}
    await api.set_pod(pod)


def annotation(api: FakeApi, name: str, key: str) -> str:
    return str(api.pods[f"default/{name}"]["metadata"]["annotations"].get(key, ""))


async def placed(extender: Extender, name: str, mem: int) -> Json:
    """A bound, running pod."""
    pod = make_pod(name, mem)
    await extender.api.set_pod(pod)
    await extender.seen(pod)
    assert await extender.schedule(pod)
    running_pod = json.loads(json.dumps(extender.api.pods[f"default/{name}"]))
    running_pod["status"]["phase"] = "Running"
    await extender.api.set_pod(running_pod)
    return pod


@pytest.fixture
async def card(extender: Extender) -> Extender:
    """One card of 14 GiB with two pods of 6."""
    await extender.api.set_node(make_node("node-a", 14))
    await eventually(extender.used)
    for name in ("one", "two"):
        await placed(extender, name, 6)
    return extender


async def test_a_share_grows_into_free_room_and_no_further(card: Extender) -> None:
    api = card.api
    await annotate(api, "one", request=size(8))

    await eventually(lambda: annotation(api, "one", ANNOTATION_RESIZED) == size(8))
    assert annotation(api, "one", ANNOTATION_RESIZE_STATUS) == ""
    assert await card.used() == {"node-a": [14]}
    await annotate(api, "two", request=size(7))
    refused = f"refused: {size(7)}: GPU 0 of node-a has 0 GiB free and 1 more are asked for"
    await eventually(lambda: annotation(api, "two", ANNOTATION_RESIZE_STATUS) == refused)
    assert annotation(api, "two", ANNOTATION_RESIZED) == ""


async def test_two_that_want_the_last_room_do_not_both_get_it(card: Extender) -> None:
    for name in ("one", "two"):
        await annotate(card.api, name, request=size(8))

    await eventually(
        lambda: all(
            annotation(card.api, name, ANNOTATION_RESIZED) or annotation(card.api, name, ANNOTATION_RESIZE_STATUS)
            for name in ("one", "two")
        )
    )
    assert sorted(annotation(card.api, name, ANNOTATION_RESIZED) for name in ("one", "two")) == ["", size(8)]


async def test_the_books_come_down_when_the_kernel_has(card: Extender) -> None:
    await annotate(card.api, "one", request=size(2), status=f"limited: {size(2)}")

    await eventually(lambda: annotation(card.api, "one", ANNOTATION_RESIZE_STATUS) == "applied")
    assert annotation(card.api, "one", ANNOTATION_RESIZED) == size(2)
    assert await card.used() == {"node-a": [8]}
    await annotate(card.api, "two", request=size(12))
    await eventually(lambda: annotation(card.api, "two", ANNOTATION_RESIZED) == size(12))


async def test_what_the_kernel_refused_goes_back(card: Extender) -> None:
    await annotate(card.api, "one", request=size(8), resized=size(8), status=f"limited: {size(6)}: no room")

    await eventually(lambda: annotation(card.api, "one", ANNOTATION_RESIZE_STATUS) == f"refused: {size(8)}: no room")
    assert annotation(card.api, "one", ANNOTATION_RESIZED) == size(6)


async def test_only_the_extender_beside_the_leading_scheduler_books(api: FakeApi, tmp_path: Path) -> None:
    async with running(api, tmp_path, lease="kube-system/ours") as extender:
        api.leader = "another-host_0f"
        await api.set_node(make_node("node-a", 14))
        await eventually(extender.used)
        await placed(extender, "one", 6)
        await annotate(api, "one", request=size(8))
        await eventually(lambda: api.leases)
        assert annotation(api, "one", ANNOTATION_RESIZED) == ""

        api.leader = f"{socket.gethostname()}_0f"
        await annotate(api, "one", request=size(9))
        await eventually(lambda: annotation(api, "one", ANNOTATION_RESIZED) == size(9))
