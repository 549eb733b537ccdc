# SPDX-License-Identifier: Apache-2.0
"""The kernel's side in a folder: a /proc with the driver's files and /proc/cgpu_km, whose inst_ctl does what it is told."""

import errno
import os
from pathlib import Path
from typing import Any

from cgpu.core.errors import UnavailableError
from cgpu.procfs import CgpuProc
from cgpu.runtime.config import Config
from cgpu.runtime.create import Tools
from cgpu.runtime.host import Host, Paths
from cgpu.runtime.instances import Instances
from cgpu.runtime.libraries import HostFile
from tests.runtime.documents import T4


def refused(number: int) -> UnavailableError:
    """What procfs.py raises when the kernel answers with an errno."""
    error = UnavailableError(f"refused: {os.strerror(number)}")
    error.__cause__ = OSError(number, os.strerror(number))
    return error


class FolderKernel(CgpuProc):
    """Commands become lines of inst_ctl, as the module shows them. `room`: bytes of a card; `busy`: destroys that fail."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        (root / "cgpu_km" / "0").mkdir(parents=True, exist_ok=True)
        (root / "cgpu_km" / "version").write_text("1.0.0\n")
        (root / "cgpu_km" / "inst_ctl").touch()
        (root / "cgpu_km" / "0" / "max_inst").write_text("20\n")
        (root / "devices").write_text("Character devices:\n195 nvidia\n510 nvidia-uvm\n  1 mem\n")
        self.room = 15109 << 20
        self.busy = 0
        self.commands: list[str] = []

    def create(self, id_: str, gpu: int, mem: int, weight: int | None = None, highprio: bool = False) -> None:
        self.commands.append(f"create {id_} gpu={gpu} mem={mem >> 20}MiB weight={weight} highprio={highprio}")
        rows = self.instances()
        if sum(row.mem for row in rows) + mem > self.room:
            raise refused(errno.ENOSPC)
        line = (
            f"{id_} gpu={gpu} inst={len(rows)} mem={mem} used=0 weight={weight or 1} highprio={int(highprio)}"
            f" busy_ns=0 oom=0 dev=240:{len(rows)} ctl=241:{2 * len(rows)} uvm=241:{2 * len(rows) + 1}\n"
        )
        with (self.path / "inst_ctl").open("a") as control:
            control.write(line)

    def destroy(self, id_: str) -> None:
        self.commands.append(f"destroy {id_}")
        if self.busy:
            self.busy -= 1
            raise refused(errno.EBUSY)
        lines = (self.path / "inst_ctl").read_text().splitlines(keepends=True)
        (self.path / "inst_ctl").write_text("".join(line for line in lines if not line.startswith(id_)))


def lasting(id_: str) -> list[str]:
    """What `Machine.left` tells of the first instance while it lives."""
    return sorted([id_, id_, f"{id_}.json", "240:0", "241:0", "241:1"])


class Machine:
    """A host in a folder, with the wrapper's tools on it."""

    def __init__(self, folder: Path, **config: Any) -> None:
        self.kernel = FolderKernel(folder / "proc")
        self.run = folder / "run"
        self.log: list[str] = []
        library = folder / "libcuda.so.535.261.03"
        library.write_text("")
        self.host = Host(T4, (HostFile(str(library), "libcuda.so.1", "compute"),))
        self.mounted: set[Path] = set()
        self.mount_error = 0
        self.instances = Instances(self.kernel, self.run, folder / "dev/char", self.mount, self.unmount)
        paths = Paths(folder / "proc", folder / "dev", self.run, folder)
        self.tools = Tools(Config(**config), paths, self.kernel, self.instances, self.log.append, lambda _: self.host)

    def mount(self, id_: str, folder: Path) -> None:
        """Plain files stand for nodes: a runtime can bind them all the same."""
        if self.mount_error:
            raise OSError(self.mount_error, os.strerror(self.mount_error))
        self.mounted.add(folder)
        for name in ("nvidia0", "nvidiactl", "nvidia-uvm"):
            (folder / name).write_text(id_)

    def unmount(self, folder: Path) -> None:
        self.mounted.discard(folder)
        for file in folder.glob("*"):
            file.unlink()

    @property
    def left(self) -> list[str]:
        """What exists of instances, anywhere."""
        chars = self.run.parent / "dev/char"
        files = [path.name for folder in (self.run, chars) if folder.exists() for path in folder.iterdir()]
        return sorted([*files, *(row.id for row in self.kernel.instances())])
