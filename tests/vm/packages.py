# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's user space of each driver branch, its open kernel sources, and CUDA programs, fetched for tests only.

    python -m tests.vm.packages fetch 535 550      # <cache>/nvidia/535/{bin,lib,VERSION}
    python -m tests.vm.packages sources 535        # <cache>/nvidia-src/535/
    python -m tests.vm.packages cuda 12            # <cache>/cuda/12/{site,lib}
    python -m tests.vm.packages all

None of it is part of the product and none of it is ever committed. What cannot be fetched is an error, not a skip.
"""

import argparse
import re
import shutil
import sys
import tarfile
import venv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.vm.apt import Suite, run
from tests.vm.cache import cache_root, ensure, say
from tests.vm.errors import BenchError


@dataclass(frozen=True, slots=True)
class Branch:
    """Where Debian keeps one driver branch: the suite, its binary packages, and what has readable sources.

    `open_source` tells whether the upstream archive with the SDK headers that declare the RM's structures is to be had
    from the mirror, or only the open layer that is compiled around the binary part (nv-ioctl.h, uvm_ioctl.h and such).
    """

    suite: str
    binaries: tuple[str, ...]
    source: str
    open_source: bool = False


def tesla(suite: str, branch: str, *more: str) -> Branch:
    """A branch of Debian's `tesla` packages."""
    libraries = tuple(f"libnvidia-tesla-{branch}-{name}" for name in ("ml1", "cuda1", "ptxjitcompiler1", *more))
    return Branch(suite, (f"nvidia-tesla-{branch}-smi", *libraries), f"nvidia-tesla-{branch}-kernel-dkms")


CURRENT: Final = ("nvidia-smi", "libnvidia-ml1", "libcuda1", "libnvidia-ptxjitcompiler1", "libnvidia-nvvm4")
BRANCHES: Final = {
    "418": tesla("bullseye", "418", "fatbinaryloader"),
    "450": tesla("bullseye", "450"),
    "460": tesla("bullseye", "460"),
    "470": tesla("bookworm", "470", "nvvm4"),
    "535": Branch("bookworm", CURRENT, "nvidia-open-kernel-source", open_source=True),
    "550": Branch("trixie", CURRENT, "nvidia-open-kernel-source"),
}

# CuPy with the CUDA libraries that it loads, for the guest's Python 3.11. ptxas of the oldest toolkit makes cubins that
# every branch from 450 on loads; the runtime of 11 is the newest that 450 and 470 accept.
CUDA: Final = {
    "11": (
        "cupy-cuda11x==13.6.0",
        "numpy==2.2.6",
        "fastrlock==0.8.3",
        "nvidia-cuda-runtime-cu11==11.8.89",
        "nvidia-cuda-nvrtc-cu11==11.8.89",
        "nvidia-cuda-nvcc-cu11==11.8.89",
        "nvidia-ml-py==13.580.82",
    ),
    "12": (
        "cupy-cuda12x==13.6.0",
        "numpy==2.2.6",
        "fastrlock==0.8.3",
        "nvidia-cuda-runtime-cu12==12.2.140",
        "nvidia-cuda-nvrtc-cu12==12.2.140",
        "nvidia-ml-py==13.580.82",
    ),
}
GUEST_PYTHON: Final = "3.11"


def branch_of(name: str) -> Branch:
    """The row of a branch; BenchError for one that no test machine can have."""
    if name not in BRANCHES:
        raise BenchError(f"driver branch {name!r} is unknown; choose one of {', '.join(BRANCHES)}")
    return BRANCHES[name]


def link_names(library: str) -> list[str]:
    """The names under which programs look for a versioned library: its soname and the bare one."""
    stem = re.match(r"(.+\.so)\.\d", library)
    return [f"{stem.group(1)}.{4 if 'nvvm' in library else 1}", stem.group(1)] if stem else []


def collect_user_space(unpacked: Path, place: Path) -> None:
    """Sorts the files of unpacked driver packages into `bin/` and `lib/` and notes the driver's version."""
    (place / "bin").mkdir()
    (place / "lib").mkdir()
    for file in sorted(unpacked.rglob("*")):
        if file.is_symlink() or not file.is_file():
            continue
        if file.name == "nvidia-smi" and file.stat().st_mode & 0o111:
            shutil.copy2(file, place / "bin/nvidia-smi")
        elif re.fullmatch(r"lib.+\.so(\.[\d.]+)", file.name):
            shutil.copy2(file, place / "lib" / file.name)
            for name in link_names(file.name):
                if not (place / "lib" / name).exists():
                    (place / "lib" / name).symlink_to(file.name)
    versions = [file.name.split(".so.")[1] for file in (place / "lib").glob("libcuda.so.*.*")]
    if len(versions) != 1 or not (place / "bin/nvidia-smi").exists():
        raise BenchError(
            f"the packages hold {len(versions)} versions of libcuda and nvidia-smi is "
            f"{'there' if (place / 'bin/nvidia-smi').exists() else 'missing'}; their layout changed"
        )
    (place / "VERSION").write_text(versions[0] + "\n")


