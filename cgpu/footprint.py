# SPDX-License-Identifier: Apache-2.0
"""What an instance leaves on a host besides itself: a note of whose it is, /run/cgpu/<id>.json, a folder of its nodes, and
names of these nodes by their numbers in /dev/char.

The note is written first and taken away last: whoever finds it can end everything, however far the making came. The runtime
wrapper and the device plugin share the folder and this; what their notes say is their own.
"""

from __future__ import annotations

import os

from cgpu import light_json as json
from cgpu.cgpufs import mount_cgpufs, unmount
from cgpu.core.errors import UnavailableError
from cgpu.core.light import TYPE_CHECKING
from cgpu.light import Path, suppress
from cgpu.procfs import CgpuProc, Instance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any


class Footprint:
    """Notes and mounts below one folder, and the end of what they stand for."""

    def __init__(
        self,
        kernel: CgpuProc,
        run: Path,
        chars: Path,
        mount: Callable[[str, Path], None] = mount_cgpufs,
        unmount: Callable[[Path], None] = unmount,
    ) -> None:
        """`run`: /run/cgpu; `chars`: the host's /dev/char; `mount` and `unmount` make and end the mount of an instance's nodes; both raise OSError."""
        self.run = run
        self._chars = chars
        self._kernel = kernel
        self._mount = mount
        self._unmount = unmount

    def note(self, id_: str) -> Path:
        """Where the note of an instance is, if there is one."""
        return self.run / f"{id_}.json"

    def has_any(self, id_: str) -> bool:
        """Whether anything of an instance is there. Raises UnavailableError when the module is not loaded."""
        return self.note(id_).exists() or bool(self._kernel.instances_of(id_))

    def write_note(self, id_: str, document: Mapping[str, Any]) -> None:
        """Writes the note, whole or not at all. Raises UnavailableError."""
        temporary = self.run / f".{id_}.tmp"
        try:
            self.run.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps(document))
            temporary.replace(self.note(id_))
        except OSError as error:
            raise UnavailableError(f"{self.note(id_)} cannot be written: {error.strerror}") from error

    def mount_nodes(self, id_: str) -> Path:
        """Mounts the instance's nodes; returns their folder. Raises UnavailableError."""
        folder = self.run / id_
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._mount(id_, folder)
        except OSError as error:
            raise UnavailableError(f"cgpufs of {id_} cannot be mounted on {folder}: {error.strerror}") from error
        self._name_numbers(id_)
        return folder

    def _name_numbers(self, id_: str) -> None:
        """Where systemd holds the control groups, runc tells it only of numbers that have a name in /dev/char.

        What it is not told of is lost at the next `systemctl daemon-reload` (runc 1.1, devices of libcontainer's cgroups).
        """
        try:
            self._chars.mkdir(parents=True, exist_ok=True)
            for name, (major, minor) in node_numbers(self._kernel.instances_of(id_)).items():
                link = self._chars / f"{major}:{minor}"
                link.unlink(missing_ok=True)  # of an instance that ended with the module
                os.symlink(self.run / id_ / name, link)  # noqa: PTH211 - the light path has no links
        except OSError as error:
            raise UnavailableError(f"{self._chars} cannot name the nodes of {id_}: {error.strerror}") from error

    def _unname_numbers(self, id_: str) -> None:
        ours = f"{self.run / id_}/"
        with suppress(OSError):  # a name that stays leads nowhere, and the next instance of its number takes it
            for link in self._chars.iterdir():
                if os.path.islink(link) and os.readlink(link).startswith(ours):  # noqa: PTH114, PTH115 - as above
                    link.unlink(missing_ok=True)

    def end(self, id_: str, within_s: float) -> None:
        """Ends an instance, its mount and its note; what is gone is no error.

        Raises UnavailableError while something holds its devices; that is waited for as long as `within_s`.
        """
        folder = self.run / id_
        try:
            self._unmount(folder)
        except OSError as error:
            raise UnavailableError(f"{folder} cannot be unmounted: {error.strerror}") from error
        self._unname_numbers(id_)
        with suppress(OSError):
            folder.rmdir()
        self._kernel.end(id_, within_s)
        self.note(id_).unlink(missing_ok=True)


def node_numbers(rows: Iterable[Instance]) -> dict[str, tuple[int, int]]:
    """Node name → the numbers that the device cgroup sees, of an instance's rows."""
    found: dict[str, tuple[int, int]] = {}
    for row in rows:
        found |= {f"nvidia{row.gpu}": row.dev, "nvidiactl": row.ctl, "nvidia-uvm": row.uvm}
    return found
