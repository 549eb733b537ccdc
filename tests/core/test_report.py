# SPDX-License-Identifier: Apache-2.0
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgpu.core.model import Pod
from cgpu.core.report import NodeRow, PodRow, as_json, details, node_row, percent, table
from tests.builders import make_card, make_pod

A = NodeRow("node-a", "192.168.0.71", {0: 15, 1: 15}, (PodRow("default", "six", {0: 6}),))
B = NodeRow(
    "node-b",
    "192.168.0.8",
    {0: 22},
    (PodRow("ml", "waiting", {}, pending=4), PodRow("ml", "two", {0: 2}, used_bytes=(2 << 30) + 5)),
)


def test_the_table_of_the_documentation() -> None:
    assert table([A]) == "\n".join(
        [
            "NAME    IPADDRESS     GPU0(Allocated/Total)  GPU1(Allocated/Total)  GPU Memory(GiB)",
            "node-a  192.168.0.71  6/15                   0/15                   6/30",
            "-" * 83,
            "Allocated/Total GPU Memory In Cluster:",
            "6/30 (20%)",
        ]
    )


def test_a_pod_without_a_card_has_its_own_column_and_fewer_cards_leave_a_dash() -> None:
    lines = table([B, A]).splitlines()

    assert lines[0].split() == [
        "NAME",
        "IPADDRESS",
        "GPU0(Allocated/Total)",
        "GPU1(Allocated/Total)",
        "PENDING(Allocated)",
        "GPU",
        "Memory(GiB)",
    ]
    assert lines[1].split() == ["node-a", "192.168.0.71", "6/15", "0/15", "0", "6/30"]
    assert lines[2].split() == ["node-b", "192.168.0.8", "2/22", "-", "4", "6/22"]
    assert lines[-1] == "12/52 (23%)"


def test_details_have_a_row_a_pod_and_what_is_really_used() -> None:
    assert details([B]) == "\n".join(
        [
            "NAME:       node-b",
            "IPADDRESS:  192.168.0.8",
            "",
            "NAME     NAMESPACE  GPU0(Allocated)  PENDING(Allocated)  USED(MiB)",
            "waiting  ml         0                4                   -",
            "two      ml         2                0                   2048",
            "Allocated : 6 (27%)",
            "Used : -",
            "Total : 22",
            "-" * 66,
            "Allocated/Total GPU Memory In Cluster:",
            "6/22 (27%)",
        ]
    )


@pytest.mark.parametrize(
    ("part", "whole", "want"),
    [(9, 30, "(30%)"), (8, 15, "(53%)"), (24, 60, "(40%)"), (10, 30, "(33%)"), (0, 0, "(0%)")],
)
def test_percent_is_truncated(part: int, whole: int, want: str) -> None:
    assert want == percent(part, whole)


@given(st.permutations([A, B, NodeRow("c", "", {0: 1})]))
def test_the_order_of_nodes_changes_nothing(nodes: list[NodeRow]) -> None:
    assert table(nodes) == table([A, B, NodeRow("c", "", {0: 1})])
    assert as_json(nodes) == as_json(list(reversed(nodes)))


def test_an_empty_cluster_is_no_error() -> None:
    assert table([]).splitlines()[-1] == "0/0 (0%)"
    assert details([]).splitlines()[-1] == "0/0 (0%)"


def test_json_says_the_same() -> None:
    read = json.loads(json.dumps(as_json([A])))

    assert read["allocated"] == 6
    assert read["nodes"][0]["gpus"] == [
        {"index": 0, "allocated": 6, "total": 15},
        {"index": 1, "allocated": 0, "total": 15},
    ]
    assert read["nodes"][0]["pods"][0]["booked"] == {"0": 6}


TRUTH = {"cgpu.aliyun.com/allocation": '{"app0":{"GPU-1":{"mem":6}}}'}


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(
            make_pod("6", annotations=TRUTH), (PodRow("default", "pod", {1: 6}, 0, 77),), id="booked and used"
        ),
        pytest.param(make_pod("6"), (PodRow("default", "pod", {}, 6, 77),), id="no card known"),
        pytest.param(make_pod("6", annotations=TRUTH, phase="Succeeded"), (), id="ended"),
        pytest.param(make_pod("6", annotations={"cgpu.aliyun.com/allocation": "{"}), (), id="unreadable"),
        pytest.param(Pod("u", "default", "web"), (), id="not ours"),
    ],
)
def test_rows_from_pods(pod: Pod, want: tuple[PodRow, ...]) -> None:
    row = node_row("n", "", [make_card(1), make_card(0)], [pod], {"default/pod": 77})

    assert want == row.pods
    assert list(row.cards) == [0, 1]


def test_a_pod_that_runs_without_its_share_shows_it() -> None:
    pods = (PodRow("default", "bare", {0: 8}, unserved=("main", "other")), PodRow("default", "plain", {0: 2}))

    node = NodeRow("n", "", {0: 14}, pods)

    rows = [line.split() for line in details([node]).splitlines() if "default" in line]
    assert "WITHOUT GPU" in details([node])
    assert rows == [["bare", "default", "8", "-", "main,other"], ["plain", "default", "2", "-", "-"]]
    assert [row["unserved"] for row in as_json([node])["nodes"][0]["pods"]] == [["main", "other"], []]
    assert "WITHOUT GPU" not in details([A])


def test_a_resized_pod_shows_what_it_asked_for_too() -> None:
    pods = (PodRow("default", "grown", {0: 8}, asked=6), PodRow("default", "plain", {0: 2}))

    text = details([NodeRow("n", "", {0: 14}, pods)])

    rows = [line.split() for line in text.splitlines() if "default" in line]
    assert "ASKED(GiB)" in text
    assert rows == [["grown", "default", "8", "6", "-"], ["plain", "default", "2", "2", "-"]]