def fetch(name: str) -> Path:
    """NVIDIA's user space of a branch: a folder with `bin/nvidia-smi`, `lib/*.so*` and `VERSION`."""
    branch = branch_of(name)

    def build(place: Path) -> None:
        unpacked = place / "unpacked"
        unpacked.mkdir()
        Suite(branch.suite).unpack(branch.binaries, unpacked)
        collect_user_space(unpacked, place)
        shutil.rmtree(unpacked)

    return ensure(
        cache_root() / "nvidia" / name, [1, branch.suite, branch.binaries], build, f"NVIDIA {name} user space"
    )


def version_of(name: str) -> str:
    """The full driver version of a branch, such as 535.261.03; fetches it when need be."""
    return (fetch(name) / "VERSION").read_text().strip()


def keep_readable(unpacked: Path, place: Path, top: str) -> None:
    """Moves headers and C files to `place`, without the leading folders that match the pattern `top`."""
    for file in sorted(unpacked.rglob("*.[ch]")):
        if file.is_symlink() or not file.is_file():
            continue
        target = place / re.sub(f"^{top}/", "", str(file.relative_to(unpacked)))
        target.parent.mkdir(parents=True, exist_ok=True)
        file.rename(target)


def fetch_sources(name: str) -> Path:
    """The readable part of a branch's kernel module sources: headers and C files only.

    535: the whole open tree (`kernel-open/`, `src/common/sdk/nvidia/inc/`, ...). The others: what is compiled around
    the binary part (`common/inc`, `nvidia`, `nvidia-uvm`).
    """
    branch = branch_of(name)

    def build(place: Path) -> None:
        unpacked = place / "unpacked"
        if branch.open_source:
            archive = Suite(branch.suite).download_source(branch.source, place / "archive")
            with tarfile.open(archive) as opened:
                opened.extractall(unpacked, filter="data")
            keep_readable(unpacked, place, "[^/]+")
            shutil.rmtree(place / "archive")
        else:
            unpacked.mkdir()
            Suite(branch.suite).unpack([branch.source], unpacked)
            for archive in sorted(unpacked.rglob("*.tar.xz")):
                with tarfile.open(archive) as opened:
                    opened.extractall(unpacked, filter="data")
            keep_readable(unpacked, place, "(usr/src|modules)/[^/]+")
        shutil.rmtree(unpacked)

    return ensure(cache_root() / "nvidia-src" / name, [2, branch.suite, branch.source], build, f"NVIDIA {name} sources")


def pip(cache: Path) -> str:
    """A pip of our own (the development environment may have none)."""
    home = cache / "tools" / f"pip-{sys.version_info.major}.{sys.version_info.minor}"
    ensure(home, ["pip", 1], lambda place: venv.create(place, with_pip=True, symlinks=True), "a pip of the bench's own")
    return str(home / "bin" / "python")


def install_for_guest(site: Path, *what: str) -> None:
    """Installs wheels for the guest's Python into a folder, byte-compiled where this Python is of the same version."""
    compiling = "--compile" if "{}.{}".format(*sys.version_info) == GUEST_PYTHON else "--no-compile"
    platforms = [f"--platform={name}_x86_64" for name in ("manylinux2014", "manylinux_2_28")]
    run(
        [
            pip(cache_root()),
            "-m",
            "pip",
            "install",
            "-q",
            "--no-deps",
            compiling,
            "--only-binary=:all:",
            "--python-version",
            GUEST_PYTHON,
            *platforms,
            "--target",
            str(site),
            *what,
        ]
    )


def fetch_cuda(name: str) -> Path:
    """CuPy and the CUDA runtime for the guest: `site/` for PYTHONPATH, `lib/` with the shared libraries by soname."""
    if name not in CUDA:
        raise BenchError(f"CUDA toolkit {name!r} is unknown; choose one of {', '.join(CUDA)}")

    def build(place: Path) -> None:
        install_for_guest(place / "site", *CUDA[name])
        (place / "lib").mkdir()
        for library in sorted((place / "site").glob("nvidia/*/lib/*.so*")):
            (place / "lib" / library.name).symlink_to(Path("..") / library.relative_to(place))

    return ensure(cache_root() / "cuda" / name, [2, *CUDA[name]], build, f"CUDA {name} for Python")


def cuda_of(branch: str) -> str:
    """The newest of our CUDA toolkits that a branch's libcuda accepts."""
    return "12" if int(branch) >= 525 else "11"


def fetch_all(names: Iterable[str]) -> None:
    """Everything for the given branches."""
    for name in names:
        fetch(name)
        fetch_sources(name)
        fetch_cuda(cuda_of(name))


def main() -> int:
    """The command line; see the module's text."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.vm.packages", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("verb", choices=["fetch", "sources", "cuda", "all"])
    parser.add_argument(
        "names", nargs="*", help=f"driver branches ({', '.join(BRANCHES)}) or CUDA toolkits ({', '.join(CUDA)})"
    )
    arguments = parser.parse_args()
    names = arguments.names or list(CUDA if arguments.verb == "cuda" else BRANCHES)
    try:
        if arguments.verb == "all":
            fetch_all(names)
        for name in names if arguments.verb != "all" else []:
            print({"fetch": fetch, "sources": fetch_sources, "cuda": fetch_cuda}[arguments.verb](name))
    except BenchError as error:
        say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
