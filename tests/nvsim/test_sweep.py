# SPDX-License-Identifier: Apache-2.0
"""The portable core of the simulated driver meets malformed calls under sanitizers, on the host, in seconds."""

import subprocess
from pathlib import Path

import pytest

from tests.nvsim.driver import BRANCHES, SOURCES

PROGRAMS = 150


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, built from the working tree."""
    place = tmp_path_factory.mktemp("sweep")
    done = subprocess.run(
        ["make", "-s", "-C", str(SOURCES / "user"), f"OUT={place}", f"{place}/sweep"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return place / "sweep"


@pytest.mark.parametrize("branch", [pytest.param(branch, id=f"the ioctls of {branch}") for branch in BRANCHES])
def test_malformed_calls_and_pushbuffers_do_no_harm(sweep: Path, branch: str) -> None:
    """Every number in every size, every control around its least size, random channels: no report, nothing left."""
    done = subprocess.run([sweep, branch, branch, str(PROGRAMS)], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert " calls, " in done.stdout
