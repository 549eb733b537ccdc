# SPDX-License-Identifier: Apache-2.0
"""One real Kubernetes a session, with our chart installed.

CGPU_TEST_STATE names the state folder of a sandbox that is up and stays up (`cgpu sandbox up` made it): quicker while
one writes tests. CGPU_TEST_KUBERNETES names the version otherwise.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cgpu.sandbox import versions
from cgpu.sandbox.lifecycle import Plan, down, up
from cgpu.sandbox.record import Records
from cgpu.sandbox.sandbox import Sandbox, attach
from cgpu.sandbox.spec import default_nodes
from tests.cluster.harness import Cluster, state_folder

PROJECT = Path(__file__).parents[2]
_STATE = re.compile(r"cgpu-test-[a-z]+-(\d+)")


@pytest.fixture(scope="session")
def sandbox(pytestconfig: pytest.Config) -> Iterator[Sandbox]:
    """A sandbox of two nodes: node-1 with two T4, node-2 with an A10 and a T4, both in mode share."""
    if given := os.environ.get("CGPU_TEST_STATE"):
        yield attach(Path(given).resolve())
        return
    say = _teller(pytestconfig)
    _end_orphans(say)
    state = state_folder("cluster")
    version = os.environ.get("CGPU_TEST_KUBERNETES", versions.KUBERNETES)
    try:
        yield up(Plan(state, default_nodes(2), version, PROJECT), say)
    finally:
        down(state, say)


@pytest.fixture(scope="session")
def cluster(sandbox: Sandbox) -> Cluster:
    """That sandbox with our chart."""
    made = Cluster(sandbox, PROJECT)
    made.install()
    return made


def _teller(config: pytest.Config):  # type: ignore[no-untyped-def]
    """Progress lines that pytest does not capture: a first run builds for minutes."""
    capture = config.pluginmanager.getplugin("capturemanager")

    def say(text: str) -> None:
        with capture.global_and_fixture_disabled():
            print(f"\n{text}", end="", flush=True)

    return say


def _end_orphans(say) -> None:  # type: ignore[no-untyped-def]
    """End sandboxes of test runs that were killed."""
    for record in Records().all():
        match = _STATE.fullmatch(Path(record.state).name)
        if match and not Path(f"/proc/{match[1]}").exists():
            down(Path(record.state), say)
