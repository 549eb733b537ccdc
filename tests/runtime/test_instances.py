# SPDX-License-Identifier: Apache-2.0
"""Instances come and go; nothing of them stays behind."""

import json
import os
from pathlib import Path

import pytest

from cgpu.core.errors import UnavailableError
from cgpu.runtime import instances as module
from cgpu.runtime.instances import Owner
from cgpu.runtime.request import Request, Slice
from tests.runtime.documents import T4
from tests.runtime.fakes import Machine

ID = "0123456789ab"
REQUEST = Request((Slice(T4[0], 1 << 30),))
GONE = 2**22 + 1  # beyond the largest pid


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def owner(state: Path, maker: int = GONE) -> Owner:
    return Owner("docker", ID, str(state), maker)


def test_an_instance_is_made_and_ended(machine: Machine, tmp_path: Path) -> None:
    nodes = machine.instances.make(ID, owner(tmp_path), REQUEST)

    assert [(Path(node.source).name, node.path, node.major, node.minor) for node in nodes] == [
        ("nvidia-uvm", "/dev/nvidia-uvm", 241, 1),
        ("nvidia0", "/dev/nvidia0", 240, 0),
        ("nvidiactl", "/dev/nvidiactl", 241, 0),
    ]
    assert machine.instances.has(ID)
    machine.instances.end(ID)
    assert machine.left == []
    assert not machine.instances.has(ID)


def test_systemd_finds_an_instances_numbers_by_name_while_it_lives(machine: Machine, tmp_path: Path) -> None:
    """runc tells systemd of no device without a name in /dev/char, and a reload of systemd takes such devices away."""
    chars = tmp_path / "dev/char"
    chars.mkdir(parents=True)
    (chars / "240:0").symlink_to("/run/cgpu/of-an-earlier-module/nvidia0")
    (chars / "1:3").symlink_to("../null")
    nodes = machine.instances.make(ID, owner(tmp_path), REQUEST)

    named = {f"{node.major}:{node.minor}": node.source for node in nodes} | {"1:3": "../null"}
    assert {link.name: str(link.readlink()) for link in chars.iterdir()} == named
    machine.instances.end(ID)
    assert [link.name for link in chars.iterdir()] == ["1:3"]


def test_numbers_that_cannot_be_named_are_said_and_leave_nothing(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "dev").write_text("")

    with pytest.raises(UnavailableError, match="dev/char cannot name the nodes of 0123456789ab: "):
        machine.instances.make(ID, owner(tmp_path), REQUEST)
    assert machine.left == []


def test_what_an_earlier_life_left_is_ended_first(machine: Machine, tmp_path: Path) -> None:
    machine.instances.make(ID, owner(tmp_path), REQUEST)
    machine.instances.make(ID, owner(tmp_path), REQUEST)

    assert [command.split()[0] for command in machine.kernel.commands] == ["create", "destroy", "create"]


def test_a_busy_instance_is_ended_when_the_kernel_lets_it_go(machine: Machine, tmp_path: Path) -> None:
    machine.instances.make(ID, owner(tmp_path), REQUEST)
    machine.kernel.busy = 3
    machine.instances.end(ID)

    assert machine.left == []


def test_an_instance_that_stays_busy_keeps_its_note(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BUSY_S", 0)
    machine.instances.make(ID, owner(tmp_path), REQUEST)
    machine.kernel.busy = 1000

    with pytest.raises(UnavailableError, match="busy"):
        machine.instances.end(ID)
    assert machine.instances.has(ID)


def test_after_the_module_was_unloaded_the_note_goes(machine: Machine, tmp_path: Path) -> None:
    machine.instances.make(ID, owner(tmp_path), REQUEST)
    (machine.kernel.path / "version").unlink()
    (machine.kernel.path / "inst_ctl").unlink()
    machine.instances.end(ID)

    assert not machine.instances.has(ID)


@pytest.mark.parametrize(
    ("alive", "state", "left"),
    [
        pytest.param(False, False, [ID], id="killed while it was made"),
        pytest.param(True, False, [], id="being made"),
        pytest.param(False, True, [], id="running"),
    ],
)
def test_leftovers(machine: Machine, tmp_path: Path, alive: bool, state: bool, left: list[str]) -> None:
    place = tmp_path / "state"
    if state:
        place.mkdir()
    machine.instances.make(ID, owner(place, os.getpid() if alive else GONE), REQUEST)

    assert machine.instances.leftovers() == left


def test_a_pid_that_was_given_to_somebody_else_makes_nothing(machine: Machine, tmp_path: Path) -> None:
    machine.instances.make(ID, owner(tmp_path / "state", os.getpid()), REQUEST)
    note = machine.run / f"{ID}.json"
    note.write_text(json.dumps(json.loads(note.read_text()) | {"born": "1"}))

    assert machine.instances.leftovers() == [ID]


@pytest.mark.parametrize("text", ["", "{", '{"runtime": "kubernetes", "containers": ["a"]}'])
def test_notes_of_others_are_left_alone(machine: Machine, text: str) -> None:
    machine.run.mkdir()
    (machine.run / f"{ID}.json").write_text(text)

    assert machine.instances.leftovers() == []
