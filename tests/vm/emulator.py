# SPDX-License-Identifier: Apache-2.0
"""The emulator of the bench: QEMU 8.1 or newer.

Older ones translate a page that another processor may be writing: a processor can keep the breakpoint byte that a kernel
puts into its code for a moment while it patches itself, and dies of it ("Oops: int3") long after. QEMU 8.1 holds the
page's lock meanwhile. Debian 12 has 7.2, so the newer one of its backports is unpacked into the cache; it wants the same
libraries, which come with the installed one. Later releases of Debian have a new enough QEMU themselves.
"""

import re
from pathlib import Path
from typing import Final

from tests.vm.apt import Suite, machine_codename, need_programs, run
from tests.vm.cache import cache_root, ensure
from tests.vm.errors import BenchError

PROGRAM: Final = "qemu-system-x86_64"
OLDEST: Final = (8, 1)
BACKPORTS: Final = {"bookworm": "bookworm-backports"}
PACKAGES: Final = ("qemu-system-x86", "qemu-system-data", "seabios")
FIRMWARE: Final = ("usr/share/seabios", "usr/share/qemu")


def version_in(text: str) -> tuple[int, ...]:
    """The version in what `qemu-system-x86_64 --version` prints; BenchError when there is none."""
    found = re.search(r"QEMU emulator version (\d+)\.(\d+)", text)
    if found is None:
        raise BenchError(f"{PROGRAM} --version says {text.strip()[:200]!r}, which names no version")
    return tuple(map(int, found.groups()))


def check(command: list[str]) -> list[str]:
    """The command itself; BenchError when that emulator is too old or does not start."""
    version = version_in(run([command[0], "--version"]))
    if version < OLDEST:
        raise BenchError(
            f"{command[0]} is of version {'.'.join(map(str, version))}; the bench needs "
            f"{'.'.join(map(str, OLDEST))} or newer: use Debian 12 or later, whose packages it fetches"
        )
    return command


def emulator(etc: Path = Path("/etc")) -> list[str]:
    """The first words of a QEMU command: the program, and where its firmware lies unless it knows."""
    need_programs({PROGRAM: "qemu-system-x86"})
    suite = BACKPORTS.get(machine_codename(etc))
    if suite is None:
        return check([PROGRAM])

    def build(place: Path) -> None:
        Suite(suite).unpack(PACKAGES, place)
        check([str(place / "usr/bin" / PROGRAM)])

    place = ensure(cache_root() / "vm" / "qemu", [1, suite, PACKAGES], build, f"QEMU of {suite}")
    firmware = [word for folder in FIRMWARE for word in ("-L", str(place / folder))]
    return [str(place / "usr/bin" / PROGRAM), *firmware]
