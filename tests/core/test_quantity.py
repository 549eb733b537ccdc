# SPDX-License-Identifier: Apache-2.0
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgpu.core.errors import QuantityError
from cgpu.core.quantity import format_mib, parse_bytes, parse_quantity


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("6", 6),
        (6, 6),
        ("0", 0),
        ("-0", 0),
        ("10G", 10_000_000_000),
        ("1Ki", 1024),
        ("2Mi", 2 << 20),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1E", 10**18),
        ("3000m", 3),
        ("1.5k", 1500),
        ("+7", 7),
        ("6.0", 6),
    ],
)
def test_whole_numbers_are_read_as_kubernetes_reads_them(text: str | int, want: int) -> None:
    assert want == parse_quantity(text)


@pytest.mark.parametrize(
    "text", ["", " 6", "6 ", "6GB", "0.5", "500m", "-1", "six", "1e", "9999999999999999999", "1i", "٣", "1" * 99]
)
def test_anything_else_is_named_in_the_refusal(text: str) -> None:
    with pytest.raises(QuantityError, match="quantity|whole number|larger"):
        parse_quantity(text)


@given(st.integers(min_value=0, max_value=2**63 - 1))
def test_a_plain_number_is_itself(number: int) -> None:
    assert number == parse_quantity(str(number))


@pytest.mark.parametrize(
    ("text", "want"), [("4GiB", 4 << 30), ("512 MiB", 512 << 20), ("4096", 4096), ("1kib", 1024), ("7B", 7)]
)
def test_sizes_are_binary(text: str, want: int) -> None:
    assert want == parse_bytes(text)


@pytest.mark.parametrize("text", ["4GB", "4G", "", "-1", "1.5GiB", "GiB"])
def test_a_size_in_another_unit_is_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="no size"):
        parse_bytes(text)


def test_mib_are_floored() -> None:
    assert format_mib((6043 << 20) + (1 << 20) - 1) == "6043MiB"
