# SPDX-License-Identifier: Apache-2.0
"""A pod that fits and that kube-scheduler does not ask about again is woken by a condition of its own."""

from collections.abc import Mapping
from itertools import pairwise

import pytest

from cgpu.core.errors import NotFoundError
from extender.books import Books
from extender.setbacks import Setbacks
from extender.verbs import Verbs
from extender.waker import AGAIN_SECONDS, AT_ONCE, PATIENCE_SECONDS, Waker
from tests.extender.conftest import Extender, eventually
from tests.extender.test_nominated import node_of, pod_of
from tests.fake_api import FakeApi, make_node, make_pod

NODES = ("a",)


class _Cluster:
    """Keeps who was woken; `gone`: pods that are no longer there."""

    def __init__(self) -> None:
        self.woken: list[str] = []
        self.gone: set[str] = set()

    async def patch_pod_condition(self, namespace: str, name: str, uid: str, condition: Mapping[str, str]) -> None:
        self.woken.append(name)
        if name in self.gone:
            raise NotFoundError(f"pods {name} not found")


class _Rig:
    """A node of one card of 15 GiB, full of pod `old`."""

    def __init__(self) -> None:
        self.now = 100.0
        self.books = Books()
        self.books.set_node(node_of("a", 15))
        self.old = pod_of("old", 15, holds={"GPU-a-0": 15})
        self.books.set_pod(self.old)
        self.verbs = Verbs(self.books, Setbacks())
        self.cluster = _Cluster()
        self.waker = Waker(self.cluster, self.verbs, clock=lambda: self.now, wall=lambda: 0.0)

    def refuse(self, name: str, size: int = 8) -> None:
        """A pod that waits, and whose filter just failed."""
        pod = pod_of(name, size)
        self.books.set_pod(pod)
        assert not self.verbs.filter(pod, ("a",), self.now).passed

    async def after(self, seconds: float) -> list[str]:
        """Who was woken by a round then."""
        self.now += seconds
        self.cluster.woken.clear()
        await self.waker.wake()
        return self.cluster.woken


async def test_a_pod_is_woken_once_its_room_has_been_there_for_a_while() -> None:
    rig = _Rig()
    rig.refuse("p")
    assert await rig.after(60) == []  # there is no room
    rig.books.drop_pod(rig.old.uid)
    assert await rig.after(0.5) == []  # kube-scheduler mostly comes by itself
    assert await rig.after(PATIENCE_SECONDS) == ["p"]
    assert await rig.after(1) == []
    assert await rig.after(AGAIN_SECONDS) == ["p"]


async def test_a_pod_that_stays_asleep_is_woken_less_and_less() -> None:
    """kube-scheduler's own rules keep it off the node, and it does not ask us."""
    rig = _Rig()
    rig.refuse("p")
    rig.books.drop_pod(rig.old.uid)
    times = [second for second in range(3600) if await rig.after(1)]
    pauses = [later - sooner for sooner, later in pairwise(times)]
    assert pauses == [30, 60, 120, 240, 480, 600, 600, 600, 600]


async def test_a_pod_that_was_asked_about_again_is_not_woken() -> None:
    rig = _Rig()
    rig.refuse("p")
    rig.books.drop_pod(rig.old.uid)
    await rig.after(0.5)
    assert rig.verbs.filter(pod_of("p", 8), NODES, rig.now).passed
    assert await rig.after(PATIENCE_SECONDS) == []


async def test_room_on_nodes_that_the_pods_own_rules_leave_out_wakes_nobody() -> None:
    rig = _Rig()
    rig.refuse("p")
    rig.books.set_node(node_of("b", 15))
    await rig.after(0.5)
    assert await rig.after(PATIENCE_SECONDS) == []


async def test_a_hold_that_ends_wakes_the_pod_that_it_kept_out() -> None:
    """No object changes when a hold ends, so kube-scheduler hears of nothing."""
    rig = _Rig()
    rig.books.drop_pod(rig.old.uid)
    assert rig.verbs.filter(pod_of("ghost", 15), NODES, rig.now).passed
    rig.refuse("p")
    assert await rig.after(1) == []
    await rig.after(1.5)
    assert await rig.after(PATIENCE_SECONDS) == ["p"]


@pytest.mark.parametrize("how", ["bound", "gone", "being deleted"])
async def test_a_pod_that_waits_no_more_is_left_alone(how: str) -> None:
    rig = _Rig()
    rig.refuse("p")
    rig.books.drop_pod(rig.old.uid)
    await rig.after(0.5)
    waiting = rig.books.waiting[pod_of("p", 8).uid]
    if how == "bound":
        rig.books.set_pod(pod_of("p", 8, holds={"GPU-a-0": 8}))
    elif how == "gone":
        rig.books.drop_pod(waiting.uid)
    else:
        rig.books.set_pod(pod_of("p", 8, deleting=True))
    assert await rig.after(PATIENCE_SECONDS) == []


async def test_of_many_pods_a_few_are_woken_at_once_and_a_failure_stops_none_of_them() -> None:
    rig = _Rig()
    names = [f"p{index}" for index in range(AT_ONCE + 1)]
    for name in names:
        rig.refuse(name)
    rig.books.drop_pod(rig.old.uid)
    rig.cluster.gone = {"p0"}
    await rig.after(0.5)
    assert await rig.after(PATIENCE_SECONDS) == names[:AT_ONCE]
    assert await rig.after(0.5) == names[AT_ONCE:]


async def test_the_running_extender_writes_the_condition(
    api: FakeApi, extender: Extender, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Room comes and nobody asks: kube-scheduler had heard of it before the pod was refused."""
    monkeypatch.setattr("extender.waker.PATIENCE_SECONDS", 0.1)
    await api.set_node(make_node("a", 15))
    await eventually(extender.used)
    old, new = make_pod("old", 15), make_pod("new", 8)
    for pod in (old, new):
        await api.set_pod(pod)
    assert await extender.schedule(old) == "a"
    assert await extender.schedule(new) == ""
    await api.drop_pod("default/old")
    await eventually(lambda: api.pods["default/new"]["status"].get("conditions"))
    assert await extender.schedule(api.pods["default/new"]) == "a"
    (condition,) = api.pods["default/new"]["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "cgpu.aliyun.com/RoomAgain",
        "True",
        "CardsFree",
    )
