# SPDX-License-Identifier: Apache-2.0
"""Our copy of NVIDIA's interface beside independent ones: which structure of ours a branch uses, and what differs."""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.kmod.dwarf import Layout, plain

ABI: Final = Path(__file__).parents[2] / "kmod/abi"
DATA: Final = Path(__file__).parent / "data"
# Structures of ours for old branches only; every other suffix names the first branch that has the layout.
OLD: Final = {
    "nvos32parameters418": (418, 450),
    "nvioctlcardinfo418": (418, 450),
    "nvioctlallocosevent418": (418, 450),
    "uvmregistergpuparams418": (418, 418),
    "uvmunmapexternalparams418": (418, 418),
    "uvmgpumappingattributes418": (418, 418),
    "uvmmapexternalallocationparams418": (418, 418),
    "uvmallocsemaphorepoolparams418": (418, 418),
    "nv0005allocparameters418": (418, 470),
    "nv2080ctrlgpupidinfo450": (450, 470),
}
# We keep the head that all branches share, or one of several lengths; the lengths are compared as numbers.
OPEN_ENDED: Final = {
    "nvchannelallocparams",
    "nvvaspaceallocationparameters",
    "nv2080ctrlfbgetinfov2params",
    "uvmfreeparams",
    "uvmunregisterchannelparams",
}
# Levels of the vendor's that we leave out.
SHORTENED: Final = {"data.rmobject.": "", "data.vidmemusage.": "data.", "data.hresult": "data"}
# Ours that no public header declares; their sizes and offsets are asserted where they stand.
UNCOMPARED: Final = {
    "nv0080ctrl418gpupidinfo",
    "nv2080ctrlgpumonhead",
    "uvmreadduplicationparams",
    "uvmis8supportedparams",
}
# Ours that stand only inside others, where their fields are compared.
NESTED: Final = ("nvos32alloc", "nvos32free", "nvos32info", "nv00f8map", "uvmuuid")
# Fields that newer branches dropped, and holes that we name.
DROPPED: Final = re.compile(r"data\.(allocdepthwidthheight|pad)|.*\b(pad|unknown)")
LENGTHS: Final = (
    ("NV_CHANNEL_ALLOC_PARAMS", 535, "NV_CHANNEL_ALLOC_SIZE_535"),
    ("NV_CHANNEL_ALLOC_PARAMS", 550, "NV_CHANNEL_ALLOC_SIZE_535"),
    ("NV_CHANNEL_ALLOC_PARAMS", 570, "NV_CHANNEL_ALLOC_SIZE_570"),
    ("NV_CHANNEL_ALLOC_PARAMS", 580, "NV_CHANNEL_ALLOC_SIZE_570"),
    ("NV_VASPACE_ALLOCATION_PARAMETERS", 580, "NV_VASPACE_ALLOC_SIZE_580"),
    ("NV2080_CTRL_FB_GET_INFO_V2_PARAMS", 515, "NV2080_FB_INFO_ENTRIES_515 * 8 + 4"),
    ("NV2080_CTRL_FB_GET_INFO_V2_PARAMS", 535, "NV2080_FB_INFO_ENTRIES_515 * 8 + 4"),
    ("NV2080_CTRL_FB_GET_INFO_V2_PARAMS", 550, "NV2080_FB_INFO_ENTRIES_545 * 8 + 4"),
    ("NV2080_CTRL_FB_GET_INFO_V2_PARAMS", 570, "NV2080_FB_INFO_ENTRIES_560 * 8 + 4"),
    ("NV2080_CTRL_FB_GET_INFO_V2_PARAMS", 580, "NV2080_FB_INFO_ENTRIES_580 * 8 + 4"),
)


def ours_for(name: str, branch: int, ours: Mapping[str, Layout]) -> str | None:
    """The structure of ours that a branch's `name` (plain) must equal; None where we keep none."""
    for old, (first, last) in OLD.items():
        if old[:-3] == name and first <= branch <= last:
            return old
    newer = [
        key for key in ours if key[:-3] == name and key[-3:].isdigit() and key not in OLD and int(key[-3:]) <= branch
    ]
    return max(newer, default=name if name in ours else None)


