# SPDX-License-Identifier: Apache-2.0
"""The card that victims leave is kept for the pod they left it for."""

import json
from typing import Any

import pytest

from cgpu.core.model import Node, Pod
from cgpu.kube.objects import decode_node, decode_pod
from extender.books import Books
from extender.preempt import preempt
from extender.setbacks import Setbacks
from extender.verbs import Verbs
from extender.wire import PreemptRequest, Victims
from tests.fake_api import make_node, make_pod

NOW = 100.0


def node_of(name: str, *units: int, placement: str = "binpack") -> Node:
    """A node as the watch brings it."""
    return decode_node(json.dumps(make_node(name, *units, labels={"ack.node.gpu.placement": placement})).encode())


def pod_of(name: str, *mem: int, holds: dict[str, int] | None = None, deleting: bool = False, **fields: Any) -> Pod:
    """A pod as the watch brings it; `holds`: card UUID → GiB on node a."""
    if holds is not None:
        shares = {uuid: {"mem": size} for uuid, size in holds.items()}
        fields |= {"node": "a", "annotations": {"cgpu.aliyun.com/allocation": json.dumps({"app0": shares})}}
    wire = make_pod(name, *mem, **fields)
    if deleting:
        wire["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return decode_pod(json.dumps(wire).encode())


def _verbs(*pods: Pod, placement: str = "spread") -> Verbs:
    """Node a with two cards of 14 GiB; spread would take the emptier card."""
    books = Books()
    books.set_node(node_of("a", 14, 14, placement=placement))
    for pod in pods:
        books.set_pod(pod)
    return Verbs(books, Setbacks())


def _preempt(verbs: Verbs, pod: Pod, *victims: Pod, now: float = NOW) -> list[str]:
    """Names of the victims on node a."""
    request = PreemptRequest(pod, {"a": Victims(tuple(victim.uid for victim in victims))})
    names = {booking.pod.uid: booking.pod.name for booking in verbs.books.bookings("a")}
    found = preempt(verbs, request, now)
    return sorted(names[uid] for uid in found["a"].uids) if "a" in found else []


HIGH = pod_of("high", 14, priority=1000, nominated="a")
HALF = pod_of("half", 7, holds={"GPU-a-1": 7})  # card 1 is half full, card 0 was emptied for `high`


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(pod_of("low", 7), {"GPU-a-1"}, id="a lower pod takes the other card, against its policy"),
        pytest.param(pod_of("low", 8), None, id="or none, where only the kept card has room"),
        pytest.param(pod_of("equal", 8, priority=1000), None, id="an equal pod that is not nominated waits too"),
        pytest.param(
            pod_of("equal", 8, priority=1000, nominated="a"),
            {"GPU-a-0"},
            id="two nominated ones never block each other",
        ),
        pytest.param(pod_of("higher", 8, priority=2000), {"GPU-a-0"}, id="a higher pod takes what it needs"),
        pytest.param(HIGH, {"GPU-a-0"}, id="the nominated pod itself"),
    ],
)
def test_the_freed_card_is_kept_for_the_nominated_pod(pod: Pod, want: set[str] | None) -> None:
    verbs = _verbs(HALF, HIGH, pod)
    assert verbs.filter(pod, ("a",), NOW).passed == (["a"] if want else [])
    claim_cards = verbs.books.holds_by_node(NOW).get("a", [])
    assert {uuid for hold in claim_cards for uuid in hold.holdings} == (want or set())


def test_it_is_kept_while_the_victims_are_still_leaving() -> None:
    victims = [pod_of(f"v{index}", 7, holds={"GPU-a-0": 7}) for index in range(2)]
    verbs = _verbs(*victims, pod_of("high", 14, priority=1000))
    assert _preempt(verbs, pod_of("high", 14, priority=1000), *victims) == ["v0", "v1"]
    verbs.books.set_pod(HIGH)
    verbs.books.drop_pod(victims[0].uid)  # seven GiB of card 0 are free, and promised
    low = pod_of("low", 7)
    assert verbs.filter(low, ("a",), NOW).passed == ["a"]
    assert [set(hold.holdings) for hold in verbs.books.holds_by_node(NOW)["a"]] == [{"GPU-a-1"}]
    late = pod_of("late", 8)
    assert verbs.filter(late, ("a",), NOW).passed == []


def test_after_a_restart_pods_that_are_being_deleted_show_the_promise() -> None:
    leaving = pod_of("leaving", 14, holds={"GPU-a-0": 14}, deleting=True)
    verbs = _verbs(leaving, HALF, HIGH)
    verbs.books.drop_pod(leaving.uid)
    assert verbs.filter(pod_of("low", 8), ("a",), NOW).passed == []


def test_a_promise_ends_with_the_nomination() -> None:
    verbs = _verbs(HALF, HIGH)
    low = pod_of("low", 8)
    assert verbs.filter(low, ("a",), NOW).passed == []
    verbs.books.set_pod(pod_of("high", 14, priority=1000))
    assert verbs.filter(low, ("a",), NOW).passed == ["a"]
    verbs.books.release(low.uid)
    verbs.books.set_pod(HIGH)
    assert verbs.filter(low, ("a",), NOW).passed == []
    verbs.books.drop_pod(HIGH.uid)
    assert verbs.filter(low, ("a",), NOW).passed == ["a"]
    assert verbs.books.nominated == {}


def test_a_second_preemptor_frees_the_other_card() -> None:
    """Pods that leave for the first cost nothing, and are no help to the second."""
    first = [pod_of(f"v{index}", 7, holds={"GPU-a-0": 7}, deleting=True) for index in range(2)]
    second = [pod_of(f"w{index}", 7, holds={"GPU-a-1": 7}) for index in range(2)]
    verbs = _verbs(*first, *second, HIGH)
    also = pod_of("also", 14, priority=1000)
    assert _preempt(verbs, also, *first, *second) == ["w0", "w1"]


@pytest.mark.parametrize(
    ("later", "want"),
    [
        pytest.param(1.0, [], id="kube-scheduler only has not heard of it yet"),
        pytest.param(60.0, ["w0"], id="what it proposes much later has another cause"),
    ],
)
def test_no_more_pods_are_evicted_once_the_victims_have_left(later: float, want: list[str]) -> None:
    victims = [pod_of(f"v{index}", 7, holds={"GPU-a-0": 7}) for index in range(2)]
    others = [pod_of(f"w{index}", 7, holds={"GPU-a-1": 7}) for index in range(2)]
    verbs = _verbs(*victims, *others)
    assert _preempt(verbs, HIGH, *victims) == ["v0", "v1"]
    for victim in victims:
        verbs.books.drop_pod(victim.uid)
    assert _preempt(verbs, HIGH, others[0], now=NOW + later) == want
