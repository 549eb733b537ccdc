# SPDX-License-Identifier: Apache-2.0
"""Injected errors end the waiting call with CUDA's code, and stick to the context."""

import sys

import pytest

from tests.nvsim.driver import BRANCHES, PROGRAMS, run

CODES = {31: 719, 13: 719, 43: 719, 48: 719, 79: 719, 8: 702}
ROWS = [("535", xid) for xid in CODES] + [(branch, 31) for branch in BRANCHES if branch != "535"]


@pytest.mark.parametrize(
    ("branch", "xid"), [pytest.param(*row, id=f"Xid {row[1]} with libcuda of {row[0]}") for row in ROWS]
)
def test_an_injected_fault_reaches_the_waiting_call(branch: str, xid: int) -> None:
    """The wait for a kernel of a minute ends at once, and the next call fails likewise."""
    done = run(branch, [sys.executable, str(PROGRAMS / "fault.py"), str(xid)], timeout=50)

    assert done.stdout == f"{CODES[xid]} {CODES[xid]}\n", done.stderr
