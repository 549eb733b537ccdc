# SPDX-License-Identifier: Apache-2.0
"""The driver's user space for a container that nobody else gives it to.

With NVIDIA's runtime above us, or with a CDI name, the libraries are in config.json already. Without, the host's are
mounted, chosen by NVIDIA_DRIVER_CAPABILITIES as NVIDIA's runtime documents it. Files of the driver end in its version;
programs ask for shorter names, which are links on the host and become mounts of the same file in the container.
Where NVIDIA's own list of them lies on the host (`cdilist`) that one counts, else the table here.
"""

from __future__ import annotations

import os

from cgpu.core.light import TYPE_CHECKING, NamedTuple
from cgpu.light import Path
from cgpu.runtime.cdilist import listed_files
from cgpu.runtime.spec import File

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Final

ENV_CAPABILITIES: Final = "NVIDIA_DRIVER_CAPABILITIES"
DEFAULT_CAPABILITIES: Final = "utility,compute"
_EVERY: Final = "all"
LIBRARIES: Final[Mapping[str, str]] = {
    name: capability
    for capability, names in {
        "utility": "nvidia-ml nvidia-cfg",
        "compute": "cuda cudadebugger nvidia-opencl nvidia-gpucomp nvidia-ptxjitcompiler nvidia-fatbinaryloader"
        " nvidia-allocator nvidia-compiler nvidia-nvvm nvidia-nvvm70 nvidia-pkcs11 nvidia-pkcs11-openssl3",
        "video": "nvcuvid nvidia-encode nvidia-opticalflow",
    }.items()
    for name in names.split()
}
PROGRAMS: Final[Mapping[str, str]] = {
    "nvidia-smi": "utility",
    "nvidia-debugdump": "utility",
    "nvidia-cuda-mps-control": "compute",
    "nvidia-cuda-mps-server": "compute",
}
LIBRARY_FOLDERS: Final = ("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib")
PROGRAM_FOLDERS: Final = ("usr/bin", "usr/sbin", "usr/local/bin")


class HostFile(NamedTuple):
    """A file of the driver: where it is, the name under which programs look for it, and what it is for."""

    source: str
    name: str
    capability: str


def discover(root: Path, version: str) -> Iterator[HostFile]:
    """The driver's libraries of `version` and its programs."""
    listed = listed_files(root, version)
    if listed:
        folders = sorted({os.path.dirname(file) for file in listed} | _folders(root))  # noqa: PTH120 - as they were written
        yield from _unique(file for folder in folders for file in _listed_in(Path(folder), listed))
    else:
        yield from _first(root, LIBRARY_FOLDERS, version)
        yield from _first(root, PROGRAM_FOLDERS, "")


def _folders(root: Path) -> set[str]:
    return {str(root / folder) for folder in (*LIBRARY_FOLDERS, *PROGRAM_FOLDERS)}


def _unique(files: Iterable[HostFile]) -> list[HostFile]:
    """One file a name, in the order of the names."""
    found = {file.name: file for file in files}
    return [found[name] for name in sorted(found)]


def _listed_in(folder: Path, listed: frozenset[str]) -> Iterator[HostFile]:
    """The names in a folder that lead to a file of NVIDIA's list; what no capability claims is for those who want all."""
    for name in _names(folder):
        plain = _plain(name)
        if (plain or name in PROGRAMS) and (source := os.path.realpath(folder / name)) in listed:
            yield HostFile(source, name, (LIBRARIES.get(plain) if plain else PROGRAMS[name]) or _EVERY)


def _first(root: Path, folders: tuple[str, ...], version: str) -> list[HostFile]:
    """From the first folder of each kind that has any."""
    for folder in folders:
        found = sorted(_in_folder(root / folder, version), key=lambda file: file.name)
        if found:
            return found
    return []


def _in_folder(folder: Path, version: str) -> Iterator[HostFile]:
    for name in _names(folder):
        capability = LIBRARIES.get(_plain(name)) if version else PROGRAMS.get(name)
        if capability is None:
            continue
        source = os.path.realpath(folder / name)
        if Path(source).is_file() and (not version or source.endswith(f".so.{version}")):
            yield HostFile(source, name, capability)


def _plain(name: str) -> str:
    """cuda of libcuda.so and libcuda.so.1; "" of what is no library."""
    plain, found, _ = name.removeprefix("lib").partition(".so")
    return plain if found and name.startswith("lib") else ""


def _names(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in folder.iterdir()]
    except OSError:
        return []


def wanted(files: tuple[HostFile, ...], env: Mapping[str, str], rootfs: Path) -> list[File]:
    """The files that a container's capabilities ask for, at the places where its own loader and PATH look."""
    asked = {part.strip() for part in (env.get(ENV_CAPABILITIES) or DEFAULT_CAPABILITIES).split(",")}
    chosen = [file for file in files if _EVERY in asked or file.capability in asked]
    libraries = next((folder for folder in LIBRARY_FOLDERS if (rootfs / folder).is_dir()), LIBRARY_FOLDERS[-1])
    return [File(file.source, f"/{_place(file.name, libraries)}/{file.name}") for file in chosen]


def _place(name: str, libraries: str) -> str:
    return PROGRAM_FOLDERS[0] if name in PROGRAMS else libraries
