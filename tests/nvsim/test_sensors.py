# SPDX-License-Identifier: Apache-2.0
"""Temperature, power, clocks and utilisation, as NVIDIA's tools show them."""

import json
import re
import sys

import pytest

from tests.nvsim.driver import BRANCHES, PROGRAMS, run

# card: milliwatts at rest, limit, least limit; performance state, MHz of graphics and memory at rest
AT_REST = {
    "T4": (10_000, 70_000, 60_000, 8, 300, 405),
    "V100": (42_000, 300_000, 150_000, 0, 135, 877),
    "A10": (16_000, 150_000, 100_000, 8, 210, 405),
    "A100": (52_000, 400_000, 100_000, 0, 210, 1215),
    "P4": (7_000, 75_000, 60_000, 8, 455, 405),
    "P100": (27_000, 250_000, 125_000, 0, 405, 715),
    "H100": (47_000, 350_000, 200_000, 0, 345, 1593),
}
ROWS = [(branch, "T4") for branch in BRANCHES] + [("550", ",".join(AT_REST))]


@pytest.mark.parametrize(("branch", "cards"), [pytest.param(*row, id=f"{row[0]}, {row[1]}") for row in ROWS])
def test_sensors_tell_of_the_card_and_its_load(branch: str, cards: str) -> None:
    """At rest every card has the values of its kind; a kernel warms the first one up and raises clocks and watts."""
    argv, order = [sys.executable, str(PROGRAMS / "sensors.py")], {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    done = run(branch, argv, cards=cards, env=order, timeout=50)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)

    for card, shown in zip(cards.split(","), facts["rest"], strict=True):
        watts, limit, least, pstate, graphics, memory = AT_REST[card]
        assert 30 <= shown.pop("celsius") <= 40
        assert shown == {
            "milliwatts": watts,
            "limits": [limit, limit, limit, least, limit],
            "pstate": pstate,
            "mhz": [graphics, graphics, memory],
            "busy": 0,
            "fan": "Not Supported",
        }
    assert facts["busy"]["busy"] >= 90
    assert (facts["busy"]["pstate"], facts["busy"]["mhz"]) == (0, [1590, 1590, 5000])
    assert facts["busy"]["celsius"] >= 65
    assert 63_000 <= facts["busy"]["milliwatts"] <= 70_000


@pytest.mark.parametrize("branch", [pytest.param(branch, id=branch) for branch in BRANCHES])
def test_nvidia_smi_shows_no_error(branch: str) -> None:
    """The table's line of a card is complete: no fan, temperature, state, watts, memory, load."""
    shown = run(branch, ["nvidia-smi"]).stdout

    assert "ERR!" not in shown
    assert "N/A   36C    P8" in shown
    assert re.search(r"10W / +70W", shown)
