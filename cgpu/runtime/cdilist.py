# SPDX-License-Identifier: Apache-2.0
"""The list of the driver's files in the CDI spec that `nvidia-ctk cdi generate` leaves on a host.

The spec is YAML or JSON, and a host of ours has a reader for the second only. What is asked here are the host's paths,
which either form gives on a line of their own: `hostPath: /usr/bin/nvidia-smi`.
"""

from __future__ import annotations

from cgpu.core.light import TYPE_CHECKING
from cgpu.light import Path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Final

KIND: Final = "nvidia.com/gpu"
# Where NVIDIA's documentation puts it, and its service that renews it; the first that exists counts.
PLACES: Final = tuple(f"{folder}/nvidia.{form}" for folder in ("etc/cdi", "var/run/cdi") for form in ("yaml", "json"))


def stamp_of(root: Path) -> list[int]:
    """What differs when a spec was written anew: one number for each that exists."""
    return [path.stat().st_mtime_ns for path in _existing(root)]


def listed_files(root: Path, version: str) -> frozenset[str]:
    """The files of the first spec of the driver `version`, links followed; empty when there is none, or an older one."""
    for place in _existing(root):
        try:
            lines = place.read_text().splitlines()
        except (OSError, UnicodeDecodeError):
            continue
        paths = [Path(value) for key, value in map(_pair, lines) if key == "hostPath" and value.startswith("/")]
        files = frozenset(str(path.resolve()) for path in paths if path.is_file())
        if ("kind", KIND) in map(_pair, lines) and any(file.endswith(f".so.{version}") for file in files):
            return files
    return frozenset()


def _pair(line: str) -> tuple[str, str]:
    """Key and value of a line, in either form."""
    key, _, value = line.strip(" -,\t").partition(":")
    return key.strip('" '), value.strip("\"' ")


def _existing(root: Path) -> Iterator[Path]:
    return (root / place for place in PLACES if (root / place).is_file())
