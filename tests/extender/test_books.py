# SPDX-License-Identifier: Apache-2.0
"""Books: every pod counts once, whatever order the news comes in, and nothing leaks."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgpu.core.model import Node, Pod, Share
from cgpu.core.usage import Holding
from cgpu.kube.objects import decode_node, decode_pod
from extender.books import Booking, Books, Hold
from extender.setbacks import SHUT_SECONDS, Setbacks
from tests.fake_api import Json, make_node, make_pod


def _node(name: str, *units: int, **change: Any) -> Node:
    return decode_node(json.dumps(make_node(name, *units, **change)).encode())


def _pod(name: str, *mem: int, card: str = "", **fields: Any) -> Pod:
    if card:
        allocation = {f"app{index}": {card: {"mem": size}} for index, size in enumerate(mem)}
        fields["annotations"] = {"cgpu.aliyun.com/allocation": json.dumps(allocation)}
        fields.setdefault("node", "a")
    return decode_pod(json.dumps(_changed(make_pod(name, *mem, **fields), fields)).encode())


def _changed(pod: Json, fields: Json) -> Json:
    pod["status"] = fields.get("status", pod["status"])
    if fields.get("deleting"):
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return pod


def _used(books: Books, name: str = "a") -> list[int]:
    return [card.mem for card in books.state(name).cards]


TERMINATED = {"state": {"terminated": {"exitCode": 0}}}
RUNNING = {"state": {"running": {}}}


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(_pod("p", 6, card="GPU-a-0"), 6, id="a bound pod by its annotation"),
        pytest.param(_pod("p", 2, 3, card="GPU-a-0"), 5, id="two containers add up"),
        pytest.param(_pod("p", 6), 0, id="a pod without a node holds nothing"),
        pytest.param(
            _pod("p", 6, annotations={"cgpu.aliyun.com/allocation": '{"app0":{"GPU-a-0":{"mem":6}}}'}),
            0,
            id="annotations on an unbound pod are ignored: a user may have written them",
        ),
        pytest.param(_pod("p", 6, node="a"), 0, id="a pod with nodeName and no annotation was given nothing"),
        pytest.param(_pod("p", 6, card="GPU-a-0", status={"phase": "Succeeded"}), 0, id="succeeded"),
        pytest.param(_pod("p", 6, card="GPU-a-0", status={"phase": "Failed"}), 0, id="failed or evicted"),
        pytest.param(
            _pod("p", 6, card="GPU-a-0", deleting=True, status={"phase": "Running", "containerStatuses": [RUNNING]}),
            6,
            id="deleted, still running: the memory is in use",
        ),
        pytest.param(
            _pod("p", 6, card="GPU-a-0", deleting=True, status={"phase": "Running", "containerStatuses": [TERMINATED]}),
            0,
            id="deleted and its containers have ended",
        ),
        pytest.param(
            _pod("p", 6, card="GPU-a-0", status={"phase": "Running", "containerStatuses": [TERMINATED]}),
            6,
            id="between two restarts",
        ),
        pytest.param(
            _pod("p", 6, card="GPU-a-0", labels={"cgpu.aliyun.com/ignore": "true"}),
            0,
            id="a pod that opted out: nobody has checked who wrote its annotation",
        ),
        pytest.param(_pod("p", 6, card="GPU-gone"), 0, id="on a card that the node has no more"),
        pytest.param(
            _pod("p", 6, node="a", annotations={"ALIYUN_COM_GPU_MEM_IDX": "0"}), 6, id="by the older annotation"
        ),
        pytest.param(
            _pod("p", 6, node="a", annotations={"scheduler.framework.gpushare.allocation": '{"0":{"0":6}}'}),
            6,
            id="by the scheduler framework's annotation",
        ),
        pytest.param(
            _pod("p", 6, node="a", annotations={"cgpu.aliyun.com/allocation": "{"}), 0, id="a record that is no JSON"
        ),
    ],
)
def test_what_a_pod_holds(pod: Pod, want: int) -> None:
    for first in ("node", "pod"):
        books = Books()
        steps = {
            "node": lambda books=books: books.set_node(_node("a", 15)),
            "pod": lambda books=books: books.set_pod(pod),
        }
        steps.pop(first)()
        steps.popitem()[1]()
        assert _used(books) == [want]


@given(st.permutations(range(6)), st.lists(st.integers(0, 5), max_size=6))
def test_order_and_repetition_do_not_matter(order: list[int], again: list[int]) -> None:
    pods = [_pod(f"p{index}", index + 1, card=f"GPU-a-{index % 2}") for index in range(6)]
    books = Books()
    books.set_node(_node("a", 30, 30))
    for index in (*order, *again):
        books.set_pod(pods[index])
    assert _used(books) == [1 + 3 + 5, 2 + 4 + 6]
    for index in order:
        books.drop_pod(pods[index].uid)
    assert _used(books) == [0, 0]


def test_a_bind_and_its_watch_event_count_once() -> None:
    books = Books()
    books.set_node(_node("a", 15))
    bound = _pod("p", 6, card="GPU-a-0")
    books.assume(Booking(_pod("p", 6), "a", {"app0": {"GPU-a-0": Share(6)}}, {"GPU-a-0": Holding(6, 0, 1)}))
    assert _used(books) == [6]
    for _ in range(2):
        books.set_pod(bound)
        assert _used(books) == [6]
    books.set_pod(_pod("p", 6))  # news from before the binding, late
    assert _used(books) == [6]
    assert not books.waiting


def test_a_pod_that_took_the_name_of_a_missed_one_replaces_it() -> None:
    books = Books()
    books.set_node(_node("a", 15))
    books.set_pod(_pod("p", 6, card="GPU-a-0", uid="old"))
    books.set_pod(_pod("p", 4, card="GPU-a-0", uid="new"))
    assert _used(books) == [4]
    books.drop_pod("new")
    assert _used(books) == [0]


def test_a_record_changed_after_the_binding_changes_no_books() -> None:
    books = Books()
    books.set_node(_node("a", 15, 15))
    books.set_pod(_pod("p", 6, card="GPU-a-0"))
    books.set_pod(_pod("p", 6, card="GPU-a-1"))
    assert _used(books) == [6, 0]
    assert "changed after the binding" in next(iter(books.tampered.values()))
    books.set_pod(_pod("p", 6, card="GPU-a-0"))
    assert not books.tampered


def test_resized_counts() -> None:
    books = Books()
    books.set_node(_node("a", 15))
    pod = make_pod(
        "p",
        6,
        node="a",
        annotations={
            "cgpu.aliyun.com/allocation": '{"app0":{"GPU-a-0":{"mem":6}}}',
            "cgpu.aliyun.com/resized": '{"app0":{"mem":8}}',
        },
    )
    books.set_pod(decode_pod(json.dumps(pod).encode()))
    assert _used(books) == [8]


def test_holds_end_by_themselves_and_with_the_pod() -> None:
    books = Books()
    books.set_node(_node("a", 15))
    books.hold(Hold("u", "a", {"GPU-a-0": Holding(6, 0, 1)}, until=2.0))
    held = books.holds_by_node(1.0)
    assert [card.mem for card in books.state_for("a", "other", held["a"]).cards] == [6]
    assert books.holds_by_node(1.0, without="u") == {}
    assert books.holds_by_node(2.0) == {}
    books.hold(Hold("u", "a", {}, until=9.0))
    books.release("u")
    assert books.holds_by_node(1.0) == {}


@pytest.mark.parametrize(
    ("change", "want"),
    [
        pytest.param({}, "", id="a good node"),
        pytest.param({"annotations": {"cgpu.aliyun.com/devices": "{"}}, "no JSON", id="cards that are no JSON"),
        pytest.param({"annotations": {"cgpu.aliyun.com/devices": "[{}]"}}, "index is None", id="a card without keys"),
        pytest.param({"labels": {"ack.node.gpu.placement": "best"}}, "must be one of", id="an unknown placement"),
        pytest.param(
            {"annotations": {"cgpu.aliyun.com/devices": "[]", "cgpu.aliyun.com/cordon": "[1]"}},
            "card UUIDs",
            id="a bad cordon",
        ),
    ],
)
def test_a_node_that_cannot_be_read_offers_nothing_and_says_why(change: Json, want: str) -> None:
    node = make_node("a", 15)
    node["metadata"].update(change)
    books = Books()
    books.set_node(decode_node(json.dumps(node).encode()))
    assert want in books.offers["a"].problem
    assert bool(want) == (not books.offers["a"].cards)


def test_a_node_without_capacity_of_ours_offers_nothing() -> None:
    node = make_node("a", 15)
    node["status"]["capacity"] = {"aliyun.com/gpu-mem": "0"}
    books = Books()
    books.set_node(decode_node(json.dumps(node).encode()))
    assert books.state("a").cards == ()


def test_a_card_that_was_taken_out_leaves_the_others_their_pods() -> None:
    """Their numbers change, their UUIDs do not."""
    node = make_node("a", 15, 15, 15, 15)
    books = Books()
    books.set_node(decode_node(json.dumps(node).encode()))
    for index in range(4):
        books.set_pod(_pod(f"p{index}", index + 1, card=f"GPU-a-{index}"))
    cards = json.loads(node["metadata"]["annotations"]["cgpu.aliyun.com/devices"])[1:]
    renumbered = [{**card, "index": index, "minor": index} for index, card in enumerate(cards)]
    node["metadata"]["annotations"]["cgpu.aliyun.com/devices"] = json.dumps(renumbered)
    books.set_node(decode_node(json.dumps(node).encode()))

    assert [(card.card.index, card.card.uuid, card.mem) for card in books.state("a").cards] == [
        (0, "GPU-a-1", 2),
        (1, "GPU-a-2", 3),
        (2, "GPU-a-3", 4),
    ]


def test_a_node_that_is_not_ready_keeps_its_books() -> None:
    node = make_node("a", 15)
    books = Books()
    books.set_node(decode_node(json.dumps(node).encode()))
    books.set_pod(_pod("p", 6, card="GPU-a-0"))
    for status in ("Unknown", "False", "True"):
        node["status"]["conditions"][0]["status"] = status
        books.set_node(decode_node(json.dumps(node).encode()))
        assert _used(books) == [6]


def test_pods_of_a_node_that_is_gone_count_again_when_it_comes_back() -> None:
    books = Books()
    books.set_pod(_pod("p", 6, card="GPU-a-0"))
    books.set_node(_node("a", 15))
    books.drop_node("a")
    assert books.state("a").cards == ()
    books.set_node(_node("a", 15))
    assert _used(books) == [6]


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["app0", "GPU-a-0"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["app0", "GPU-a-0", "mem", "core", "0", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)
_VALUES = st.text(max_size=20) | _JSON.map(json.dumps)


@given(
    annotations=st.dictionaries(
        st.sampled_from(
            [
                "cgpu.aliyun.com/allocation",
                "cgpu.aliyun.com/resized",
                "scheduler.framework.gpushare.allocation",
                "ALIYUN_COM_GPU_MEM_IDX",
                "ALIYUN_COM_GPU_MEM_POD",
            ]
        ),
        _VALUES,
        max_size=3,
    ),
    devices=_VALUES,
    cordon=_VALUES,
    mem=st.text(max_size=6),
)
def test_nothing_that_is_written_anywhere_breaks_the_books(
    annotations: dict[str, str], devices: str, cordon: str, mem: str
) -> None:
    node = make_node("b", 15)
    node["metadata"]["annotations"] = {"cgpu.aliyun.com/devices": devices, "cgpu.aliyun.com/cordon": cordon}
    books = Books()
    books.set_node(_node("a", 15))
    books.set_node(decode_node(json.dumps(node).encode()))
    for where in ("a", "b"):
        odd = make_pod(f"p-{where}", mem, node=where, annotations=annotations)
        books.set_pod(decode_pod(json.dumps(odd).encode()))
    books.set_pod(_pod("good", 4, card="GPU-a-0", uid="good"))
    for uid in [uid for uid in books.pods if uid != "good"]:
        books.drop_pod(uid)
    assert _used(books) == [4]
    assert books.state("b").used == 0


def test_three_failed_binds_shut_a_node_for_a_while() -> None:
    setbacks = Setbacks()
    for count, want in ((1, []), (2, []), (3, ["a"])):
        setbacks.failed("u", "a", float(count))
        assert list(setbacks.shut("u", float(count))) == want
    assert list(setbacks.shut("other", 3.0)) == []
    assert list(setbacks.shut("u", 3.0 + SHUT_SECONDS + 1)) == []
    setbacks.done("u")
    assert list(setbacks.shut("u", 3.0)) == []
