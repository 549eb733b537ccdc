# SPDX-License-Identifier: Apache-2.0
"""Programs started from written units: a later process finds, ends and restarts them."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cgpu.core.errors import SettingError
from cgpu.sandbox.units import Place, Unit, Units

HERE = Place("/proc/self/ns/net", "", ())


@pytest.fixture
def units(tmp_path: Path) -> Iterator[Units]:
    """Units of a state folder; their programs end with the test."""
    made = Units(tmp_path)
    yield made
    for name in made.names():
        made.kill(name)


def sleeper(name: str) -> Unit:
    return Unit(name, ["sh", "-c", "echo begun; exec sleep 1000"], HERE, os.environ["PATH"])


def test_a_later_process_finds_what_was_started(units: Units, tmp_path: Path) -> None:
    units.start(sleeper("node-1/kubelet"))
    later = Units(tmp_path)

    assert later.names() == ["node-1/kubelet"]
    assert later.alive("node-1/kubelet")
    assert later.process("node-1/kubelet") == units.process("node-1/kubelet")


def test_a_killed_program_is_gone_and_starts_again(units: Units) -> None:
    units.start(sleeper("etcd"))
    first = units.process("etcd")

    units.kill("etcd")
    assert not units.alive("etcd")
    assert not Path(f"/proc/{first}/stat").exists() or units.process("etcd") is None
    units.start_again("etcd")

    assert units.alive("etcd")
    assert units.process("etcd") != first


def test_starting_again_leaves_a_running_program_alone(units: Units) -> None:
    units.start(sleeper("etcd"))
    first = units.process("etcd")

    units.start_again("etcd")

    assert units.process("etcd") == first


def test_another_process_with_the_same_number_is_not_ours(units: Units, tmp_path: Path) -> None:
    units.start(sleeper("etcd"))
    units.kill("etcd")

    (tmp_path / "units/etcd.pid").write_text(f"{os.getpid()} 1\n")

    assert not units.alive("etcd")
    units.kill("etcd")  # it would end this test run


def test_killing_twice_is_fine(units: Units) -> None:
    units.start(sleeper("etcd"))

    units.kill("etcd")
    units.kill("etcd")


def test_an_unknown_name_is_refused_with_the_known_ones(units: Units) -> None:
    units.start(sleeper("etcd"))

    with pytest.raises(SettingError, match="no program 'etcdd' in this sandbox; there are etcd"):
        units.kill("etcdd")


def test_a_program_that_cannot_run_tells_its_log(units: Units) -> None:
    units.start(Unit("kwok", ["/no/such/program"], HERE, os.environ["PATH"]))

    end = time.monotonic() + 60
    while units.alive("kwok") and time.monotonic() < end:
        time.sleep(0.01)

    assert not units.alive("kwok")
    assert "/no/such/program" in units.tail("kwok")
