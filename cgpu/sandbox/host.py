# SPDX-License-Identifier: Apache-2.0
"""This machine's packages, commands, cgroups and mounts, as the sandbox uses them."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, ip_network
from pathlib import Path
from typing import Final

from cgpu.core.errors import UnavailableError
from cgpu.sandbox.progress import Say, step

# program (or file) that proves a package is there: package
PACKAGES: Final = {
    "runc": "runc",
    "/usr/lib/cni/ptp": "containernetworking-plugins",
    "/usr/bin/busybox": "busybox-static",
    "ip": "iproute2",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "nsenter": "util-linux",
    "mount": "mount",
}
IMAGE_PACKAGES: Final = {"debootstrap": "debootstrap", "buildah": "buildah"}


def require_root() -> None:
    """Raises UnavailableError when this process is not root."""
    if os.geteuid() != 0:
        raise UnavailableError("a sandbox makes namespaces, mounts and cgroups and needs root: run it with sudo")


def ensure_packages(wanted: dict[str, str], say: Say) -> None:
    """Install, by apt-get, the packages whose programs are missing. Raises UnavailableError when that fails."""
    missing = sorted({package for proof, package in wanted.items() if not _present(proof)})
    if not missing:
        return
    with step(say, f"apt-get: installing {' '.join(missing)}"):
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        run(["apt-get", "update", "-qq"], environment=quiet)
        run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing], environment=quiet)


def _present(proof: str) -> bool:
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    return Path(proof).exists() if proof.startswith("/") else shutil.which(proof, path=path) is not None


def run(command: Sequence[str], *, text: str | None = None, environment: dict[str, str] | None = None) -> str:
    """Standard output of a command that must succeed. Raises UnavailableError with its last words otherwise."""
    try:
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, check=False, env=environment, errors="replace"
        )
    except OSError as error:
        raise UnavailableError(f"{command[0]} cannot be started: {error.strerror}") from error
    if done.returncode:
        words = (done.stderr.strip() or done.stdout.strip())[-1500:]
        raise UnavailableError(f"{' '.join(command)} ended with {done.returncode}: {words}")
    return done.stdout


def is_routed(network: IPv4Network) -> bool:
    """Whether the machine already has a route into `network` (other than the default route)."""
    routes = json.loads(run(["ip", "-j", "-4", "route", "show", "table", "all"]) or "[]")
    wide = (route.get("dst", "default") for route in routes)
    return any(text != "default" and ip_network(text, strict=False).overlaps(network) for text in wide)


@dataclass(frozen=True, slots=True)
class Mount:
    """One row of a mount table."""

    point: str
    kind: str


def mounts(table: Path = Path("/proc/self/mounts")) -> list[Mount]:
    """The mount table, in the order of mounting."""
    rows = (line.split() for line in table.read_text().splitlines())
    return [Mount(row[1].encode().decode("unicode_escape"), row[2]) for row in rows]


def unmount_below(folder: Path) -> None:
    """Unmount everything at or below `folder`, the newest first."""
    for mount in reversed(mounts()):
        if mount.point == str(folder) or mount.point.startswith(f"{folder}/"):
            run(["umount", "--lazy", mount.point])


@dataclass(frozen=True, slots=True)
class CgroupTree:
    """The cgroups of one name in every hierarchy of the machine."""

    roots: tuple[Path, ...]

    @classmethod
    def of_machine(cls, name: str) -> "CgroupTree":
        """The tree named `name` in the hierarchies that are mounted now (each hierarchy once)."""
        hierarchies = {
            Path(mount.point).stat().st_dev: mount.point for mount in mounts() if mount.kind in {"cgroup", "cgroup2"}
        }
        return cls(tuple(Path(point) / name for point in hierarchies.values()))

    def make(self, below: Iterable[str]) -> None:
        """Make the tree and its folders `below`."""
        for root in self.roots:
            for folder in ("", *below):
                made = root / folder
                made.mkdir(parents=True, exist_ok=True)
                _inherit_cpuset(made)

    def joins(self, below: str) -> list[str]:
        """The files a process writes its id to, to be in `below`."""
        return [str(root / below / "cgroup.procs") for root in self.roots]

    def processes(self) -> set[int]:
        """Ids of every process anywhere in the tree."""
        found: set[int] = set()
        for root in self.roots:
            for path in (*root.glob("cgroup.procs"), *root.glob("**/cgroup.procs")):
                try:
                    found.update(int(line) for line in path.read_text().split())
                except OSError:  # the cgroup went, or is threaded
                    continue
        return found - {0}

    def kill(self, deadline_s: float = 20) -> None:
        """Kill everything in the tree, what is born meanwhile too. Raises UnavailableError when something stays."""
        end = time.monotonic() + deadline_s
        while left := {process for process in self.processes() if not is_zombie(process)}:
            for process in left:
                kill_hard(process)
            if time.monotonic() > end:
                raise UnavailableError(f"processes {sorted(left)} do not die; see their stacks in /proc/PID/stack")
            time.sleep(0.02)

    def remove(self, deadline_s: float = 10) -> None:
        """Remove the tree; the kernel refuses as long as a dying process is in it, so try until the deadline.

        Raises UnavailableError then.
        """
        end = time.monotonic() + deadline_s
        while remains := [path for root in self.roots for path in _deepest_first(root) if not _rmdir(path)]:
            self.kill()  # a start that was killed may just now have brought a process here
            if time.monotonic() > end:
                raise UnavailableError(f"{remains[0]} cannot be removed: something still runs in it")
            time.sleep(0.02)


def _inherit_cpuset(folder: Path) -> None:
    """A new cpuset of the first cgroup version is empty, and no process can join it."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        file = folder / name
        if file.exists() and not file.read_text().strip() and (folder.parent / name).exists():
            file.write_text((folder.parent / name).read_text())


def _deepest_first(root: Path) -> list[Path]:
    if not root.is_dir():
        return []
    return [*sorted((path for path in root.glob("**/") if path != root), key=lambda p: -len(p.parts)), root]


def _rmdir(path: Path) -> bool:
    """Whether the folder is gone."""
    try:
        path.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def kill_hard(process: int) -> None:
    """SIGKILL; a process that is gone is fine."""
    try:
        os.kill(process, 9)
    except ProcessLookupError:
        return


def is_zombie(process: int) -> bool:
    """Whether a process is gone or waits only to be collected by its parent.

    Its first thread may look like that while the others are still ending and hold its files and ports.
    """
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        return state in {"Z", "X"} and len(list(Path(f"/proc/{process}/task").iterdir())) <= 1
    except OSError:
        return True
