# SPDX-License-Identifier: Apache-2.0
"""Errors of a card reach who watches it through NVIDIA's management library."""

import sys

import pytest

from tests.nvsim.driver import BRANCHES, PROGRAMS, run

XIDS = (31, 13, 48, 8, 74)


@pytest.mark.parametrize("branch", [pytest.param(branch, id=f"libnvidia-ml of {branch}") for branch in BRANCHES])
def test_every_xid_is_an_event(branch: str) -> None:
    """Each comes once, with its number, in the order in which they happened."""
    done = run(branch, [sys.executable, str(PROGRAMS / "events.py"), *map(str, XIDS)], timeout=50)

    assert done.stdout == "".join(f"True {xid}\n" for xid in XIDS), done.stderr
