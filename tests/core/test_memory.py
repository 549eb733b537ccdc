# SPDX-License-Identifier: Apache-2.0
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgpu.core.errors import MemoryRuleError
from cgpu.core.memory import Fraction, fractions_of, units_of, visible_bytes, visible_mib


@pytest.mark.parametrize(
    ("total", "container", "dev", "want"),
    [
        (15109, 6, 15, 6043),
        (15109, 8, 15, 8058),
        (23028, 3, 23, 3003),
        (23028, 4, 23, 4004),
        (23028, 5, 23, 5006),
        (23028, 6, 23, 6007),
        (16130, 3, 15, 3226),
        (16130, 4, 15, 4301),
        (15109, 6, 14, 6475),
        (15109, 8, 14, 8633),
    ],
)
def test_the_published_figures(total: int, container: int, dev: int, want: int) -> None:
    assert want == visible_mib(total, container, dev)


def test_mib_are_floored_before_bytes() -> None:
    assert visible_bytes(16130, 4, 15) == 4509925376


@pytest.mark.parametrize(
    ("total", "reserve", "want"),
    [(15109, 0, 14), (16130, 0, 15), (23028, 0, 22), (143771, 0, 140), (15360, 251, 14), (500, 1000, 0)],
)
def test_units_of_a_card(total: int, reserve: int, want: int) -> None:
    assert want == units_of(total, reserve)


@pytest.mark.parametrize(
    ("container", "dev", "cards", "want"),
    [
        pytest.param("3", "15", 4, [(3, 15)] * 4, id="one number counts for every card"),
        pytest.param("3,1", "15", 4, [(3, 15), (1, 15), (1, 15), (1, 15)], id="the last entry repeats"),
        pytest.param("3,4,5,6", "23", 4, [(3, 23), (4, 23), (5, 23), (6, 23)], id="one each"),
        pytest.param("3", "15,22", 2, [(3, 15), (3, 22)], id="cards of two sizes"),
        pytest.param(" 3 , 1 ", "15", 2, [(3, 15), (1, 15)], id="blanks around entries are nothing"),
        pytest.param("15", "15", 1, [(15, 15)], id="the whole card"),
    ],
)
def test_fractions(container: str, dev: str, cards: int, want: list[tuple[int, int]]) -> None:
    assert tuple(Fraction(*pair) for pair in want) == fractions_of(container, dev, cards)


@pytest.mark.parametrize("container", [None, "", "  ", "0", "1,0,0", "0,5"])
def test_unset_or_zero_switches_it_off(container: str | None) -> None:
    assert fractions_of(container, "15", 3) is None


@pytest.mark.parametrize(
    ("container", "dev", "cards", "want"),
    [
        ("six", "15", 1, "CONTAINER=six.*whole number"),
        ("-3", "15", 1, "CONTAINER=-3"),
        ("3", "x", 1, "DEV=x"),
        ("3,4", "15", 1, "2 entries for 1 GPUs"),
        ("16", "15", 1, "16 is more than.*15"),
        ("3", None, 1, "without ALIYUN_COM_GPU_MEM_DEV"),
        ("3", "", 1, "without ALIYUN_COM_GPU_MEM_DEV"),
        ("3", "0", 1, "more than"),
        ("3,,4", "15", 3, "''"),
        ("3.5", "15", 1, "3.5"),
        ("٣", "15", 1, "whole number"),
    ],
)
def test_everything_else_is_refused_by_name(container: str, dev: str | None, cards: int, want: str) -> None:
    with pytest.raises(MemoryRuleError, match=want):
        fractions_of(container, dev, cards)


@given(st.integers(1, 200_000), st.integers(1, 200), st.data())
def test_parts_never_add_up_to_more_than_the_card(total: int, dev: int, data: st.DataObject) -> None:
    parts = data.draw(st.lists(st.integers(1, dev), max_size=20).filter(lambda parts: sum(parts) <= dev))
    assert sum(visible_mib(total, part, dev) for part in parts) <= total
