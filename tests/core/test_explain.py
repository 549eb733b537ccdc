# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace

import pytest
from hypothesis import given

from cgpu.core.explain import Refusal, explain, group_refusals, unit_hint
from cgpu.core.model import CardState, Claim, NodeState
from cgpu.core.placement import fits
from tests.builders import make_card, make_claim, make_node
from tests.core.test_placement import CLAIMS, NODES

FULL = NodeState("node-a", (CardState(make_card(0), mem=3, instances=20),))
BUSY = NodeState("node-a", (CardState(make_card(0), mem=3, core=90, instances=2),), core_mem=True)
SICK = NodeState("node-a", (CardState(make_card(0, healthy=False)), CardState(make_card(1), cordoned=True)))
MIXED = NodeState("node-a", (CardState(make_card(0), mem=14), CardState(make_card(1), instances=20)))


@pytest.mark.parametrize(
    ("node", "claim", "reason", "detail", "forever"),
    [
        pytest.param(
            make_node(4, 4, units=15),
            make_claim(6),
            "no single GPU has 6 GiB free",
            "node-a has 8 GiB free but no single GPU has 6 GiB (largest free: 4 GiB)",
            False,
            id="fragmented",
        ),
        pytest.param(
            make_node(4, 9, units=15),
            make_claim(12, gpu_count=2),
            "no 2 GPUs each have 6 GiB free",
            "node-a has 13 GiB free but no 2 GPUs each have 6 GiB (largest free: 9 GiB)",
            False,
            id="too few cards with room",
        ),
        pytest.param(
            FULL,
            make_claim(1),
            "no GPU takes another instance (20 of 20)",
            "node-a: GPU 0 takes no other instance (20 of 20)",
            False,
            id="the 21st share",
        ),
        pytest.param(
            SICK,
            make_claim(1),
            "GPUs cordoned or unhealthy",
            "node-a: 2 of 2 GPUs cordoned or unhealthy",
            False,
            id="nothing usable",
        ),
        pytest.param(
            make_node(15, 15),
            make_claim(20),
            "no single GPU has 20 GiB at all",
            "node-a: no single GPU has 20 GiB at all (2 GPUs, the largest 15 GiB)",
            True,
            id="larger than every card",
        ),
        pytest.param(
            make_node(15),
            make_claim(10**10),
            "no single GPU has 10000000000 GiB at all",
            "10000000000 GiB was asked and the unit is GiB: write 10, not 10G",
            True,
            id="bytes by mistake",
        ),
        pytest.param(
            make_node(15),
            make_claim(9, 9),
            "the pod's containers do not fit the node's GPUs together",
            "node-a: the pod's containers do not fit the node's GPUs together (1 GPUs, the largest 15 GiB)",
            True,
            id="together too large",
        ),
        pytest.param(
            make_node(),
            make_claim(1),
            "node is not for GPU share",
            "node-a offers no aliyun.com/gpu-mem",
            True,
            id="no cards",
        ),
        pytest.param(
            BUSY,
            make_claim(1, core=30),
            "no single GPU has 30 percent of compute free",
            "node-a: no single GPU has 30 percent of compute free (largest free: 10 percent)",
            False,
            id="compute is gone",
        ),
        pytest.param(
            BUSY,
            make_claim(1),
            "node in mode core_mem needs aliyun.com/gpu-core.percentage too",
            "node-a is in mode core_mem: every container that asks for aliyun.com/gpu-mem asks for aliyun.com/gpu-core.percentage too",
            True,
            id="core_mem wants both",
        ),
        pytest.param(
            make_node(15),
            make_claim(1, core=5),
            "node does not offer aliyun.com/gpu-core.percentage",
            "node-a does not offer aliyun.com/gpu-core.percentage",
            True,
            id="no compute resource here",
        ),
    ],
)
def test_the_reason_and_the_numbers(node: NodeState, claim: Claim, reason: str, detail: str, forever: bool) -> None:
    assert explain(node, claim) == Refusal(reason, detail, forever)


def test_what_fits_needs_no_reason() -> None:
    assert explain(make_node(6), make_claim(6)) is None


@given(NODES, CLAIMS)
def test_a_reason_is_given_exactly_when_it_does_not_fit(node: NodeState, claim: Claim) -> None:
    assert (explain(node, claim) is None) == fits(node, claim)


@given(NODES, CLAIMS)
def test_forever_means_that_an_empty_node_would_not_take_it(node: NodeState, claim: Claim) -> None:
    refusal = explain(node, claim)
    empty = replace(node, cards=tuple(CardState(state.card) for state in node.cards))

    assert (refusal is not None and refusal.forever) == (not fits(empty, claim))


def test_no_card_has_everything_at_once() -> None:
    refusal = explain(MIXED, make_claim(1, 1))

    assert refusal is not None
    assert "free" in refusal.reason or "instance" in refusal.reason


def test_events_group_equal_reasons_and_stay_short() -> None:
    rows = [Refusal("no single GPU has 6 GiB free", f"node-{i} has 8 GiB free") for i in range(5)]
    rows.append(Refusal("GPUs cordoned or unhealthy", "node-x: 1 of 1 GPUs cordoned or unhealthy"))

    assert group_refusals(rows) == (
        "node-0 has 8 GiB free; node-1 has 8 GiB free; node-2 has 8 GiB free (and 2 more nodes);"
        " node-x: 1 of 1 GPUs cordoned or unhealthy"
    )
    assert len(group_refusals([Refusal(f"r{i}", "x" * 300) for i in range(50)])) <= 1024


@pytest.mark.parametrize(
    ("mem", "want"),
    [
        pytest.param(3 * 2**30, "3221225472 GiB was asked and the unit is GiB: write 3, not 3Gi", id="3Gi"),
        pytest.param(10**10, "10000000000 GiB was asked and the unit is GiB: write 10, not 10G", id="10G"),
        pytest.param(
            512 * 2**20, "536870912 GiB was asked and the unit is GiB: write the number alone, such as 10", id="512Mi"
        ),
        pytest.param(8192, "8192 GiB was asked and the unit is GiB: write the number alone, such as 10", id="MiB"),
        pytest.param(4096, "", id="a size that a card may have one day"),
    ],
)
def test_a_mistaken_unit_is_named_as_it_was_written(mem: int, want: str) -> None:
    assert unit_hint(make_claim(1, mem)) == want
