# SPDX-License-Identifier: Apache-2.0
"""Errors of a card reach who watches it through NVIDIA's management library, nvidia-smi and the device plugin."""

import sys

import pytest

from tests.nvsim.driver import BRANCHES, PROGRAMS, PROJECT, run
from tests.vm.bench import Choice
from tests.vm.machine import Machine

XIDS = (31, 13, 48, 8, 74)
IN_GUEST = "/opt/project/tests/nvsim/programs"
GUEST_PYTHON = "PYTHONPATH=/opt/project:/opt/python python3"
LOST = "Unable to determine the device handle for gpu"
in_a_machine = pytest.mark.parametrize(
    "vm", [pytest.param(Choice("535", "T4,T4", cgpu=False), id="535 on two T4")], indirect=True, scope="module"
)


def history(fall_is_an_event: bool = True) -> str:
    """What the device plugin thinks of both cards at each step of health.py."""
    seen = "seen" if fall_is_an_event else "not seen"
    return f"""lost from the beginning: healthy
found: healthy, healthy
Xid 48 seen: Xid 48, healthy
back: Xid 48, healthy
after a quiet minute: healthy, healthy
Xid 79 {seen}: the card does not answer, healthy
back: the card does not answer, healthy
after a quiet minute: healthy, healthy
Xid 48 seen: Xid 48, healthy
"""


@pytest.mark.parametrize("branch", [pytest.param(branch, id=f"libnvidia-ml of {branch}") for branch in BRANCHES])
def test_every_xid_is_an_event(branch: str) -> None:
    """Each comes once, with its number, in the order in which they happened."""
    done = run(branch, [sys.executable, str(PROGRAMS / "events.py"), *map(str, XIDS)], timeout=50)

    assert done.stdout == "".join(f"True {xid}\n" for xid in XIDS), done.stderr


@pytest.mark.parametrize(
    ("branch", "fall_is_an_event"),
    [
        pytest.param("418", False, id="418, whose library asks the lost card for the number"),
        pytest.param("470", True, id="470"),
        pytest.param("550", True, id="550"),
    ],
)
def test_the_device_plugin_sees_cards_fail_and_come_back(branch: str, fall_is_an_event: bool) -> None:
    """An Xid ends its wait and marks one card; the card is back after a quiet minute; a lost one is found again."""
    at_most = "60" if fall_is_an_event else "6"  # seconds of waiting in vain
    argv = [sys.executable, str(PROGRAMS / "health.py"), at_most]
    done = run(branch, argv, cards="T4,T4", env={"PYTHONPATH": str(PROJECT)}, timeout=200)

    assert done.stdout == history(fall_is_an_event), done.stderr


@in_a_machine
def test_xids_are_events_of_the_module(vm: Machine) -> None:
    """The same library in another process than the one that writes to /proc/nvsim."""
    done = vm.run(f"{GUEST_PYTHON} {IN_GUEST}/events.py {' '.join(map(str, XIDS))}").checked()

    assert done.stdout == "".join(f"True {xid}\n" for xid in XIDS)


@in_a_machine
def test_the_device_plugin_sees_cards_of_the_module_fail_and_come_back(vm: Machine) -> None:
    """The product's own code with NVIDIA's library, through real device files."""
    done = vm.run(f"{GUEST_PYTHON} {IN_GUEST}/health.py")

    assert done.stdout == history(), done.stderr


@in_a_machine
def test_a_card_off_the_bus_is_lost_for_everybody_until_it_is_back(vm: Machine) -> None:
    """nvidia-smi loses that card and shows the other one; no CUDA context can be made there."""
    script = f"""echo xid 0 79 0 > /proc/nvsim; nvidia-smi -L
	grep -c 'lost 1' /proc/nvsim; python3 {IN_GUEST}/hold.py 1 2>&1 | tail -1
	echo restore 0 > /proc/nvsim; nvidia-smi -L; python3 {IN_GUEST}/hold.py 0; echo restore 9 > /proc/nvsim"""
    lost, back = vm.run(script).stdout.split("1\n", 1)

    assert lost.startswith(f"{LOST} 0000:1E:00.0: GPU is lost."), lost
    assert back.count("Tesla T4") == 2
    assert back.endswith("waited 0\nthen 0\n"), back
