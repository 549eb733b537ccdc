# SPDX-License-Identifier: Apache-2.0
"""bind when things go wrong: repeats, conflicts, lost answers; the books are right afterwards."""

import asyncio
import json

import pytest
from aiohttp import web

from cgpu.core.errors import ConflictError, NotFoundError, UnavailableError
from cgpu.core.model import Container, Pod
from cgpu.kube.objects import decode_node
from extender.binder import CONFIRM_SECONDS, Binder, Outcome, Result
from extender.books import Books
from extender.setbacks import Setbacks
from extender.verbs import Verbs
from extender.wire import BindRequest
from tests.extender.conftest import Extender, eventually
from tests.fake_api import FakeApi, Json, make_node, make_pod


async def _start(api: FakeApi, extender: Extender, *pods: Json) -> None:
    await api.set_node(make_node("a", 15))
    await api.set_node(make_node("b", 15))
    for pod in pods:
        await api.set_pod(pod)
        await extender.seen(pod)
    await eventually(lambda: _has_nodes(extender))


async def _has_nodes(extender: Extender) -> bool:
    return len(await extender.used()) == 2


async def test_a_repeat_succeeds_and_books_once(api: FakeApi, extender: Extender) -> None:
    pod = make_pod("p", 6)
    await _start(api, extender, pod)
    assert [await extender.bind(pod, "a") for _ in range(3)] == ["", "", ""]
    assert await asyncio.gather(*(extender.bind(pod, "a") for _ in range(5))) == [""] * 5
    assert await extender.used() == {"a": [6], "b": [0]}
    assert api.binds == 1


async def test_parallel_repeats_send_one_request(api: FakeApi, extender: Extender) -> None:
    pod = make_pod("p", 6)
    await _start(api, extender, pod)
    assert await asyncio.gather(*(extender.bind(pod, "a") for _ in range(8))) == [""] * 8
    assert api.binds == 1


async def test_another_node_for_a_bound_pod_is_refused(api: FakeApi, extender: Extender) -> None:
    pod = make_pod("p", 6)
    await _start(api, extender, pod)
    assert await extender.bind(pod, "a") == ""
    assert await extender.bind(pod, "b") == "pod default/p is bound to a already"
    assert await extender.used() == {"a": [6], "b": [0]}


async def test_a_pod_that_another_binder_took_is_handed_back(api: FakeApi, extender: Extender) -> None:
    pod = make_pod("p", 6)
    await _start(api, extender, pod)
    api.before_bind = lambda _: web.json_response({"code": 409, "message": "already assigned to node b"}, status=409)
    assert "already assigned to node b" in await extender.bind(pod, "a")
    assert await extender.used() == {"a": [0], "b": [0]}
    api.before_bind = lambda _: None
    assert await extender.bind(pod, "a") == ""


async def test_a_pod_that_was_replaced_is_not_bound(api: FakeApi, extender: Extender) -> None:
    old, new = make_pod("p", 6, uid="old"), make_pod("p", 6, uid="new")
    await _start(api, extender, new)
    assert "was replaced" in await extender.bind(old, "a")
    assert api.binds == 0


async def test_a_pod_that_is_gone_is_not_bound(api: FakeApi, extender: Extender) -> None:
    pod = make_pod("p", 6)
    await _start(api, extender)
    assert "404" in await extender.bind(pod, "a")
    assert await extender.used() == {"a": [0], "b": [0]}


async def test_a_lost_answer_is_looked_up(api: FakeApi, extender: Extender) -> None:
    """The binding was written, its answer was an error: the pod is where it is."""
    pod = make_pod("p", 6)
    await _start(api, extender, pod)
    api.mute = True
    api.after_bind = lambda _: web.json_response({"code": 500, "message": "etcd timed out"}, status=500)
    assert await extender.bind(pod, "a") == ""
    assert await extender.used() == {"a": [6], "b": [0]}


async def test_a_refused_write_keeps_the_cards_for_the_repeat(api: FakeApi, extender: Extender) -> None:
    pod, other = make_pod("p", 8), make_pod("other", 8)
    await _start(api, extender, pod, other)
    api.before_bind = lambda _: web.json_response({"code": 503, "message": "overloaded"}, status=503)
    assert "overloaded" in await extender.bind(pod, "a")
    assert "no single GPU has 8 GiB" in await extender.bind(other, "a")
    assert (await extender.filter(pod))["NodeNames"] == ["a", "b"]
    api.before_bind = lambda _: None
    assert await extender.bind(pod, "a") == ""
    assert await extender.used() == {"a": [8], "b": [0]}


