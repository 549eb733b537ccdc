# SPDX-License-Identifier: Apache-2.0
"""The limit is what every library says and what no call passes: the vendor's libraries in an instance, branch by branch.

The branches and the kernels meet pairwise. What the product documentation of the original prints for a share is checked
by nvidia-smi on cards of the same sizes.
"""

import json
from pathlib import Path
from typing import Final

import pytest

from cgpu.core.memory import visible_mib
from tests.kmod.containers import MIB, output
from tests.vm.bench import Choice
from tests.vm.machine import Machine
from tests.vm.programs import compile_c

FILL: Final = Path(__file__).parent / "programs/fill.c"
T4, V100, A10 = 15109, 16130, 23028
SIZES: Final = f"{T4},{A10},{A10},{V100}"
PAIRS: Final = {"418": "6.1", "450": "6.12", "470": "6.1", "535": "6.12", "550": "6.1"}
HANDED_ON: Final = ("470", "535")
NOT_SUPPORTED: Final = 801
"""What cudaMallocManaged returns in an instance, on every branch."""


def choice(branch: str) -> Choice:
    """Four cards of the published sizes."""
    return Choice(branch, "T4,T4,T4,T4", PAIRS[branch], SIZES, cuda=True)


def on(*branches: str) -> pytest.MarkDecorator:
    """Runs a test on these branches."""
    machines = [pytest.param(choice(branch), id=f"{branch} on Linux {PAIRS[branch]}") for branch in branches]
    return pytest.mark.parametrize("vm", machines, indirect=True, scope="module")


def branch_of(request: pytest.FixtureRequest) -> str:
    """The driver branch of the machine that a test runs on."""
    chosen: Choice = request.node.callspec.params["vm"]
    return chosen.branch


every = on(*PAIRS)
SMI: Final = "nvidia-smi --query-gpu=memory.total,memory.used,memory.free --format=csv,noheader,nounits"
FOUR: Final = (3003, 4004, 5006, 6007)
PUBLISHED: Final = (
    {0: (T4, 6, 15, 6043), 1: (A10, 3, 23, 3003), 2: (A10, 5, 23, 5006)},
    {0: (T4, 8, 15, 8058), 3: (V100, 4, 15, 4301)},
    {1: (A10, 4, 23, 4004), 2: (A10, 6, 23, 6007), 3: (V100, 3, 15, 3226)},
)
"""Containers: by card its MiB, the numerator and the denominator of the share, and the MiB that are printed."""


@every
def test_nvidia_smi_prints_the_published_figures(vm: Machine) -> None:
    """The shares of the documentation's tables, on cards of the sizes that the tables were made with; two cards stay unseen."""
    ask = "".join(
        f"share s{number} {' '.join(f'{card}:{visible_mib(*row[:3])}' for card, row in shares.items())}; inside s{number} {SMI};"
        for number, shares in enumerate(PUBLISHED)
    )

    shown = [f"{row[3]}, 0, {row[3]}" for shares in PUBLISHED for row in shares.values()]
    assert output(vm, ask).splitlines() == shown


@every
def test_every_library_says_the_limits_of_four_cards(vm: Machine, request: pytest.FixtureRequest) -> None:
    """cuDeviceTotalMem, cuMemGetInfo, cudaMemGetInfo, NVML and nvidia-smi agree; used and free add up.

    The runtime of the packages is too new for 418. A neighbour on the same card and a program of the host hold memory
    meanwhile, and neither is seen.
    """
    vm.put("/tmp/fill", compile_c("fill", [FILL]))
    runtime = "" if branch_of(request) == "418" else "/opt/cuda/lib/libcudart.so.*"
    shares = " ".join(f"{card}:{limit}" for card, limit in enumerate(FOUR))
    *_, host_sees, told = output(
        vm,
        f"""share other 0:2000; share four {shares}
hold inside other /tmp/fill; hold /tmp/fill /dev 1000; nvidia-smi --query-compute-apps=pid --format=csv,noheader | wc -l
inside four python3 $P/sizes.py {runtime}; let_go""",
    ).splitlines()
    facts = json.loads(told)
    seen = {
        "cuDeviceTotalMem": [row[0] for row in facts["cuda"]],
        "cuMemGetInfo": [row[1] for row in facts["cuda"]],
        **({"cudaMemGetInfo": [row[0] for row in facts["runtime"]]} if runtime else {}),
        "nvidia-smi": [row[0] for row in facts["smi"]],
        "NVML": [row[0] for row in facts["nvml"]],
    }

    assert {name: tuple(sizes) for name, sizes in seen.items()} == dict.fromkeys(seen, FOUR)
    assert [total - used - free for total, used, free in facts["nvml"] + facts["smi"]] == [0] * 8
    assert not runtime or [row[2] for row in facts["nvml"]] == [row[1] for row in facts["runtime"]]
    assert (host_sees, facts["nvml_pids"]) == ("2", [[1]] * 4)


