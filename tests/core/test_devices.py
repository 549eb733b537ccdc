# SPDX-License-Identifier: Apache-2.0
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgpu.core.devices import (
    LISTING_LIMIT_BYTES,
    SickCard,
    cdi_name,
    check_listing,
    instance_id,
    listed_ids,
    listing_bytes,
    split_over_cards,
    unhealthy_ids,
)
from cgpu.core.errors import SettingError
from cgpu.core.model import Share
from cgpu.core.names import RESOURCE_MEM
from cgpu.kubelet import deviceplugin_pb2


@pytest.mark.parametrize(
    ("count", "held", "want"),
    [
        pytest.param(0, (), (), id="no cards offer nothing"),
        pytest.param(3, (), ("u0", "u1", "u2"), id="ids are numbered from 0"),
        pytest.param(3, ("u1",), ("u0", "u1", "u2"), id="a held id changes nothing while it is inside"),
        pytest.param(2, ("u7",), ("u0", "u7"), id="a held id outside stays in place of a free one"),
        pytest.param(2, ("u0", "u1", "u9"), ("u0", "u1", "u9"), id="held ids are never withdrawn, even over the total"),
        pytest.param(0, ("u10", "u9"), ("u9", "u10"), id="every card is gone, the pods stay"),
        pytest.param(2, ("c5", "ux"), ("u0", "u1"), id="ids of another kind are not ours"),
    ],
)
def test_ids_of_a_node(count: int, held: tuple[str, ...], want: tuple[str, ...]) -> None:
    assert want == listed_ids("u", count, held)


IDS = listed_ids("u", 8)


@pytest.mark.parametrize(
    ("sick", "held", "before", "want"),
    [
        pytest.param([], {"u0"}, (), set(), id="all cards well"),
        pytest.param(
            [SickCard(4, frozenset({"u0", "u1"}))], {"u0", "u1", "u7"}, (), {"u0", "u1", "u6", "u5"},
            id="its pods' ids first, then free ones up to its units, never another pod's",
        ),
        pytest.param([SickCard(4, frozenset())], set(), {"u1"}, {"u1", "u7", "u6", "u5"}, id="free ids that were unhealthy stay so"),
        pytest.param([SickCard(4, frozenset())], {f"u{i}" for i in range(6)}, (), {"u6", "u7"}, id="other pods hold too much: fewer turn"),
        pytest.param(
            [SickCard(4, frozenset({"u0"})), SickCard(4, frozenset({"u1"}))], {"u0", "u1"}, (), set(IDS), id="every card sick",
        ),
        pytest.param([SickCard(1, frozenset({"u0", "u1"}))], {"u0", "u1"}, (), {"u0", "u1"}, id="a card that shrank under its pods"),
    ],
)  # fmt: skip
def test_ids_that_a_sick_card_takes_along(
    sick: list[SickCard], held: set[str], before: set[str], want: set[str]
) -> None:
    assert want == unhealthy_ids(IDS, sick, held, before)


@given(
    owner=st.lists(st.sampled_from([None, 0, 1, 2]), min_size=12, max_size=12),
    sick=st.sets(st.sampled_from([0, 1, 2])),
)
def test_a_healthy_cards_pod_never_loses_an_id(owner: list[int | None], sick: set[int]) -> None:
    ids = listed_ids("u", 12)
    held = {id_ for id_, card in zip(ids, owner, strict=True) if card is not None}
    cards = {n: frozenset(id_ for id_, c in zip(ids, owner, strict=True) if c == n) for n in range(3)}

    turned = unhealthy_ids(ids, [SickCard(4, cards[n]) for n in sorted(sick)], held)

    assert all(not turned & cards[n] for n in range(3) if n not in sick)
    assert all(cards[n] <= turned for n in sick)
    assert turned == unhealthy_ids(ids, [SickCard(4, cards[n]) for n in sorted(sick)], held, turned)


def test_a_containers_ids_are_counted_on_its_cards_by_size() -> None:
    shares = {"GPU-b": Share(1), "GPU-a": Share(2)}

    assert {"GPU-a": frozenset({"u1", "u2"}), "GPU-b": frozenset({"u3"})} == split_over_cards(
        ["u3", "u1", "u2"], shares
    )


@pytest.mark.parametrize("count", [0, 1, 1120, 12345])
def test_the_computed_size_is_that_of_the_message(count: int) -> None:
    ids = listed_ids("u", count)
    message = deviceplugin_pb2.ListAndWatchResponse(
        devices=[deviceplugin_pb2.Device(ID=id_, health="Unhealthy") for id_ in ids]
    )

    assert message.ByteSize() == listing_bytes(ids)


def test_eight_h200_are_far_below_the_limit() -> None:
    check_listing(RESOURCE_MEM, 8 * 140)


def test_a_listing_that_the_kubelet_would_refuse_is_refused_with_its_size() -> None:
    count = LISTING_LIMIT_BYTES // 20
    with pytest.raises(SettingError, match=rf"{count} ids make a ListAndWatch message of 3[0-9]{{6}} bytes"):
        check_listing(RESOURCE_MEM, count)


def test_names_do_not_depend_on_the_order_of_ids() -> None:
    assert cdi_name(["u2", "u10"]) == cdi_name(["u10", "u2"])
    assert cdi_name(["u2"]) != cdi_name(["u10"])
    assert cdi_name(["u2"]).startswith("aliyun.com/gpu-mem=")


def test_an_instance_is_named_after_pod_and_ids() -> None:
    assert hashlib.sha256(b"uid-1/u10,u2").hexdigest()[:12] == instance_id("uid-1", ["u2", "u10"])
    assert instance_id("uid-1", ["u2"]) != instance_id("uid-2", ["u2"])
