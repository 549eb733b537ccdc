# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's user space of every branch on nvsim.ko, over branches, kernels, cards and their number."""

import json
from itertools import product

import pytest

from tests.nvsim.cards import TABLE, Row, check_everything, check_runtime
from tests.nvsim.driver import BRANCHES, CARDS, knows
from tests.nvsim.look import check_tools
from tests.nvsim.machines import PROGRAMS, machine, play

KERNELS = ("5.10", "6.1", "6.12")
here = pytest.mark.parametrize("vm", [pytest.param(machine("6.1"), id="Linux 6.1")], indirect=True)


def number(row: Row) -> str:
    """One, two or many cards."""
    return {1: "one", 2: "two"}.get(len(row.cards), "many")


def test_the_table_covers_every_pair() -> None:
    """Every pair of branch, kernel, card and number of cards that exists is in a row; every card is tried on each kernel.

    The CUDA program tries every pair of branch and card in user space too, where it needs a second. The rows of 5.10, on
    which the product does not run, are left to `make soak`, where they are part of the full product.
    """
    numbers = ("one", "two", "many")

    assert {(row.branch, row.kernel) for row in TABLE} == set(product(BRANCHES, KERNELS))
    assert {(row.branch, number(row)) for row in TABLE} == set(product(BRANCHES, numbers))
    assert {(row.kernel, number(row)) for row in TABLE} == set(product(KERNELS, numbers))
    assert {(row.kernel, row.cards[index]) for row in TABLE for index in row.tried} == set(product(KERNELS, CARDS))
    assert {(row.branch, card) for row in TABLE for card in row.cards} == {
        (branch, card) for branch, card in product(BRANCHES, CARDS) if knows(branch, card)
    }


@pytest.mark.parametrize(
    ("vm", "row"),
    [pytest.param(machine(row.kernel), row, id=row.name) for row in TABLE if row.kernel != "5.10"],
    indirect=["vm"],
)
def test_nvidias_tools_and_a_cuda_program_run(vm, row: Row) -> None:
    """nvidia-smi, nvidia-ml-py and the process list show the cards; the CUDA program does everything on each."""
    words = " ".join(map(str, row.tried))
    shown = json.loads(play(vm, row.branch, row.cards, f"python3 {PROGRAMS}/look.py {words}"))

    check_tools(shown, row.branch, row.cards, row.tried[0])
    assert set(shown["everything"]) == {str(index) for index in row.tried}
    for index in row.tried:
        check_everything(shown["everything"][str(index)], row.cards[index], index)


@here
@pytest.mark.parametrize("branch", ["418", "450", "470", "550"])
def test_two_processes_share_memory_by_ipc(vm, branch: str) -> None:
    """Each reads what the other wrote; the memory counts once on the card and among processes, until it is freed."""
    facts = json.loads(play(vm, branch, ("T4",), f"python3 {PROGRAMS}/ipc.py"))

    assert {name: value for name, value in facts.items() if value is not True} == {
        "taken_mib": 0,
        "closed_mib": 0,
        "processes": 2,
    }


@here
@pytest.mark.parametrize("branch", ["418", "460", "550"])
def test_four_threads_do_everything_at_once(vm, branch: str) -> None:
    """Contexts and streams of four threads, and a second process that opens their memory, without an error."""
    facts = json.loads(play(vm, branch, ("T4",), f"python3 {PROGRAMS}/stress.py 4 2"))

    assert facts == {"done": [2] * 4, "wrong": [], "peer": 0}


@here
@pytest.mark.parametrize(("branch", "library"), [("450", "libcudart.so.11.0"), ("550", "libcudart.so.12")])
def test_a_program_of_the_runtime_api_runs(vm, branch: str, library: str) -> None:
    """NVIDIA's libcudart of two generations through the module; the other branches run it in user space."""
    facts = json.loads(play(vm, branch, ("T4", "P4"), f"python3 {PROGRAMS}/runtime.py {library}"))

    check_runtime(facts, branch)


@here
@pytest.mark.parametrize("branch", ["535", "550"])
def test_cupy_runs(vm, branch: str) -> None:
    """Arrays, the memory pool, out of memory, and a kernel from source."""
    facts = json.loads(play(vm, branch, ("T4",), f"python3 {PROGRAMS}/arrays.py", timeout=300))
    took = facts.pop("kernel_ms")

    assert {name: value for name, value in facts.items() if value is not True} == {"cards": 1, "taken_mib": 256}
    assert took == pytest.approx(50, rel=0.05)


@here
def test_a_branch_that_the_machine_lacks_is_named(vm) -> None:
    """`play` says what is missing before it touches the driver."""
    shown = vm.run("play 440 T4 nvidia-smi")

    assert (shown.code, shown.stderr) == (
        125,
        "play: the machine has no user space of branch 440 in /opt/nvidia-440\n",
    )
