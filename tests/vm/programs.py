# SPDX-License-Identifier: Apache-2.0
"""C programs for the guest, compiled on the host: there a compiler is twenty times as fast."""

from pathlib import Path
from typing import Final

from tests.vm.apt import Suite, need_programs, run
from tests.vm.cache import cache_root, digest, ensure, file_digest
from tests.vm.image import SUITE

C_LIBRARY: Final = ("libc6", "libc6-dev", "linux-libc-dev", "libgcc-12-dev", "libgcc-s1")


def sysroot() -> Path:
    """The guest's C library and headers, so that a program of any host runs in the guest."""

    def build(place: Path) -> None:
        Suite(SUITE).unpack(C_LIBRARY, place)

    return ensure(cache_root() / "sysroot", [1, SUITE, C_LIBRARY], build, "the guest's C library")


def compile_c(name: str, sources: list[Path], *flags: str) -> Path:
    """Compiles C sources to a program for the guest (dynamic, -O2; `flags` add libraries) and returns its file.

    Kept by the content of the sources and of every header that they include with quotes from their own folders.
    BenchError with the compiler's words when it does not compile.
    """
    need_programs({"gcc-12": "gcc-12"})
    headers = sorted({header for source in sources for header in source.parent.glob("*.h")})
    key = digest(name, [str(path) for path in sources], file_digest([*sources, *headers]), flags)

    def build(place: Path) -> None:
        # the host's own gcc 12 knows its crt files and libgcc; only the C library comes from the guest's suite
        run(
            [
                "gcc-12",
                f"--sysroot={sysroot()}",
                f"-B{sysroot()}/usr/lib/x86_64-linux-gnu",
                "-O2",
                "-Wall",
                "-pthread",
                "-o",
                str(place / name),
                *map(str, sources),
                *flags,
                "-ldl",
            ]
        )

    return ensure(cache_root() / "programs" / f"{name}-{key}", [1, key], build, f"program {name}") / name