@every
def test_every_call_that_gives_memory_meets_the_limit(vm: Machine) -> None:
    """Each takes what was asked, gives it back, and returns 2 (out of memory) beyond the limit; managed memory is refused, which the kernel's log says."""
    script = (
        "dmesg -C; share full 1:3000; inside full python3 $P/allocate.py 64; echo; dmesg | grep -c 'full: .* managed'"
    )
    told, lines = output(vm, script).splitlines()
    facts = json.loads(told)
    managed, fill = facts.pop("managed"), facts.pop("fill")

    assert facts == {name: [2, 256, 256] for name in facts}
    assert {"malloc", "pitch", "array", "volume"} <= set(facts)
    assert managed == [NOT_SUPPORTED, 0, 0]
    assert int(lines) >= 1
    assert fill[0] == 2
    assert fill[1] < 2


@on(*HANDED_ON)
def test_processes_of_a_container_share_its_limit(vm: Machine) -> None:
    """Memory that one hands to another counts once and for as long as one has it; a killed process gives back."""
    facts = json.loads(output(vm, "share both 1:3000; inside both python3 $P/together.py /proc/cgpu_km/1/both"))
    contexts = facts["contexts"]

    assert facts["given"] == contexts + 512
    assert facts["taken"] == [0, contexts + 512]
    assert facts["giver_killed"] == contexts // 2 + 512
    assert facts["both_killed"] == facts["all_killed"] == 0
    assert facts["halves"] == [0, 0, 2]
    assert facts["after_one_died"] == 0


@on("535")
def test_managed_memory_is_charged_where_the_administrator_says_so(vm: Machine) -> None:
    """With managed=charge it works, up to the limit, and counts like the rest until it is freed."""
    script = """unload; load-cgpu managed=charge; share full 1:3000
inside full python3 $P/allocate.py 512 > /tmp/a; inside full python3 $P/allocate.py 3001 > /tmp/b; cat /tmp/a; echo; cat /tmp/b
unshare_all; unload; load-cgpu"""
    fits, passes = (json.loads(line)["managed"] for line in output(vm, script).splitlines())

    assert fits == [0, 512, 512]
    assert passes[0] in {2, NOT_SUPPORTED}


@on("550")
def test_the_last_mib_of_a_sibling_works(vm: Machine) -> None:
    """Two instances that share a whole card each get all of theirs, to the MiB, and a size that the card has no more."""
    vm.put("/tmp/fill", compile_c("fill", [FILL]))
    half = T4 // 2
    shown = output(
        vm,
        f"""share one 0:{half}; share two 0:{T4 - half}; hold inside one /tmp/fill; hold inside two /tmp/fill
cat /proc/cgpu_km/inst_ctl; let_go; cat /proc/cgpu_km/inst_ctl""",
    )
    rows = shown.splitlines()

    assert rows[:2] == [f"{half} MiB, then 0x51", f"{T4 - half} MiB, then 0x51"]
    assert [f"used={size * MIB} " in row for size, row in zip((half, T4 - half), rows[2:4], strict=True)] == [True] * 2
    assert [" used=0 " in row for row in rows[4:6]] == [True] * 2