async def test_a_node_where_binding_keeps_failing_is_left_to_others(api: FakeApi, extender: Extender) -> None:
    pod = make_pod("p", 6)
    await _start(api, extender, pod)
    refused = web.json_response
    api.before_bind = lambda body: (
        refused({"code": 409, "message": "no"}, status=409) if body["target"]["name"] == "a" else None
    )
    for _ in range(3):
        assert await extender.bind(pod, "a") != ""
    answer = await extender.filter(pod)
    assert answer["NodeNames"] == ["b"]
    assert "failed three times" in answer["FailedNodes"]["a"]
    assert (await extender.filter(pod, "a"))["NodeNames"] == ["a"]  # better than none
    assert (await extender.filter(make_pod("other", 6)))["NodeNames"] == ["a", "b"]


async def test_a_pod_without_our_resources_is_bound_without_annotations(api: FakeApi, extender: Extender) -> None:
    pod = make_pod("p", 0)
    await api.set_node(make_node("a", 15))
    await api.set_pod(pod)
    assert await extender.bind(pod, "a") == ""
    assert api.pods["default/p"]["metadata"]["annotations"] == {}


class _Cluster:
    """An API server whose answers are set by the test."""

    def __init__(self, *answers: UnavailableError | None, pod: Pod | UnavailableError) -> None:
        self.answers = list(answers)
        self.pod = pod
        self.annotations: list[dict[str, str]] = []

    async def get_pod(self, namespace: str, name: str) -> Pod:
        if isinstance(self.pod, UnavailableError):
            raise self.pod
        return self.pod

    async def bind(self, namespace: str, name: str, uid: str, node: str, annotations: dict[str, str]) -> None:
        self.annotations.append(dict(annotations))
        answer = self.answers.pop(0)
        if answer is not None:
            raise answer


PENDING = Pod("u", "default", "p", (Container("app0", mem="6"),))
REQUEST = BindRequest("default", "p", "u", "a")


def _binder(cluster: _Cluster, now: list[float]) -> tuple[Binder, Books]:
    books = Books()
    for name in ("a", "b"):
        books.set_node(decode_node(json.dumps(make_node(name, 15, 15)).encode()))
    books.set_pod(PENDING)
    verbs = Verbs(books, Setbacks())
    return Binder(cluster, verbs, Setbacks(), clock=lambda: now[0], unix_ns=lambda: 1), books  # type: ignore[arg-type]


GONE = NotFoundError("no such pod")
DOWN = UnavailableError("no answer")


@pytest.mark.parametrize(
    ("later", "want"),
    [
        pytest.param(PENDING, 0, id="it never happened: the cards are free again"),
        pytest.param(GONE, 0, id="the pod is gone"),
        pytest.param(DOWN, 6, id="still nobody knows: the cards stay reserved"),
    ],
)
async def test_an_outcome_that_nobody_saw_is_settled_later(later: Pod | UnavailableError, want: int) -> None:
    now = [0.0]
    cluster = _Cluster(DOWN, pod=DOWN)
    binder, books = _binder(cluster, now)
    assert (await binder.bind(REQUEST)).result is Result.FAILED
    cluster.pod = later
    await binder.settle()
    assert books.state("a").used == 6  # not yet: the request may still be on its way
    now[0] = CONFIRM_SECONDS
    await binder.settle()
    assert books.state("a").used == want


async def test_after_an_unknown_outcome_the_same_cards_are_written_again() -> None:
    cluster = _Cluster(DOWN, None, pod=DOWN)
    binder, _ = _binder(cluster, [0.0])
    await binder.bind(REQUEST)
    assert await binder.bind(REQUEST) == Outcome(Result.BOUND)
    assert cluster.annotations[0] == cluster.annotations[1]


async def test_after_an_unknown_outcome_another_node_leaves_the_first_cards_reserved() -> None:
    cluster = _Cluster(DOWN, None, pod=DOWN)
    binder, books = _binder(cluster, [0.0])
    await binder.bind(REQUEST)
    assert (await binder.bind(BindRequest("default", "p", "u", "b"))).error == ""
    held = books.holds_by_node(1.0)
    assert [card.mem for card in books.state_for("a", "x", held["a"]).cards] == [6, 0]
    assert books.state("b").used == 6


async def test_a_conflict_that_turns_out_to_be_our_own_binding_is_a_success() -> None:
    cluster = _Cluster(ConflictError("already assigned"), pod=PENDING)
    binder, books = _binder(cluster, [0.0])
    allocation = '{"app0":{"GPU-a-1":{"mem":6}}}'
    cluster.pod = Pod(
        "u", "default", "p", PENDING.containers, node="a", annotations={"cgpu.aliyun.com/allocation": allocation}
    )
    assert (await binder.bind(REQUEST)).error == ""
    assert [card.mem for card in books.state("a").cards] == [0, 6]
