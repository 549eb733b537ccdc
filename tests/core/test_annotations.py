# SPDX-License-Identifier: Apache-2.0
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgpu.core.annotations import (
    allocation_of,
    decode_allocation,
    decode_cordon,
    decode_devices,
    decode_gpushare,
    decode_legacy,
    decode_resize,
    encode_all,
    encode_allocation,
    encode_devices,
    encode_gpushare,
    encode_legacy,
)
from cgpu.core.errors import AnnotationError
from cgpu.core.model import Card, Container, ContainerKind, Pod, Share
from cgpu.core.pods import claim_of
from tests.builders import make_card, make_claim, make_pod

NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,20}", fullmatch=True)
SHARES = st.builds(Share, st.integers(1, 200), st.integers(0, 20).map(lambda n: n * 5))
ALLOCATIONS = st.dictionaries(NAMES, st.dictionaries(NAMES, SHARES, min_size=1, max_size=4), max_size=4)
CARDS = st.lists(
    st.builds(
        Card,
        st.integers(0, 99),
        st.integers(0, 99),
        NAMES,
        st.text(max_size=20),
        st.integers(0, 200_000),
        st.integers(0, 200),
        st.integers(1, 25),
        st.booleans(),
        st.none() | st.integers(0, 7),
    ),
    max_size=6,
    unique_by=(lambda card: card.index, lambda card: card.uuid),
)


@given(ALLOCATIONS)
def test_the_truth_round_trips(allocation: dict[str, dict[str, Share]]) -> None:
    assert allocation == decode_allocation(encode_allocation(allocation))


@given(CARDS)
def test_devices_round_trip_in_index_order(cards: list[Card]) -> None:
    assert tuple(sorted(cards, key=lambda card: card.index)) == decode_devices(encode_devices(cards))


@given(st.lists(st.integers(1, 20), min_size=1, max_size=4), st.integers(0, 3))
def test_the_framework_form_round_trips(sizes: list[int], slot: int) -> None:
    cards = [make_card(i, 100) for i in range(4)]
    names = [f"app{i}" for i in range(len(sizes))]
    allocation = {name: {cards[slot].uuid: Share(size)} for name, size in zip(names, sizes, strict=True)}

    assert allocation == decode_gpushare(encode_gpushare(allocation, names, cards), names, cards)


@given(st.lists(st.integers(1, 20), min_size=1, max_size=4), st.integers(0, 3))
def test_the_older_form_round_trips_on_one_card(sizes: list[int], slot: int) -> None:
    cards = [make_card(i, 100) for i in range(4)]
    claim = make_claim(*sizes)
    allocation = {ask.name: {cards[slot].uuid: claim.per_card(ask)} for ask in claim.asks}

    assert allocation == decode_legacy(encode_legacy(claim, allocation, cards, 1), claim, cards)


def test_one_binding_carries_all_three_forms() -> None:
    pod = make_pod("2", "3")
    cards = [make_card(0), make_card(1, 11)]
    claim = claim_of(pod)
    assert claim is not None
    allocation = {"app0": {"GPU-1": Share(2)}, "app1": {"GPU-1": Share(3)}}

    assert encode_all(pod, claim, allocation, cards, 42) == {
        "cgpu.aliyun.com/allocation": '{"app0":{"GPU-1":{"mem":2,"core":0}},"app1":{"GPU-1":{"mem":3,"core":0}}}',
        "scheduler.framework.gpushare.allocation": '{"0":{"1":2},"1":{"1":3}}',
        "ALIYUN_COM_GPU_MEM_IDX": "1",
        "ALIYUN_COM_GPU_MEM_DEV": "11",
        "ALIYUN_COM_GPU_MEM_POD": "5",
        "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "42",
        "ALIYUN_COM_GPU_MEM_ASSIGNED": "true",
    }


def test_two_cards_have_no_single_index() -> None:
    claim = make_claim(8, gpu_count=2)
    allocation = {"app0": {"GPU-0": Share(4), "GPU-1": Share(4)}}
    legacy = encode_legacy(claim, allocation, [make_card(0), make_card(1, 11)], 1)

    assert "ALIYUN_COM_GPU_MEM_IDX" not in legacy
    assert legacy["ALIYUN_COM_GPU_MEM_DEV"] == "15,11"


def test_positions_count_app_containers_only() -> None:
    pod = Pod(
        "u",
        "ns",
        "n",
        (Container("i", ContainerKind.INIT, "8"), Container("web"), Container("c", ContainerKind.APP, "3")),
    )
    claim = claim_of(pod)
    assert claim is not None
    allocation = {"i": {"GPU-0": Share(8)}, "c": {"GPU-0": Share(3)}}

    encoded = encode_all(pod, claim, allocation, [make_card(0)], 1)
    assert encoded["scheduler.framework.gpushare.allocation"] == '{"1":{"0":3}}'
    assert encoded["ALIYUN_COM_GPU_MEM_POD"] == "8"


