# SPDX-License-Identifier: Apache-2.0
"""kmod/abi equals the vendor's own headers, generated tables and recorded facts, field by field: a moved field is red."""

import re
import subprocess
import zipfile
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.kmod import layouts
from tests.kmod.dwarf import Layout, layouts_of, macros_of, plain, values_of
from tests.kmod.layouts import ABI, DATA, LENGTHS, differences, ours_for, recorded, table_layouts
from tests.vm.cache import cache_root, ensure
from tests.vm.packages import fetch_sources, pip

TABLES: Final = "tinygrad==0.14.0"
SDK: Final = "src/common/sdk/nvidia/inc"
OPEN_FOLDERS: Final = (SDK, "kernel-open/common/inc", "kernel-open/nvidia-uvm", "src/nvidia/arch/nvalloc/unix/include")
OPEN_HEADERS: Final = (
    "nvtypes.h",
    "nvos.h",
    "nvstatus.h",
    "alloc/alloc_channel.h",
    "nv_escape.h",
    "nv-ioctl.h",
    "nv-ioctl-numbers.h",
    "uvm_ioctl.h",
    "uvm_linux_ioctl.h",
)
LAYER_FOLDERS: Final = ("common/inc", "nvidia-uvm")
# The open layer of the other branches: 418 and 450 declare their escapes in a header that only compiles in a kernel tree.
LAYER_HEADERS: Final = {
    418: ("uvm_ioctl.h", "uvm_linux_ioctl.h"),
    450: ("uvm_ioctl.h", "uvm_linux_ioctl.h"),
    460: ("nv-ioctl.h", "uvm_ioctl.h", "uvm_linux_ioctl.h"),
    470: ("nv-ioctl.h", "uvm_ioctl.h", "uvm_linux_ioctl.h"),
    550: ("nv-ioctl.h", "nv-ioctl-numbers.h", "uvm_ioctl.h", "uvm_linux_ioctl.h"),
}


@cache
def ours() -> dict[str, Layout]:
    return layouts_of(["nvidia_rm.h"], [ABI])


@cache
def our_numbers() -> dict[str, int]:
    macros = {
        name: text
        for name, text in macros_of(["nvidia_rm.h"], [ABI]).items()
        if name.startswith(("NV", "UVM_")) or re.match(r"[A-Z0-9]+_[A-Z0-9_]+_[AB]$", name)
    }
    return values_of({name: text for name, text in macros.items() if "'" not in text}, ["nvidia_rm.h"], [ABI])


@cache
def vendor(branch: int) -> tuple[tuple[str, ...], tuple[Path, ...]]:
    """Headers and folders of a branch, fetched into the cache."""
    root = fetch_sources(str(branch))
    if branch != 535:
        return LAYER_HEADERS[branch], tuple(root / folder for folder in LAYER_FOLDERS)
    sdk = root / SDK
    more = [str(file.relative_to(sdk)) for part in ("class", "ctrl") for file in sorted((sdk / part).rglob("*.h"))]
    return (*OPEN_HEADERS, *more), tuple(root / folder for folder in OPEN_FOLDERS)


@cache
def generated(branch: int) -> dict[str, Layout]:
    """The structures of the generated tables of a branch that no package has headers for."""

    def build(place: Path) -> None:
        subprocess.run(
            [pip(cache_root()), "-m", "pip", "download", "-q", "--no-deps", "-d", str(place), TABLES], check=True
        )

    place = ensure(
        cache_root() / "nvidia-tables" / TABLES.split("==")[1], [TABLES], build, "generated tables of 570 and 580"
    )
    wheel = next(place.glob("*.whl"))
    with zipfile.ZipFile(wheel) as opened:
        return table_layouts(opened.read(f"tinygrad/runtime/autogen/nv_{branch}.py").decode())


def compare(branch: int, theirs: dict[str, Layout], depth: str = "whole") -> tuple[int, list[str]]:
    """How many of their structures we have for the branch, and what differs."""
    names = [name for name in theirs if ours_for(name, branch, ours()) is not None]
    return len(names), [line for name in names for line in differences(name, branch, theirs[name], ours(), depth)]


