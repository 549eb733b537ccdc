# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's nvidia-smi, NVML and libcuda of every branch on the simulated driver, in user space."""

import errno
import json
import re
import sys

import pytest

from tests.nvsim.cards import CARD_MIB, PRODUCT, check_everything, check_runtime
from tests.nvsim.driver import BRANCHES, CARDS, PROGRAMS, knows, run
from tests.vm.packages import cuda_of, fetch_cuda

UNKNOWN = "is not known"  # the simulator's log on a number that no table names
PAIRS = [(branch, card) for branch in BRANCHES for card in CARDS if knows(branch, card)]


STRANGE = """
import fcntl
for path, command in (("/dev/nvidiactl", 0xC0084663), ("/dev/nvidia-uvm", 999)):
    with open(path, "r+b", buffering=0) as node:
        for _ in range(3):
            try:
                fcntl.ioctl(node, command, bytearray(8))
            except OSError as error:
                print(error.errno)
"""


def test_an_unknown_ioctl_is_logged_once() -> None:
    """It is refused each time, and its number and size are told the first time."""
    done = run("535", [sys.executable, "-c", STRANGE])

    assert done.stdout.split() == [str(errno.EINVAL)] * 6, done.stdout + done.stderr
    assert done.stderr.splitlines() == [
        "refused ioctl: 99 (0x63) of 8 bytes is not known",
        "refused ioctl of UVM: 999 (0x3e7) of 0 bytes is not known",
    ]


@pytest.mark.parametrize(
    ("branch", "card"), [pytest.param(*pair, id=f"libcuda of {pair[0]} on a {pair[1]}") for pair in PAIRS]
)
def test_a_cuda_program_does_everything(branch: str, card: str) -> None:
    """Memory, copies, fills, kernels, streams, graphs and errors are as on a card; a kernel takes its time and no less."""
    done = run(branch, [sys.executable, str(PROGRAMS / "everything.py")], cards=card, timeout=120)

    assert done.returncode == 0, done.stdout + done.stderr
    assert UNKNOWN not in done.stderr, "what NVIDIA's library asks for is in the registry"
    check_everything(json.loads(done.stdout), card)


@pytest.mark.parametrize("branch", [pytest.param(branch, id=f"libcuda of {branch}") for branch in BRANCHES])
def test_four_threads_do_everything_at_once(branch: str) -> None:
    """Contexts and streams of four threads, without an error and every byte compared."""
    done = run(branch, [sys.executable, str(PROGRAMS / "stress.py"), "4", "5", "alone"], timeout=120)

    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout) == {"done": [5] * 4, "wrong": [], "peer": 0}


@pytest.mark.parametrize(
    "branch", [pytest.param(branch, id=f"libcudart on {branch}") for branch in BRANCHES if branch != "418"]
)
def test_a_program_of_the_runtime_api_runs(branch: str) -> None:
    """NVIDIA's libcudart, the newest that the branch accepts (none that 418 accepts is to be had)."""
    libraries = fetch_cuda(cuda_of(branch)) / "lib"
    program = [sys.executable, str(PROGRAMS / "runtime.py"), str(next(libraries.glob("libcudart.so.*")))]
    done = run(branch, program, cards="T4,P4", timeout=120)

    assert done.returncode == 0, done.stdout + done.stderr
    assert UNKNOWN not in done.stderr
    check_runtime(json.loads(done.stdout), branch)


@pytest.mark.parametrize("branch", [pytest.param(branch, id=f"nvidia-smi of {branch}") for branch in BRANCHES])
def test_nvidia_smi_shows_the_configured_cards(branch: str) -> None:
    """The table, -L, -q and --query-gpu agree on two different cards with memory as told."""
    cards = {"cards": "T4,V100", "total_mib": "15109,6043"}
    query = run(
        branch, ["nvidia-smi", "--query-gpu=name,memory.total,memory.used", "--format=csv,noheader,nounits"], **cards
    )
    listed = run(branch, ["nvidia-smi", "-L"], **cards)
    table = run(branch, ["nvidia-smi"], **cards)
    full = run(branch, ["nvidia-smi", "-q"], **cards)

    assert query.stdout.splitlines() == ["Tesla T4, 15109, 0", "Tesla V100-SXM2-16GB, 6043, 0"]
    assert [line.split(" (")[0] for line in listed.stdout.splitlines()] == [
        "GPU 0: Tesla T4",
        "GPU 1: Tesla V100-SXM2-16GB",
    ]
    assert re.findall(r"(\d+)MiB / +(\d+)MiB", table.stdout) == [("0", "15109"), ("0", "6043")]
    assert "No running processes found" in table.stdout
    assert full.returncode == 0
    assert full.stdout.count("GPU UUID") == 2
    assert UNKNOWN not in full.stderr + table.stderr


@pytest.mark.parametrize("card", [pytest.param(card, id=card) for card in CARDS])
def test_each_card_has_its_name_and_memory(card: str) -> None:
    """The newest branch shows every identity under NVIDIA's name with its own memory."""
    shown = run("550", ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"], cards=card)

    assert shown.stdout.splitlines() == [f"{PRODUCT[card]}, {CARD_MIB[card]}"]


@pytest.mark.parametrize(
    ("branch", "card"),
    [
        pytest.param("418", "A100", id="418 predates Ampere"),
        pytest.param("450", "A10", id="450 predates GA102"),
        pytest.param("470", "H100", id="470 predates Hopper"),
    ],
)
def test_a_branch_refuses_a_card_it_predates(branch: str, card: str) -> None:
    """libcuda finds no device (100), as it would with the real card."""
    done = run(branch, [sys.executable, str(PROGRAMS / "everything.py")], cards=card)

    assert "cuInit returned 100" in done.stderr


def test_eight_cards_work_side_by_side() -> None:
    """A program reaches the last of eight cards."""
    done = run(
        "535",
        [sys.executable, str(PROGRAMS / "everything.py"), "7"],
        cards="T4,V100,A10,A100,P4,P100,T4,T4",
        timeout=120,
    )

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("settings", "want"),
    [
        pytest.param(
            {"cards": "T5"}, "cards=T5 is not played; take T4, V100, A10, A100, P4, P100 or H100", id="an unknown card"
        ),
        pytest.param(
            {"cards": ",".join(["T4"] * 9)}, "cards= names 9 cards; from 1 to 8 can be played", id="too many cards"
        ),
        pytest.param(
            {"env": {"NVSIM_BRANCH": "440"}},
            "branch=440 is not played; take 418, 450, 460, 470, 535, 550, 570 or 580",
            id="an unknown branch",
        ),
    ],
)
def test_what_cannot_be_played_is_refused_with_the_remedy(settings: dict[str, object], want: str) -> None:
    """The message names the value, the rule and the choices."""
    assert want in run("535", ["nvidia-smi", "-L"], **settings).stderr
