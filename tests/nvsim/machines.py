# SPDX-License-Identifier: Apache-2.0
"""Virtual machines of the simulator's own tests: one for each kernel, in which every branch and card can be played."""

from collections.abc import Sequence
from typing import Final

from tests.nvsim.driver import BRANCHES
from tests.vm.bench import Choice
from tests.vm.machine import Machine

PROGRAMS: Final = "/opt/project/tests/nvsim/programs"


def machine(kernel: str) -> Choice:
    """The machine with the user space of every branch, and CUDA."""
    return Choice("535", "T4", kernel=kernel, cgpu=False, cuda=True, more=BRANCHES)


def play(vm: Machine, branch: str, cards: Sequence[str], command: str, timeout: float = 120) -> str:
    """What a command prints with the driver of that branch and those cards; its failure is raised."""
    order = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}  # else libcuda begins with the fastest card, nvidia-smi with the first
    return vm.run(f"exec play {branch} {','.join(cards)} {command}", order, timeout).checked().stdout
