# SPDX-License-Identifier: Apache-2.0
"""What is known of the cards that the simulated driver plays, and the table of what is tried with which branch."""

from dataclasses import dataclass
from typing import Any, Final

CARD_MIB: Final = {"T4": 15109, "V100": 16160, "A10": 23028, "A100": 40536, "P4": 7611, "P100": 16280, "H100": 81559}
PRODUCT: Final = {
    "T4": "Tesla T4",
    "V100": "Tesla V100-SXM2-16GB",
    "A10": "NVIDIA A10",
    "A100": "NVIDIA A100-SXM4-40GB",
    "P4": "Tesla P4",
    "P100": "Tesla P100-PCIE-16GB",
    "H100": "NVIDIA H100 PCIe",
}
TIMES_MS: Final = {"kernel_ms": 200, "three_kernels_ms": 60, "chained_ms": 40, "graph_ms": 20}


@dataclass(frozen=True, slots=True)
class Row:
    """One machine: a driver branch on a kernel with cards, of which `tried` run the whole CUDA program."""

    branch: str
    kernel: str
    cards: tuple[str, ...]
    tried: tuple[int, ...]

    @property
    def name(self) -> str:
        """The row as a sentence."""
        return f"branch {self.branch} on Linux {self.kernel} with {' '.join(self.cards)}"


# each branch with each kernel, number of cards (1, 2, 4 or more) and card that it knows; each kernel with each number of
# cards and, tried, with each card. Sorted by kernel, so that a machine boots once; the last is that of the other tests.
TABLE: Final = (
    Row("460", "5.10", ("A10",), (0,)),
    Row("550", "5.10", ("H100",), (0,)),
    Row("450", "5.10", ("A100", "P4"), (0,)),
    Row("535", "5.10", ("P4", "P100"), (1,)),
    Row("418", "5.10", ("V100", "P4", "P100", "T4"), (3,)),
    Row("470", "5.10", ("T4", "V100", "P4", "P100"), (1, 2)),
    Row("418", "6.12", ("P4",), (0,)),
    Row("470", "6.12", ("T4",), (0,)),
    Row("460", "6.12", ("A100", "P4"), (0,)),
    Row("550", "6.12", ("P4", "P100"), (1,)),
    Row("450", "6.12", ("T4", "V100", "A100", "P100"), (1,)),
    Row("535", "6.12", ("T4", "V100", "A10", "A100", "H100"), (2, 4)),
    Row("450", "6.1", ("T4",), (0,)),
    Row("535", "6.1", ("H100",), (0,)),
    Row("418", "6.1", ("V100", "P100"), (1,)),
    Row("470", "6.1", ("A10", "A100"), (0,)),
    Row("460", "6.1", ("P4", "T4", "V100", "P100"), (0,)),
    Row("550", "6.1", ("T4", "V100", "A10", "A100"), (1, 3)),
)


def check_everything(facts: dict[str, Any], card: str, index: int = 0) -> None:
    """Asserts what programs/everything.py found on a card: a kernel takes its time and no less, all else is as told.

    `index` is the card's number in the machine, by which its place on the bus is known.
    """
    times = {name: facts[name] for name in TIMES_MS}
    found = {name: value for name, value in facts.items() if value is not True and name not in times}

    assert found.pop("bus") == f"0000:{0x1E + index:02X}:00.0"
    assert found == {"total_mib": CARD_MIB[card], "taken_mib": 64, "given_back_mib": 64}, found
    assert {name: time for name, time in times.items() if time < TIMES_MS[name] * 0.99} == {}
    assert 190 <= times["kernel_ms"] <= 210


def check_runtime(facts: dict[str, Any], branch: str) -> None:
    """Asserts what programs/runtime.py found with a T4 and a P4: the versions that belong together, all else as told."""
    new = int(branch) >= 525
    told = {"cards": 2, "runtime": 12020 if new else 11080, "total_mib": 15109, "taken_mib": 128, "too_much": 2}

    assert facts["driver"] // 1000 == (12 if new else 11)
    assert {name: value for name, value in facts.items() if value is not True and name != "driver"} == told
