# SPDX-License-Identifier: Apache-2.0
"""The driver's user space on this host, for pods.

Files of the driver end in its version; programs ask for shorter names, which are links. The host's root is a parameter:
in a pod it lies below a folder, and links there mean what they mean to the host.
"""

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from cgpu.core.errors import UnavailableError

LIBRARY_FOLDERS: Final = ("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib")
PROGRAMS: Final = ("nvidia-smi", "nvidia-debugdump")
_PROGRAM_FOLDER: Final = "usr/bin"
_MANAGEMENT: Final = "libnvidia-ml.so.1"
_MOST_LINKS: Final = 40  # as the kernel


class DriverFile(NamedTuple):
    """`source`: the file on the host. `path`: the name under which the host's programs look for it."""

    source: str
    path: str


def driver_files(root: Path, version: str) -> tuple[DriverFile, ...]:
    """Every library of the version, from the first folder that has any, under each of its names; and the programs."""
    listed = (sorted(_libraries(root, folder, version)) for folder in LIBRARY_FOLDERS)
    libraries = next((found for found in listed if found), [])
    programs = [file for name in PROGRAMS if (file := _file(root, f"{_PROGRAM_FOLDER}/{name}")) is not None]
    return (*libraries, *programs)


def _libraries(root: Path, folder: str, version: str) -> Iterator[DriverFile]:
    try:
        names = [entry.name for entry in (root / folder).iterdir()]
    except OSError:
        return
    for name in names:
        file = _file(root, f"{folder}/{name}") if name.startswith("lib") and ".so" in name else None
        if file is not None and file.source.endswith(f".so.{version}"):
            yield file


def _file(root: Path, path: str) -> DriverFile | None:
    source = resolve(root, path)
    return DriverFile(str(source), f"/{path}") if (root / source.relative_to("/")).is_file() else None


def resolve(root: Path, path: str) -> PurePosixPath:
    """The host's own name of a file below `root`, with every link followed as the host itself would."""
    waiting = list(PurePosixPath(path).parts)
    reached, links = PurePosixPath("/"), 0
    while waiting:
        part = waiting.pop(0)
        here = root / reached.relative_to("/") / part
        if part == "..":
            reached = reached.parent
        elif links < _MOST_LINKS and here.is_symlink():
            links += 1
            target = PurePosixPath(os.readlink(here))  # noqa: PTH115 - its text: from here it leads elsewhere
            waiting = [*(target.parts[1:] if target.is_absolute() else target.parts), *waiting]
            reached = PurePosixPath("/") if target.is_absolute() else reached
        else:
            reached /= part
    return reached


def load_management_library(root: Path) -> None:
    """Load the host's NVML into this process, so that whoever asks for it by name finds it.

    For a pod without NVIDIA's container runtime; nothing happens where the loader finds one itself.
    Raises UnavailableError when the host has none that can be loaded.
    """
    try:
        ctypes.CDLL(_MANAGEMENT)
        return
    except OSError:
        files = (_file(root, f"{folder}/{_MANAGEMENT}") for folder in LIBRARY_FOLDERS)
        found = next((root / file.source.lstrip("/") for file in files if file is not None), None)
    if found is None:
        raise UnavailableError(
            f"no NVIDIA GPU can be used on this node: there is no {_MANAGEMENT}: install NVIDIA's driver"
        )
    try:
        ctypes.CDLL(str(found), mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise UnavailableError(f"no NVIDIA GPU can be used on this node: {found} cannot be loaded: {error}") from error
