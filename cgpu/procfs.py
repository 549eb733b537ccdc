# SPDX-License-Identifier: Apache-2.0
"""/proc/cgpu_km, the kernel module's interface, and the driver's version beside it: read and written here and nowhere else.

The root is a parameter: tests build the tree in a folder. Refusals of the kernel become errors that name the command
and say what the number means.
"""

from __future__ import annotations

import errno
import os
import time

from cgpu.core.errors import UnavailableError
from cgpu.core.light import TYPE_CHECKING, NamedTuple
from cgpu.light import Path

if TYPE_CHECKING:
    from typing import Final

PROC: Final = Path("/proc")
FOLDER: Final = "cgpu_km"
_NUMBERS: Final = ("gpu", "inst", "mem", "used", "weight", "highprio", "busy_ns", "oom")
_DEVICES: Final = ("dev", "ctl", "uvm")
_ID_LENGTH: Final = 12
_PAUSE_S: Final = 0.01
_HEX: Final = "0123456789abcdef"
_MEANINGS: Final[dict[int, str]] = {
    errno.EINVAL: "the module refuses a value; its log (dmesg) names it",
    errno.EEXIST: "this instance exists already",
    errno.EBUSY: "it is in use: mounted, held by a process, or smaller than what is used",
    errno.ENOSPC: "the card has no free instance, or its memory would be passed",
    errno.ENODEV: "the card is not attached to the module",
    errno.ENOENT: "there is no such instance or GPU",
    errno.EACCES: "root is needed",
    errno.EPERM: "root is needed",
}


class Instance(NamedTuple):
    """One line of inst_ctl: one instance on one GPU. Sizes in bytes, busy time in ns, device numbers (major, minor)."""

    id: str
    gpu: int  # NVIDIA minor
    inst: int
    mem: int
    used: int
    weight: int
    highprio: int
    busy_ns: int
    oom: int
    dev: tuple[int, int]
    ctl: tuple[int, int]
    uvm: tuple[int, int]


def parse_instance(line: str) -> Instance:
    """Read a line of inst_ctl; keys that are not known yet are left out. Raises UnavailableError with the line."""
    id_, *rest = line.split()
    pairs = dict(part.split("=", 1) for part in rest if "=" in part)
    try:
        numbers = {key: int(pairs[key]) for key in _NUMBERS}
        devices = {key: _device(pairs[key]) for key in _DEVICES}
    except (KeyError, ValueError) as error:
        raise UnavailableError(f"/proc/cgpu_km/inst_ctl: {line.strip()[:200]!r} cannot be read ({error!r})") from error
    return Instance(id=id_, **numbers, **devices)  # type: ignore[arg-type]


def _device(text: str) -> tuple[int, int]:
    major, minor = text.split(":")
    return int(major), int(minor)


def driver_version(proc: Path) -> str:
    """Such as 535.261.03: the first word of the driver's line that is a version; "" when no driver is loaded."""
    try:
        words = (proc / "driver/nvidia/version").read_text().split()
    except OSError:
        return ""
    return next((word for word in words if word[:1].isdigit() and "." in word), "")


class CgpuProc:
    """The tree under `root`/cgpu_km."""

    def __init__(self, root: Path = PROC) -> None:
        """`root`: /proc, or a folder that stands for it."""
        self.path = root / FOLDER

    def version(self) -> str | None:
        """Version of the running core, None when the module is not loaded."""
        try:
            return (self.path / "version").read_text().strip()
        except OSError:
            return None

    def gpus(self) -> frozenset[int]:
        """NVIDIA minors that the module has attached."""
        try:
            return frozenset(int(entry.name) for entry in self.path.iterdir() if entry.name.isdecimal())
        except OSError:
            return frozenset()

    def instances(self) -> tuple[Instance, ...]:
        """Every instance on every GPU. Raises UnavailableError when the module is not loaded."""
        lines = self._read(self.path / "inst_ctl").splitlines()
        return tuple(parse_instance(line) for line in lines if line.strip())

    def instances_of(self, id_: str) -> tuple[Instance, ...]:
        """One instance on each of its GPUs, none when there is no such. Raises UnavailableError as `instances` does."""
        lines = self._read(self.path / "inst_ctl").splitlines()
        return tuple(parse_instance(line) for line in lines if line.startswith(f"{id_} "))

    def create(self, id_: str, gpu: int, mem: int, weight: int | None = None, highprio: bool = False) -> None:
        """Make an instance on one GPU (NVIDIA minor) with `mem` bytes. Raises UnavailableError with the kernel's reason."""
        if len(id_) != _ID_LENGTH or id_.strip(_HEX):
            raise UnavailableError(f"instance id {id_!r}: must be 12 hex digits")
        words = ["create", id_, f"gpu={gpu}", f"mem={mem}"]
        words += [f"weight={weight}"] if weight is not None else []
        words += ["highprio=1"] if highprio else []
        self._write(self.path / "inst_ctl", " ".join(words))

    def destroy(self, id_: str) -> None:
        """End an instance on all its GPUs. Raises UnavailableError, for example while a process holds its devices."""
        self._write(self.path / "inst_ctl", f"destroy {id_}")

    def end(self, id_: str, within_s: float) -> None:
        """Destroy an instance as soon as nothing holds it; none, or no module, is no error.

        Nobody tells when the mounts of a container that has just ended are gone, so it is tried for `within_s`. Raises
        UnavailableError as `destroy` does.
        """
        deadline = time.monotonic() + within_s
        while self.version() is not None and self.instances_of(id_):
            try:
                self.destroy(id_)
            except UnavailableError as error:
                if getattr(error.__cause__, "errno", None) != errno.EBUSY or time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_S)

    def get_gpu(self, gpu: int, name: str) -> int:
        """A number of one GPU: policy, max_inst, free_weight, prio_ratio, major. Raises UnavailableError."""
        return self._number(self.path / str(gpu) / name)

    def set_gpu(self, gpu: int, name: str, value: int) -> None:
        """Write a number of one GPU. Raises UnavailableError with the kernel's reason."""
        self._write(self.path / str(gpu) / name, str(value))

    def set_instance(self, gpu: int, id_: str, name: str, value: int) -> None:
        """Write memsize (bytes), weight or highprio of an instance. Raises UnavailableError with the kernel's reason."""
        self._write(self.path / str(gpu) / id_ / name, str(value))

    def _number(self, path: Path) -> int:
        text = self._read(path)
        try:
            return int(text)
        except ValueError as error:
            raise UnavailableError(f"{path}: {text[:80]!r} is no number") from error

    def _read(self, path: Path) -> str:
        try:
            return path.read_text()
        except OSError as error:
            raise UnavailableError(f"{path}: {_why(error)}") from error

    def _write(self, path: Path, text: str) -> None:
        """One write call, since the kernel reads one command a line and answers per call."""
        try:
            handle = os.open(path, os.O_WRONLY)
            try:
                os.write(handle, f"{text}\n".encode())
            finally:
                os.close(handle)
        except OSError as error:
            raise UnavailableError(f"{path}: {text!r} was refused: {_why(error)}") from error


def _why(error: OSError) -> str:
    meaning = _MEANINGS.get(error.errno or 0)
    return f"{error.strerror} ({meaning})" if meaning else str(error.strerror)
