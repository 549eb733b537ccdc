# SPDX-License-Identifier: Apache-2.0
import pytest

from cgpu.core.errors import SettingError
from cgpu.core.health import HealthBook, parse_xids


@pytest.mark.parametrize("xid", [13, 31, 43, 45, 68, 109])
def test_an_applications_fault_leaves_the_card_usable(xid: int) -> None:
    book = HealthBook()

    assert not book.xid("GPU-0", xid, now=0)
    assert book.fault("GPU-0") == ""


def test_an_xid_takes_the_card_out_until_it_answered_through_a_quiet_minute() -> None:
    book = HealthBook()
    assert book.xid("GPU-0", 79, now=0)

    for now, want in ((1, "Xid 79"), (59, "Xid 79"), (60, "")):
        book.answered("GPU-0", now)
        assert book.fault("GPU-0") == want
    assert book.fault("GPU-1") == ""


def test_a_new_fault_starts_the_quiet_time_anew() -> None:
    book = HealthBook()
    book.xid("GPU-0", 48, now=0)
    book.xid("GPU-0", 48, now=50)

    book.answered("GPU-0", 100)
    assert book.fault("GPU-0") == "Xid 48"
    book.answered("GPU-0", 110)
    assert book.fault("GPU-0") == ""


def test_silence_is_a_fault_and_needs_an_answer_to_end() -> None:
    book = HealthBook()
    book.failed("GPU-0", "no answer", now=0)

    assert book.fault("GPU-0") == "no answer"
    book.failed("GPU-0", "no answer", now=100)
    book.answered("GPU-0", 120)
    assert book.fault("GPU-0") == "no answer"
    book.answered("GPU-0", 160)
    assert book.fault("GPU-0") == ""


def test_the_ignore_list_is_a_setting() -> None:
    assert HealthBook(parse_xids("79")).xid("GPU-0", 13, now=0)
    assert not HealthBook(parse_xids(" 79, 13 ,")).xid("GPU-0", 79, now=0)
    assert parse_xids("") == frozenset()
    with pytest.raises(SettingError, match="'thirteen' is no Xid number"):
        parse_xids("13,thirteen")
