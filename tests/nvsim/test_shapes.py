# SPDX-License-Identifier: Apache-2.0
"""The simulated driver takes each branch's own layouts, also of branches that no library is at hand for."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kmod.layouts import ours_for
from tests.kmod.test_abi import our_numbers, ours
from tests.nvsim.driver import BRANCHES, PROGRAMS, SOURCES, bare

ALL = (*BRANCHES, "570", "580")
CONTROL, CARD, UVM = "/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm"
# The ioctls whose layouts move: node, number, structure, the field that answers a call about a client of 0xaaaaaaaa.
MOVING = (
    (CONTROL, "NV_ESC_RM_ALLOC", "nvos64parameters", "status"),
    (CONTROL, "NV_ESC_RM_VID_HEAP_CONTROL", "nvos32parameters", "status"),
    (CONTROL, "NV_ESC_RM_MAP_MEMORY_DMA", "nvos46parameters", "status"),
    (CONTROL, "NV_ESC_RM_UNMAP_MEMORY_DMA", "nvos47parameters", "status"),
    (CARD, "NV_ESC_ALLOC_OS_EVENT", "nvioctlallocosevent", "status"),
)


def command(name: str, size: int) -> int:
    """The command word of an escape."""
    return 3 << 30 | size << 16 | ord("F") << 8 | our_numbers()[name]


def variants(structure: str) -> set[int]:
    """The sizes that a structure has on any branch."""
    return {ours()[key].size for key in ours() if re.fullmatch(rf"{structure}(\d{{3}})?", key)}


def answers(branch: str, rows: list[tuple[str, int, int]], root: Path) -> list[tuple[int, list[int]]]:
    """What the driver of a branch says to bare ioctls."""
    done = subprocess.run(
        [sys.executable, PROGRAMS / "shapes.py", json.dumps(rows)],
        env=bare(branch, str(root)),
        capture_output=True,
        text=True,
        check=True,
    )
    return [(said, wrote) for said, wrote in json.loads(done.stdout)]


@pytest.mark.parametrize("branch", [pytest.param(branch, id=f"the layouts of {branch}") for branch in ALL])
def test_a_branch_takes_its_own_layouts_alone(branch: str, tmp_path: Path) -> None:
    """The right size is answered at the right place, every other branch's size is EINVAL."""
    rows, want = [], []
    for node, name, structure, status in MOVING:
        key = ours_for(structure, int(branch), ours())
        right = ours()[key].size if key and (branch, structure) != ("418", "nvos64parameters") else 0
        for size in sorted(variants(structure) | {right + 4}):
            rows.append((node, command(name, size), size))
            want.append(
                (name, size, 0 if size == right else 22, key and size == right and ours()[key].fields[status][0])
            )
    got = answers(branch, rows, tmp_path)
    for (name, size, errno, place), (said, wrote) in zip(want, got, strict=True):
        assert (name, size, said) == (name, size, errno)
        assert errno or place in wrote, (name, size, wrote)


@pytest.mark.parametrize("branch", [pytest.param(branch, id=f"unified memory of {branch}") for branch in ALL])
def test_a_mapping_of_unified_memory_is_answered_where_the_branch_reads(branch: str, tmp_path: Path) -> None:
    """Its number tells no size, so that the place of the status is what is seen of the layout."""
    key = ours_for("uvmmapexternalallocationparams", int(branch), ours())
    assert key
    number = our_numbers()["UVM_MAP_EXTERNAL_ALLOCATION"]
    [(said, wrote)] = answers(branch, [(UVM, number, 9264)], tmp_path)
    assert (said, wrote) == (0, [ours()[key].fields["rmstatus"][0]])


def rows_of(file: str, pattern: str) -> list[tuple[str, int]]:
    """Names and numbers of a table in the sources."""
    text = (SOURCES / file).read_text()
    numbers = our_numbers()
    return [
        (name, numbers[number] if number in numbers else int(number, 0)) for number, name in re.findall(pattern, text)
    ]


def test_numbers_of_the_tables_are_those_of_the_interface() -> None:
    """Every ioctl that the simulator knows by a name of the interface has its number."""
    escapes = rows_of("escape.c", r"\{ (\w+), (?:CONTROL|DEVICE|EITHER), \"(\w+)\"")
    uvm = rows_of("uvm.c", r"\{ (\w+), \"(\w+)\", ")
    named = [(f"NV_ESC_{name}", number) for name, number in escapes] + [(f"UVM_{name}", number) for name, number in uvm]
    known = [(name, number) for name, number in named if name in our_numbers()]
    assert [(name, number) for name, number in known if our_numbers()[name] != number] == []
    assert len(known) > 40
