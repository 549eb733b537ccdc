# SPDX-License-Identifier: Apache-2.0
"""The kernels of the bench: Debian's images with their headers, unpacked into the cache, and modules built for them.

    python -m tests.vm.kernels fetch 6.1 6.12
    python -m tests.vm.kernels build 6.1 kmod/nvsim       # prints the folder that holds the .ko files

Nothing is installed on the machine. The headers' absolute paths are turned into paths below the cache.
"""

import argparse
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.vm import debug_kernel
from tests.vm.apt import Suite, need_programs, run
from tests.vm.cache import cache_root, digest, ensure, file_digest, locked, say
from tests.vm.errors import BenchError

BUILD_PROGRAMS: Final = {"make": "make", "gcc-12": "gcc-12", "depmod": "kmod"}
SOURCES: Final = ("*.c", "*.h", "*.S", "*.sh", "Kbuild", "Makefile")


@dataclass(frozen=True, slots=True)
class Flavour:
    """Where a kernel comes from: a suite of Debian and the package that stands for its newest image.

    `product` tells whether the product's module accepts it: before Linux 5.11 it refuses to load, with its reason.
    `append` is added to its command line, `boot_seconds` is how long it may take to boot on a busy machine. `sockets` gives
    each processor a socket of its own: tables older than ACPI's name no more than one a socket.
    """

    suite: str
    image: str = "linux-image-cloud-amd64"
    product: bool = True
    append: str = ""
    boot_seconds: float = 240.0
    sockets: bool = False


FLAVOURS: Final = {
    "5.10": Flavour("bullseye", product=False),
    "6.1": Flavour("bookworm"),
    "6.12": Flavour("bookworm-backports"),
    # its checks make ACPI's tables last minutes under emulation; the older tables of the processors do as well. Without
    # ACPI it tries by the host's clock whether the timer ticks, and stops when a busy host is late
    "debug": Flavour(
        "bookworm", debug_kernel.SOURCE, append="acpi=off no_timer_check", boot_seconds=900.0, sockets=True
    ),
}


@dataclass(frozen=True, slots=True)
class Kernel:
    """One unpacked kernel: its flavour, its release (uname -r) and where its files are."""

    flavour: str
    release: str
    root: Path

    @property
    def image(self) -> Path:
        """The bootable image."""
        return self.root / "vmlinuz"

    @property
    def modules(self) -> Path:
        """The folder `lib/modules/<release>`, with the dependency files made."""
        return self.root / "lib/modules" / self.release

    @property
    def headers(self) -> Path:
        """What `make -C` wants for an external module."""
        return self.root / "headers"


def flavour_of(name: str) -> Flavour:
    """The row of a flavour; BenchError when there is none."""
    if name not in FLAVOURS:
        raise BenchError(f"kernel {name!r} is unknown; choose one of {', '.join(FLAVOURS)}")
    return FLAVOURS[name]


def header_packages(suite: Suite, release: str) -> list[str]:
    """The header package of a release, the common headers and the kbuild programs that it builds with."""
    wanted = suite.depends(f"linux-headers-{release}")
    return [
        f"linux-headers-{release}",
        *(name for name in wanted if re.match(r"linux-(headers-.*-common|kbuild-)", name)),
    ]


def relocate(text: str, root: Path) -> str:
    """Rewrites absolute paths of Debian's header packages to those below `root`."""
    return re.sub(r"(?<![\w./])/usr/(src/linux-headers-|lib/linux-kbuild-)", rf"{root}/usr/\1", text)


def relocate_headers(root: Path, final: Path, release: str) -> None:
    """Makes the unpacked headers usable at `final`, where `root` will be renamed to."""
    for link in [path for path in root.rglob("*") if path.is_symlink()]:
        target = link.readlink()
        if target.is_relative_to("/usr"):
            link.unlink()
            link.symlink_to(os.path.relpath(root / target.relative_to("/"), link.parent))
    headers = root / "usr/src" / f"linux-headers-{release}"
    for name in ("Makefile", ".kernelvariables"):
        if (headers / name).is_file() and not (headers / name).is_symlink():
            (headers / name).write_text(relocate((headers / name).read_text(), final))
    (headers / "vmlinux").unlink(missing_ok=True)  # only for type data of modules, which needs a program of its own
    (root / "headers").symlink_to(Path("usr/src") / headers.name)