@pytest.mark.parametrize(
    ("branch", "want_at_least"),
    [
        pytest.param(418, 18, id="418: the open layer"),
        pytest.param(450, 20, id="450: the open layer"),
        pytest.param(460, 25, id="460: the open layer"),
        pytest.param(470, 25, id="470: the open layer"),
        pytest.param(535, 75, id="535: all of the vendor's headers"),
        pytest.param(550, 25, id="550: the open layer"),
    ],
)
def test_layouts_equal_the_vendors_headers(branch: int, want_at_least: int) -> None:
    count, findings = compare(branch, layouts_of(*vendor(branch)))
    assert (findings, count >= want_at_least) == ([], True), count


@pytest.mark.parametrize("branch", [570, 580])
def test_layouts_equal_the_generated_tables(branch: int) -> None:
    count, findings = compare(branch, generated(branch), "top")
    assert (findings, count >= 60) == ([], True), count


@pytest.mark.parametrize("file", ["layouts.txt", "measured.txt"])
def test_layouts_equal_the_recorded_facts(file: str) -> None:
    rows = [row for row in recorded(DATA / file) if row[1] <= 580]
    assert [
        line
        for name, branch, layout in rows
        for line in differences(name, branch, layout, ours(), "some" if file == "measured.txt" else "top")
    ] == []
    assert rows


@pytest.mark.parametrize(("branch", "want_at_least"), [(535, 130), (550, 35), (470, 30)])
def test_numbers_equal_the_vendors_macros(branch: int, want_at_least: int) -> None:
    headers, folders = vendor(branch)
    macros = macros_of(headers, folders)
    spelled = {
        name: next((n for n in (name, name.replace("_CTRL_", "_CTRL_CMD_")) if n in macros), None)
        for name in our_numbers()
    }
    common = {name: there for name, there in spelled.items() if there is not None}
    values = values_of(dict.fromkeys(common.values(), ""), headers, folders)
    wrong = {
        name: (hex(our_numbers()[name]), hex(values[there]))
        for name, there in common.items()
        if our_numbers()[name] != values[there]
    }
    assert (wrong, len(common) >= want_at_least) == ({}, True), len(common)


def test_status_codes_equal_the_vendors_list() -> None:
    """They stand in no macro of the vendor's but in a list of its own."""
    text = (fetch_sources("535") / SDK / "nvstatuscodes.h").read_text()
    theirs = {name: int(value, 16) for name, value in re.findall(r"NV_STATUS_CODE\((\w+),\s+(0x\w+)", text)}
    mine = {name: value for name, value in our_numbers().items() if re.match("NV_(OK|ERR|WARN)", name)}
    assert {name: value for name, value in mine.items() if theirs.get(name) != value} == {}
    assert len(mine) > 20


@pytest.mark.parametrize(("name", "branch", "expression"), LENGTHS)
def test_lengths_that_grow_are_the_recorded_ones(name: str, branch: int, expression: str) -> None:
    numbers = our_numbers()
    terms = [numbers[term] if term in numbers else int(term) for term in re.split(r" [*+] ", expression)]
    length = terms[0] * terms[1] + terms[2] if len(terms) == 3 else terms[0]
    assert {
        layout.size for there, number, layout in recorded(DATA / "layouts.txt") if (there, number) == (name, branch)
    } == {length}


def test_a_moved_field_is_found() -> None:
    theirs = layouts_of(*vendor(535))["nvos54parameters"]
    moved = Layout(theirs.size, {**theirs.fields, "cmd": (12, 4), "flags": (8, 4)})
    assert differences("NVOS54_PARAMETERS", 535, moved, ours()) == [
        "NVOS54_PARAMETERS.cmd: 4 bytes at 0xc, ours 4 at 0x8",
        "NVOS54_PARAMETERS.flags: 4 bytes at 0x8, ours 4 at 0xc",
    ]
    grown = Layout(40, theirs.fields)
    assert differences("NVOS54_PARAMETERS", 535, grown, ours()) == ["NVOS54_PARAMETERS: 40 bytes, ours 32"]


def test_every_structure_of_ours_is_compared_somewhere() -> None:
    seen = {
        ours_for(plain(name), branch, ours())
        for file in ("layouts.txt", "measured.txt")
        for name, branch, _ in recorded(DATA / file)
    }
    for branch in (418, 535):
        seen |= {ours_for(name, branch, ours()) for name in layouts_of(*vendor(branch))}
    alone = {name for name in set(ours()) - seen if name.startswith(("nv", "uvm", "rs"))}
    assert sorted(name for name in alone - layouts.UNCOMPARED if not name.startswith(layouts.NESTED)) == []
