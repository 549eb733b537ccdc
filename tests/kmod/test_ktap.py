# SPDX-License-Identifier: Apache-2.0
"""The reader of KUnit's reports; the suites themselves run in tests/soak."""

import pytest

from tests.kmod.ktap import results, written

REPORT = """suite cgpu-account
    KTAP version 1
    # Subtest: cgpu-account
    1..2
    ok 1 limit_holds
    {second} 2 - huge_request_does_not_wrap # duration
# cgpu-account: pass:1 fail:1 skip:0 total:2
ok 1 cgpu-account
suite cgpu-ring
    1..0
"""


@pytest.mark.parametrize("word", ["ok", "not ok"])
def test_each_case_has_its_result(word: str) -> None:
    assert results(REPORT.format(second=word)) == {
        "cgpu-account": {"limit_holds": "ok", "huge_request_does_not_wrap": word},
        "cgpu-ring": {},
    }


def test_every_suite_of_the_sources_is_known() -> None:
    cases = written()
    assert set(cases) == {"cgpu-account", "cgpu-objects", "cgpu-replies", "cgpu-ring", "cgpu-sched"}
    assert all(cases.values())
