# SPDX-License-Identifier: Apache-2.0
"""Layouts of C structures and values of C macros, as the compiler sees them."""

import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

NAME: Final = re.compile(r"[^a-z0-9]")
ENTRY: Final = re.compile(r"\s*<(\d+)><([0-9a-f]+)>: Abbrev Number: \d+ \(DW_TAG_(\w+)\)")
ATTRIBUTE: Final = re.compile(r"\s*<[0-9a-f]+>\s+DW_AT_(\w+)\s*: (.*)")
WRAPPERS: Final = {"typedef", "const_type", "volatile_type"}


def plain(name: str) -> str:
    """A name without case and underscores: hObjectParent and h_object_parent are one."""
    return NAME.sub("", name.lower())


@dataclass(slots=True)
class Layout:
    """Size of a structure in bytes and, by dotted plain name, offset and size of every field and nested field."""

    size: int
    fields: dict[str, tuple[int, int]]


@dataclass(slots=True)
class Entry:
    """One debugging entry with the entries below it."""

    tag: str
    attributes: dict[str, str]
    children: list["Entry"] = field(default_factory=list)

    def number(self, name: str) -> int:
        """An attribute as a number, 0 where it is missing."""
        return int(self.attributes.get(name, "0").split()[0], 0)

    @property
    def name(self) -> str:
        """The entry's own name, without the place of the string."""
        return self.attributes.get("name", "").split(": ")[-1].strip()


def entries(text: str) -> dict[str, Entry]:
    """All entries of `readelf --debug-dump=info` by their offset."""
    found: dict[str, Entry] = {}
    stack: list[Entry] = []
    for line in text.splitlines():
        if (match := ENTRY.match(line)) is not None:
            entry = Entry(match[3], {})
            del stack[int(match[1]) :]
            if stack:
                stack[-1].children.append(entry)
            stack.append(entry)
            found[match[2]] = entry
        elif stack and (match := ATTRIBUTE.match(line)) is not None:
            stack[-1].attributes[match[1]] = match[2]
    return found


class Reader:
    """Layouts of one object file's types."""

    def __init__(self, text: str) -> None:
        self._entries = entries(text)

    def _type(self, entry: Entry) -> Entry | None:
        reference = entry.attributes.get("type", "")
        return self._entries.get(reference.strip("<>")[2:]) if reference else None

    def _bare(self, entry: Entry | None) -> Entry | None:
        while entry is not None and entry.tag in WRAPPERS:
            entry = self._type(entry)
        return entry

    def _size(self, entry: Entry | None) -> int:
        entry = self._bare(entry)
        if entry is None:
            return 0
        if entry.tag != "array_type":
            return entry.number("byte_size")
        count = 1
        for child in entry.children:
            count *= child.number("upper_bound") + 1
        return count * self._size(self._type(entry))

    def _fields(self, entry: Entry, at: int, prefix: str) -> dict[str, tuple[int, int]]:
        found: dict[str, tuple[int, int]] = {}
        for member in entry.children:
            where, kind = at + member.number("data_member_location"), self._bare(self._type(member))
            path = f"{prefix}{plain(member.name)}"
            found[path] = (where, self._size(kind))
            if kind is not None and kind.tag in {"structure_type", "union_type"}:
                found |= self._fields(kind, where, f"{path}.")
        return found

    def layouts(self) -> dict[str, Layout]:
        """Every named structure, whether by its tag or by a typedef, under its plain name without a final _t."""
        found: dict[str, Layout] = {}
        for entry in self._entries.values():
            bare = self._bare(entry)
            if (
                entry.tag in {"structure_type", "typedef"}
                and entry.name
                and bare is not None
                and bare.tag == "structure_type"
            ):
                found[plain(entry.name.removesuffix("_t"))] = Layout(self._size(bare), self._fields(bare, 0, ""))
        return found


def layouts_of(headers: Iterable[str], folders: Iterable[Path]) -> dict[str, Layout]:
    """The structures that some headers declare."""
    with TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        source.write_text("".join(f'#include "{header}"\n' for header in headers))
        run(
            "gcc",
            "-w",
            "-g",
            "-fno-eliminate-unused-debug-types",
            "-c",
            source,
            "-o",
            f"{source}.o",
            *includes(folders),
        )
        return Reader(run("readelf", "--debug-dump=info", f"{source}.o")).layouts()


def macros_of(headers: Iterable[str], folders: Iterable[Path]) -> dict[str, str]:
    """The macros without arguments that some headers define, as text."""
    with TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        source.write_text("".join(f'#include "{header}"\n' for header in headers))
        text = run("gcc", "-w", "-dM", "-E", source, *includes(folders))
    return {match[1]: match[2] for match in re.finditer(r"#define (\w+) (.+)", text)}


def values_of(macros: Mapping[str, str], headers: Iterable[str], folders: Iterable[Path]) -> dict[str, int]:
    """The values of macros that are constant expressions."""
    with TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        lines = [f'#include "{header}"\n' for header in headers] + ["#include <stdio.h>\nint main(void) {\n"]
        lines += [f'printf("{name} %llu\\n", (unsigned long long)({name}));\n' for name in macros]
        source.write_text("".join([*lines, "return 0; }\n"]))
        run("gcc", "-w", source, "-o", f"{source}.out", *includes(folders))
        text = run(f"{source}.out")
    return {name: int(value) for name, value in (line.split() for line in text.splitlines())}


def includes(folders: Iterable[Path]) -> list[str]:
    """Compiler flags for the folders of headers."""
    return [f"-I{folder}" for folder in folders]


def run(*command: str | Path) -> str:
    """Output of a command that must succeed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command[0]}: {done.stderr[-2000:]}"
    return done.stdout