def unpack_kernel(flavour: Flavour, scratch: Path, place: Path) -> str:
    """Unpacks Debian's image and headers below `scratch`, which will become `place`; returns the release."""
    suite = Suite(flavour.suite)
    image = next(found for found in suite.depends(flavour.image) if found.startswith("linux-image-"))
    release = image.removeprefix("linux-image-")
    suite.unpack([image, *header_packages(suite, release)], scratch)
    if not (scratch / "lib").is_dir():
        (scratch / "lib").symlink_to("usr/lib")
    shutil.move(scratch / "boot" / f"vmlinuz-{release}", scratch / "vmlinuz")
    relocate_headers(scratch, place, release)
    return release


def fetch(name: str) -> Kernel:
    """A flavour's kernel, ready to boot and to build modules for; `debug` is compiled the first time."""
    flavour = flavour_of(name)
    place = cache_root() / "kernels" / name
    compiled = flavour.image == debug_kernel.SOURCE

    def build(scratch: Path) -> None:
        release = debug_kernel.build(scratch) if compiled else unpack_kernel(flavour, scratch, place)
        run(["depmod", "-b", str(scratch), release])
        (scratch / "RELEASE").write_text(release + "\n")

    need_programs(BUILD_PROGRAMS)
    recipe = [2, flavour.suite, flavour.image, *([file_digest([debug_kernel.CONFIG])] if compiled else [])]
    ensure(place, recipe, build, f"{'a debug kernel (many minutes)' if compiled else 'Debian kernel'} {name}")
    return Kernel(name, (place / "RELEASE").read_text().strip(), place)


def unit_sources(source: Path) -> list[Path]:
    """Every file that decides what a module folder compiles to: its own, and the shared ABI headers beside it."""
    folders = [source, *(parent / "abi" for parent in (source, source.parent) if (parent / "abi").is_dir())]
    found = {file for folder in folders for pattern in SOURCES for file in folder.rglob(pattern)}
    return sorted(file for file in found if "nvsim" not in file.relative_to(source.parent).parts[1:-1])


def synchronise(files: list[Path], source: Path, target: Path) -> None:
    """Copies what changed, so that make compiles only that; removes what is gone."""
    wanted = {target / file.relative_to(source): file for file in files}
    for stale in [path for pattern in SOURCES for path in target.rglob(pattern) if path not in wanted]:
        if not stale.name.endswith(".mod.c"):
            stale.unlink()
    for copy, file in wanted.items():
        if not copy.exists() or copy.read_bytes() != file.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, copy)


def make(kernel: Kernel, folder: Path, *more: str) -> str:
    """Runs the kernel's own make for an external module folder, at low priority."""
    jobs = f"-j{os.cpu_count() or 1}"
    return run(["nice", "make", "-s", jobs, "-C", str(kernel.headers), f"M={folder}", "CC=gcc-12", *more, "modules"])


def build_modules(kernel: Kernel, source: Path, *more: str) -> Path:
    """Compiles the modules of a folder with a Kbuild file for a kernel; returns the folder with the .ko files.

    The result is kept by the content of the sources; the tree in which make works is kept too, so that a change of one
    file compiles one file. BenchError with the compiler's last lines when it does not compile.
    """
    source = source.resolve()
    if not (source / "Kbuild").is_file():
        raise BenchError(f"{source} has no Kbuild file; name a folder of kernel module sources")
    files = unit_sources(source)
    key = digest([str(file.relative_to(source.parent)) for file in files], file_digest(files), kernel.release, more)
    tree = cache_root() / "kmod" / f"{kernel.release}-{digest(str(source), more)}"

    def build(scratch: Path) -> None:
        with locked(tree):
            synchronise(files, source.parent, tree)
            make(kernel, tree / source.name, *more)
            for module in (tree / source.name).rglob("*.ko"):
                run(["strip", "-g", "-o", str(scratch / module.name), str(module)])

    what = f"{source.name} modules for Linux {kernel.release}"
    return ensure(cache_root() / "modules" / f"{source.name}-{key}", [1, key], build, what)


def main() -> int:
    """The command line; see the module's text."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.vm.kernels", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("verb", choices=["fetch", "build"])
    parser.add_argument("arguments", nargs="*")
    chosen = parser.parse_args()
    try:
        if chosen.verb == "build":
            flavour, folder = chosen.arguments
            print(build_modules(fetch(flavour), Path(folder)))
        for flavour in (chosen.arguments or list(FLAVOURS)) if chosen.verb == "fetch" else []:
            print(fetch(flavour).root)
    except BenchError as error:
        say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
