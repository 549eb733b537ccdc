# SPDX-License-Identifier: Apache-2.0
"""The registry of what is simulated, read from the tables of the C sources into `docs/simulator.md`.

python -m tests.nvsim.registry         # writes the tables anew
"""

import re
from pathlib import Path
from typing import Final

from tests.nvsim.driver import PROJECT, SOURCES

DOCUMENT: Final = PROJECT / "docs/simulator.md"
BEGIN, END = "<!-- tables: python -m tests.nvsim.registry -->", "<!-- end of tables -->"
# handlers that answer OK without doing anything, and those that refuse
ACCEPTING: Final = {
    "accept",
    "update_mapping",
    "unmap_memory",
    "rm_share",
    "make_nothing",
    "make_virtual",
    "NULL",
    "wait_for_idle",
}
REFUSING: Final = {"access_registry", "refuse"}
EXECUTED_CONTROLS: Final = {
    "set_timeslice",
    "group_schedule",
    "channel_schedule",
    "preempt",
    "disable_channels",
    "export_object",
    "import_object",
    "set_notification",
    "set_memory_notifies",
}


def verdict(handler: str) -> str:
    """What a row of a table does."""
    if handler in ACCEPTING:
        return "accepted"
    return "refused" if handler in REFUSING else "executed"


def source(name: str) -> str:
    """One C file with its defines of plain numbers put in."""
    abi = "".join(header.read_text() for header in (SOURCES.parent / "abi").glob("*.h"))
    text = (SOURCES / name).read_text()
    numbers = re.findall(r"^#define (\w+)\s+(0x[0-9a-f]+|\d+)\b", abi + text, re.MULTILINE)
    for word, number in sorted(numbers, key=lambda pair: -len(pair[0])):
        text = re.sub(rf"(?<=\{{ ){word}\b", number, text)
    return text


def escapes() -> list[tuple[str, ...]]:
    """Ioctls of the control and device nodes."""
    rows = re.findall(r"\{ (\w+), (\w+), \"(\w+)\", .*?, (\w+) \},", source("escape.c"))
    return [
        (f"{int(number, 0)} (0x{int(number, 0):02x})", name, where.lower(), verdict(handler))
        for number, where, name, handler in rows
    ]


def uvm() -> list[tuple[str, ...]]:
    """Ioctls of the UVM node."""
    rows = re.findall(r"\{ (\w+), \"(\w+)\", \w+, \w+, (\w+) \},", source("uvm.c"))
    return [
        (f"0x{int(number, 0):x}" if int(number, 0) > 9999 else str(int(number, 0)), name, verdict(handler))
        for number, name, handler in rows
    ]


def classes() -> list[tuple[str, ...]]:
    """Classes of RM_ALLOC."""
    rows = re.findall(r"\{ (0x[0-9a-f]+), \"(\w+)\", \d+, (\w+) \},", source("alloc.c"))
    shown = {"USERMODE": "every class ending in 61", "CHANNEL_GPFIFO": "every class ending in 6f"}
    roots = [("0x0000, 0x0001, 0x0041", "NV01_ROOT*", "executed")]
    return roots + [
        (shown.get(name, f"0x{int(number, 0):04x}"), name, verdict(handler)) for number, name, handler in rows
    ]


def controls() -> list[tuple[str, ...]]:
    """Controls that have a row of their own."""
    found = []
    for file in ("reply_system.c", "reply_device.c", "reply_engine.c", "reply_event.c", "reply_sensor.c"):
        for number, name, handler in re.findall(r"\{ (0x[0-9a-f]{8}), \"([^\"]+)\", [^,]+, (\w+)", source(file)):
            found.append((number, name, "executed" if handler in EXECUTED_CONTROLS else "answered with content"))
    return sorted(found)


def accepted() -> list[str]:
    """Controls that are accepted as they come."""
    return re.findall(r"0x([0-9a-f]{8})", source("reply_accepted.c"))


def methods() -> list[tuple[str, ...]]:
    """Methods that act."""
    found = []
    for file in ("method_host.c", "method_compute.c", "method_copy.c"):
        text = source(file).replace("LAST_QMD_WORD", "0x41c")
        found += re.findall(r"\{ NVSIM_(\w+), \w+, (0x[0-9a-f]+), \"([^\"]+)\", (\w+) \},", text)
    return [(engine.lower(), method, name, "executed") for engine, method, name, _handler in found]


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A Markdown table."""
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, tuple("---" for _ in head), *rows))


def tables() -> str:
    """All tables, under their headings."""
    parts = [
        ("Ioctls of /dev/nvidiactl and /dev/nvidia<N>", table(("number", "name", "node", "here"), escapes())),
        ("Ioctls of /dev/nvidia-uvm", table(("number", "name", "here"), uvm())),
        (
            "Classes",
            table(("class", "name", "here"), classes())
            + "\n\nEvery other class is accepted: an object without effect.",
        ),
        ("Controls", table(("number", "name", "here"), controls())),
        (
            "Controls that are accepted with their parameters as they came",
            " ".join(f"`{number}`" for number in accepted())
            + "\n\nEvery other control is accepted likewise and logged once with its number and size.",
        ),
        (
            "Methods that act",
            table(("engine", "method", "name", "here"), methods())
            + "\n\nEvery other method is stored in the channel's registers.",
        ),
    ]
    return "\n\n".join(f"### {heading}\n\n{body}" for heading, body in parts)


def document(text: str) -> str:
    """The document with its tables replaced."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n\n{tables()}\n\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    Path(DOCUMENT).write_text(document(DOCUMENT.read_text()))