def shortened(fields: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    """The vendor's fields, also under the names that they have without the levels that we leave out."""
    result = dict(fields)
    for long, short in SHORTENED.items():
        result |= {key.replace(long, short): value for key, value in fields.items() if long in key}
    return result


def differences(name: str, branch: int, theirs: Layout, ours: Mapping[str, Layout], depth: str = "whole") -> list[str]:
    """What differs between a branch's structure and ours, one line a finding.

    `depth` says what `theirs` lists: the "whole" structure with nested fields, its "top" fields, or only "some" fields.
    """
    key = ours_for(plain(name), branch, ours)
    if key is None:
        return [f"{name}: none of ours"]
    mine, found = ours[key], shortened(theirs.fields)
    lines = (
        [f"{name}: {theirs.size} bytes, ours {mine.size}"]
        if mine.size != theirs.size and plain(name) not in OPEN_ENDED
        else []
    )
    for path, (at, size) in mine.fields.items():
        if (there := found.get(path)) is not None:
            same_size = not there[1] or there[1] == size or "." in path or tail(name, path)
            lines += (
                []
                if there[0] == at and same_size
                else [f"{name}.{path}: {there[1]} bytes at {there[0]:#x}, ours {size} at {at:#x}"]
            )
        elif not DROPPED.match(path) and (
            depth == "whole" or (depth == "top" and "." not in path and "data" not in found)
        ):
            lines.append(f"{name}.{path}: the vendor has none")
    unknown = [path for path in theirs.fields if depth == "some" and path not in mine.fields]
    return lines + [f"{name}.{path}: ours has none" for path in unknown]


def tail(name: str, path: str) -> bool:
    """Whether a field's length is one of those that LENGTHS compares, or a union that grows."""
    return plain(name) in OPEN_ENDED or path in {"data", "hwalloc"}


def recorded(path: Path) -> Iterator[tuple[str, int, Layout]]:
    """The rows of a data file: structure, branch, layout."""
    for line in path.read_text().splitlines():
        if line.startswith("#"):
            continue
        name, branches, size, *fields = line.split()
        found: dict[str, tuple[int, int]] = {}
        for field in fields:
            key, place = field.split("=")
            at, length = place.split(":")
            found[".".join(plain(part) for part in key.split("."))] = (int(at, 16), int(length))
        for branch in branches.split(","):
            yield name.removesuffix("_t"), int(branch), Layout(int(size), found)


def table_layouts(source: str) -> dict[str, Layout]:
    """The structures of a generated table: classes with SIZE, and register_fields([(name, type, offset), ...])."""
    sizes: dict[str, int] = {}
    fields: dict[str, dict[str, tuple[int, int]]] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef):
            for line in node.body:
                if (
                    isinstance(line, ast.Assign)
                    and isinstance(line.value, ast.Constant)
                    and isinstance(line.value.value, int)
                ):
                    sizes[node.name] = line.value.value
        elif (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Attribute)
            and node.value.func.attr == "register_fields"
            and isinstance(node.value.func.value, ast.Name)
        ):
            rows = node.value.args[0]
            assert isinstance(rows, ast.List)
            fields[node.value.func.value.id] = dict(filter(None, map(table_field, rows.elts)))
    return {
        plain(name.removeprefix("struct_")): Layout(size, fields[name])
        for name, size in sizes.items()
        if name in fields
    }


def table_field(row: ast.expr) -> tuple[str, tuple[int, int]] | None:
    """One (name, type, offset) of a table; the length is unknown there. None for a bit field."""
    assert isinstance(row, ast.Tuple)
    name, at = row.elts[0], row.elts[2]
    if len(row.elts) != 3 or not isinstance(name, ast.Constant) or not isinstance(at, ast.Constant):
        return None
    return plain(str(name.value)), (int(str(at.value)), 0)
