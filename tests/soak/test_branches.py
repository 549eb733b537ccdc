# SPDX-License-Identifier: Apache-2.0
"""The full product: every branch on every kernel with every card that it knows, all in one machine, and each alone,
twice and four times."""

import json
import time
from collections.abc import Callable
from itertools import product

import pytest

from tests.nvsim.cards import check_everything
from tests.nvsim.driver import BRANCHES, CARDS, knows
from tests.nvsim.look import check_tools
from tests.nvsim.machines import PROGRAMS, machine, play

NUMBERS = (1, 2, 4)
ROUNDS = 25
MACHINES = [
    pytest.param(machine(kernel), branch, id=f"branch {branch} on Linux {kernel}")
    for kernel, branch in product(("5.10", "6.1", "6.12"), BRANCHES)
]
everywhere = pytest.mark.parametrize(("vm", "branch"), MACHINES, indirect=["vm"])


@pytest.mark.timeout(1800)
@everywhere
def test_all_cards_at_once(vm, branch: str, record_property: Callable[[str, object], None]) -> None:
    """One machine with each card that the branch knows: the tools show all, the CUDA program does everything on each."""
    started, cards = time.monotonic(), [card for card in CARDS if knows(branch, card)]
    words = " ".join(str(index) for index in range(len(cards)))
    shown = json.loads(play(vm, branch, cards, f"python3 {PROGRAMS}/look.py {words}", timeout=900))

    check_tools(shown, branch, cards, 0)
    for index, card in enumerate(cards):
        check_everything(shown["everything"][str(index)], card, index)
    figure = f"{branch}: {' '.join(cards)} in {time.monotonic() - started:.0f} s"
    record_property("figure", figure)
    print(f"soak: {figure}")


@pytest.mark.timeout(1800)
@everywhere
def test_every_card_in_every_number(vm, branch: str, record_property: Callable[[str, object], None]) -> None:
    """The CUDA program on the last card, while NVIDIA's tools look at all of them."""
    started, cards = time.monotonic(), [card for card in CARDS if knows(branch, card)]
    for card, number in product(cards, NUMBERS):
        chosen, last = [card] * number, number - 1
        shown = json.loads(play(vm, branch, chosen, f"python3 {PROGRAMS}/look.py {last}"))
        check_tools(shown, branch, chosen, last)
        check_everything(shown["everything"][str(last)], card, last)
    figure = f"{branch}: {len(cards) * len(NUMBERS)} machines in {time.monotonic() - started:.0f} s"
    record_property("figure", figure)
    print(f"soak: {figure}")


@pytest.mark.timeout(1800)
@everywhere
def test_four_threads_for_long(vm, branch: str) -> None:
    """Many rounds of allocations, copies, launches, events and IPC without an error."""
    facts = json.loads(play(vm, branch, ("T4",), f"python3 {PROGRAMS}/stress.py 4 {ROUNDS}", timeout=900))

    assert facts == {"done": [ROUNDS] * 4, "wrong": [], "peer": 0}


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("vm", [pytest.param(machine("6.1"), id="Linux 6.1")], indirect=True)
@pytest.mark.parametrize("branch", ["535", "550"])
def test_cupy_compiles_its_own_kernels(vm, branch: str) -> None:
    """An addition of arrays goes all the way from CuPy's compiler to the card."""
    facts = json.loads(play(vm, branch, ("T4",), f"python3 {PROGRAMS}/arrays.py elementwise", timeout=900))

    assert facts["elementwise"] is True
