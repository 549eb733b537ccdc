# SPDX-License-Identifier: Apache-2.0
"""The kernel's own judges over both modules: W=1 and sparse on two kernels, checkpatch over the sources.

    python -m tests.kmod.style

What was found clean is remembered by content, so that only a change is looked at again. Programs that run in user
space (the modules' tests beside KUnit, and nvsim's library) are no kernel code and are left out of checkpatch.
"""

import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

from tests.vm.apt import Suite, need_programs
from tests.vm.cache import cache_root, digest, ensure, file_digest, say
from tests.vm.debug_kernel import SOURCE
from tests.vm.errors import BenchError
from tests.vm.kernels import build_modules, fetch

PROJECT: Final = Path(__file__).parents[2]
KERNELS: Final = ("6.1", "6.12")
MODULES: Final = (PROJECT / "kmod", PROJECT / "kmod/nvsim")
STRICT: Final = ("W=1", "C=2", "CF=-Wsparse-error", "KCFLAGS=-Werror")
PROGRAMS: Final = {"sparse": "sparse", "perl": "perl"}
SCRIPTS: Final = ("checkpatch.pl", "spelling.txt", "const_structs.checkpatch")
PATTERNS: Final = (
    "kmod/*.[ch]",
    "kmod/abi/*.h",
    "kmod/nvsim/*.[ch]",
    "kmod/tests/*_kunit.c",
    "kmod/tests/kunit_module.c",
)
# Findings that stay, each with its reason.
ACCEPTED: Final = {
    ("kmod/gate.c", "CONST_STRUCT"): "a table made for each mapping, out of the driver's own",
    ("kmod/cgpu.h", "CONST_STRUCT"): "the same, of a range of unified memory",
    ("kmod/heap.c", "MACRO_ARG_REUSE"): "the argument names a member, it is not evaluated",
}
FINDING: Final = re.compile(r"(\S+?):(\d+): \w+:(\w+): ")


def scripts() -> Path:
    """checkpatch.pl and its lists, out of Debian's kernel sources."""

    def build(place: Path) -> None:
        Suite("bookworm").unpack([SOURCE], place / "package")
        with tarfile.open(next((place / "package/usr/src").glob("linux-source-*.tar.xz"))) as archive:
            for member in archive:
                name = Path(member.name)
                if name.parent.name == "scripts" and name.name in SCRIPTS and len(name.parts) == 3:
                    member.name = name.name
                    archive.extract(member, place, filter="tar")

    return ensure(cache_root() / "checkpatch", [1, SOURCE, SCRIPTS], build, "checkpatch, out of the kernel's sources")


def findings(text: str) -> list[str]:
    """The lines of checkpatch's terse report that tell of something that we did not accept."""
    rows = [(line, FINDING.match(line)) for line in text.splitlines() if not line.startswith("total: ")]
    return [line for line, found in rows if found is None or (found[1], found[3]) not in ACCEPTED]


def checkpatch(files: list[Path], place: Path) -> list[str]:
    """What checkpatch finds in sources."""
    names = [str(file.relative_to(PROJECT)) for file in files]
    command = ["perl", str(place / SCRIPTS[0]), "--no-tree", "--strict", "--terse", "--show-types", "--file", *names]
    return findings(subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False).stdout)


def sources() -> list[Path]:
    """The kernel code that checkpatch reads."""
    return sorted(file for pattern in PATTERNS for file in PROJECT.glob(pattern))


def check() -> None:
    """Runs all judges; BenchError with what they found."""
    need_programs(PROGRAMS)
    place, files = scripts(), sources()

    def judge(_: Path) -> None:
        if found := checkpatch(files, place):
            raise BenchError("checkpatch finds:\n" + "\n".join(found))

    key = digest([str(file.relative_to(PROJECT)) for file in files], file_digest(files), file_digest([Path(__file__)]))
    ensure(cache_root() / "style" / key, [key], judge, "checkpatch over kmod/")
    for name in KERNELS:
        for module in MODULES:
            build_modules(fetch(name), module, *STRICT)


if __name__ == "__main__":
    try:
        check()
    except BenchError as error:
        say(str(error))
        sys.exit(1)
