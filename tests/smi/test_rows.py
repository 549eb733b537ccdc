# SPDX-License-Identifier: Apache-2.0
"""From two looks to a table: use, limits by policy, order, alignment."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgpu.core.smi import Look, Owner, Process, Row, Sample, Settings, as_json, process_table, rows_of, table

S = 1_000_000_000
MIB = 1 << 20
DOCUMENTED = """\
| cGPU Version: 1.0.2
+---+----------------+----------+----------------+-----------------------+
|GPU| pod            | highprio | GPU-Util/Limit | GPU Memory Usage/Total|
+===+================+==========+================+=======================+
|  0| 7db8fff70a0d   |        0 |        41/ 50  |         9459/11463    |
|  0| 91b1e19795ee   |        0 |        30/ 50  |         9457/11463    |
+---+----------------+----------+----------------+-----------------------+"""


def look(id_: str, busy: float = 0, weight: int = 1, gpu: int = 0, used: int = 0, mem: int = 1024) -> Look:
    """An instance; `busy` in seconds, sizes in MiB."""
    return Look(gpu, id_, mem * MIB, used * MIB, weight, 0, int(busy * S))


def rows(after: Sequence[Look], policy: int = 1, max_inst: int = 20, before: Sequence[Look] = ()) -> tuple[Row, ...]:
    settings = {gpu: Settings(policy, max_inst) for gpu in (0, 1)}
    return rows_of(Sample(tuple(before), tuple(after), S), settings, {})


def test_the_table_of_the_documentation() -> None:
    after = [look("91b1e19795ee", 0.3, used=9457, mem=11463), look("7db8fff70a0d", 0.41, used=9459, mem=11463)]

    assert table("1.0.2", rows(after)) == DOCUMENTED


@pytest.mark.parametrize(
    ("policy", "busy", "weights", "limits"),
    [
        pytest.param(0, (1, 1), (1, 1), [5, 5], id="fair-share: one slice each"),
        pytest.param(1, (1, 1), (1, 1), [50, 50], id="preemptive, both busy"),
        pytest.param(1, (1, 0), (1, 1), [100, 50], id="preemptive, the second would get half if it worked"),
        pytest.param(2, (1, 0), (1, 2), [33, 67], id="weighted: by weight, idle or not"),
        pytest.param(3, (1, 1), (10, 4), [50, 20], id="fixed: of max_inst"),
        pytest.param(4, (1, 1), (1, 1), [50, 50], id="soft"),
        pytest.param(5, (1, 1), (1, 1), [100, 100], id="native"),
        pytest.param(9, (1, 1), (1, 1), [100, 100], id="a policy of a newer module"),
    ],
)
def test_limits_by_policy(policy: int, busy: tuple[int, int], weights: tuple[int, int], limits: list[int]) -> None:
    found = rows([look("a", busy[0], weights[0]), look("b", busy[1], weights[1])], policy)

    assert [row.limit for row in found] == limits


@pytest.mark.parametrize(
    ("then", "now", "util"),
    [
        pytest.param(1.0, 1.41, 41, id="the difference"),
        pytest.param(None, 0.3, 30, id="new since the first look"),
        pytest.param(9.0, 0.2, 20, id="another instance took the name"),
        pytest.param(0.0, 1.2, 100, id="never above the whole"),
    ],
)
def test_use_is_what_came_to_the_counter(then: float | None, now: float, util: int) -> None:
    before = [] if then is None else [look("a", then)]

    assert rows([look("a", now)], before=before)[0].util == util


def test_limits_look_at_the_instances_own_gpu() -> None:
    found = rows([look("a", 1), look("b", 1, gpu=1)])

    assert [(row.look.gpu, row.limit) for row in found] == [(0, 100), (1, 100)]


def test_pods_go_by_their_name_and_columns_grow() -> None:
    owners = {"a": Owner("kubernetes", "research", "a-pod-with-a-rather-long-name-0")}
    found = rows_of(Sample((), (look("a"), look("bbbbbbbbbbbb")), S), {0: Settings(1, 20)}, owners)
    lines = table("1.0.0", found).splitlines()

    assert [row.name for row in found] == ["bbbbbbbbbbbb", "research/a-pod-with-a-rather-long-name-0"]
    assert {len(line) for line in lines[1:]} == {len(lines[1])}


def test_an_empty_table_says_so() -> None:
    assert table("1.0.0", ()).splitlines()[-1] == "no instance: no container has a share of a GPU"


def test_processes_have_rows() -> None:
    processes = (Process(20, 3 * MIB), Process(7, 2 * MIB, "python3"))
    found = rows_of(Sample((), (look("a"),), S), {0: Settings(1, 20)}, {}, {(0, "a"): processes})
    lines = process_table(found).splitlines()

    assert [line.split("|")[3:6] for line in lines[4:6]] == [
        ["       7 ", " python3         ", "       2MiB"],
        ["      20 ", " -               ", "       3MiB"],
    ]


def test_json_counts_bytes_and_percent() -> None:
    settings = {0: Settings(2, 20)}
    found = rows_of(Sample((), (look("a", 0.5, used=3),), S), settings, {"a": Owner("docker", containers=("abc",))})
    document = as_json("1.0.0", found, settings)

    assert document["gpus"] == [{"gpu": 0, "policy": 2, "policyName": "weighted preemptive", "maxInstances": 20}]
    assert document["instances"][0] == {
        "gpu": 0, "id": "a", "runtime": "docker", "namespace": "", "pod": "", "containers": ["abc"], "highprio": 0,
        "weight": 1, "utilPercent": 50, "limitPercent": 100, "usedBytes": 3 * MIB, "limitBytes": 1024 * MIB, "oom": 0,
        "processes": [],
    }  # fmt: skip


LOOKS = st.builds(
    Look, st.integers(0, 1), st.text("ab", min_size=1, max_size=2), st.integers(0, 2**50), st.integers(0, 2**50),
    st.integers(0, 25), st.integers(0, 1), st.integers(0, 2**62),
)  # fmt: skip


@given(st.lists(LOOKS, max_size=8), st.lists(LOOKS, max_size=8), st.integers(0, 5))
def test_whatever_the_counters_say_percents_are_percents_and_lines_align(
    before: list[Look], after: list[Look], policy: int
) -> None:
    found = rows(after, policy, before=before)
    lines = table("1", found).splitlines()

    assert all(0 <= row.util <= 100 and 0 <= row.limit <= 125 for row in found)
    assert len({len(line) for line in lines[1:] if line.startswith(("|", "+"))}) == 1
    assert found == tuple(sorted(found, key=lambda row: (row.look.gpu, row.name)))