@pytest.mark.parametrize(
    ("annotations", "want"),
    [
        pytest.param({}, None, id="nothing was written"),
        pytest.param(
            {"cgpu.aliyun.com/allocation": '{"app0":{"GPU-1":{"mem":6,"core":20}}}', "ALIYUN_COM_GPU_MEM_IDX": "0"},
            {"app0": {"GPU-1": Share(6, 20)}},
            id="the truth is read first",
        ),
        pytest.param(
            {"scheduler.framework.gpushare.allocation": '{"0":{"0":6}}'},
            {"app0": {"GPU-0": Share(6)}},
            id="the framework's form alone",
        ),
        pytest.param({"ALIYUN_COM_GPU_MEM_IDX": "1"}, {"app0": {"GPU-1": Share(6)}}, id="the older form alone"),
        pytest.param(
            {
                "cgpu.aliyun.com/allocation": '{"app0":{"GPU-1":{"mem":6}}}',
                "cgpu.aliyun.com/resized": '{"app0":{"mem":8}}',
            },
            {"app0": {"GPU-1": Share(8)}},
            id="a resized container",
        ),
    ],
)
def test_what_a_pod_was_given(annotations: dict[str, str], want: dict[str, dict[str, Share]] | None) -> None:
    pod = make_pod("6", annotations=annotations)
    claim = claim_of(pod)
    assert claim is not None

    assert want == allocation_of(pod, claim, [make_card(0), make_card(1)])


BAD = [
    ("cgpu.aliyun.com/allocation", "{"),
    ("cgpu.aliyun.com/allocation", "[]"),
    ("cgpu.aliyun.com/allocation", '{"app0":{}}'),
    ("cgpu.aliyun.com/allocation", '{"app0":{"GPU-0":6}}'),
    ("cgpu.aliyun.com/allocation", '{"app0":{"GPU-0":{"mem":"6"}}}'),
    ("cgpu.aliyun.com/allocation", '{"app0":{"GPU-0":{"mem":0}}}'),
    ("cgpu.aliyun.com/allocation", '{"app0":{"GPU-0":{"mem":-1}}}'),
    ("cgpu.aliyun.com/allocation", '{"app0":{"GPU-0":{"mem":true}}}'),
    ("cgpu.aliyun.com/allocation", '{"app0":{"GPU-0":{"mem":6,"core":105}}}'),
    ("cgpu.aliyun.com/allocation", '{"app0":{"GPU-0":{"mem":6,"weight":1}}}'),
    ("cgpu.aliyun.com/allocation", "[" * 100_000),
    ("scheduler.framework.gpushare.allocation", '{"7":{"0":6}}'),
    ("scheduler.framework.gpushare.allocation", '{"x":{"0":6}}'),
    ("scheduler.framework.gpushare.allocation", '{"0":{"9":6}}'),
    ("scheduler.framework.gpushare.allocation", '{"0":[6]}'),
    ("ALIYUN_COM_GPU_MEM_IDX", "-1"),
    ("ALIYUN_COM_GPU_MEM_IDX", ""),
    ("ALIYUN_COM_GPU_MEM_IDX", "9"),
]


@pytest.mark.parametrize(("key", "text"), BAD)
def test_an_unreadable_annotation_is_named(key: str, text: str) -> None:
    pod = make_pod("6", annotations={key: text})
    claim = claim_of(pod)
    assert claim is not None

    with pytest.raises(AnnotationError, match=key):
        allocation_of(pod, claim, [make_card(0)])


@given(st.text(max_size=200))
def test_no_text_breaks_the_decoders(text: str) -> None:
    for decode in (decode_allocation, decode_devices, lambda text: decode_resize("resized", text)):
        try:
            decode(text)
        except AnnotationError:
            continue


def test_cordon_is_a_list_in_either_form() -> None:
    assert decode_cordon('["GPU-0","GPU-1"]') == frozenset({"GPU-0", "GPU-1"}) == decode_cordon("GPU-0, GPU-1")
    with pytest.raises(AnnotationError):
        decode_cordon("[1]")


@pytest.mark.parametrize("text", ['{"a":{"mem":0}}', '{"a":{"mem":8,"core":1}}', '{"a":8}', "[]", "8"])
def test_a_resize_names_what_is_wrong(text: str) -> None:
    with pytest.raises(AnnotationError, match="resize-request"):
        decode_resize("cgpu.aliyun.com/resize-request", text)


def test_duplicate_cards_are_refused() -> None:
    with pytest.raises(AnnotationError, match="same"):
        decode_devices(encode_devices([make_card(0), make_card(0)]))
