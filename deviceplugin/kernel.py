# SPDX-License-Identifier: Apache-2.0
"""Shares that the kernel module enforces: an instance a container, its device nodes, and the driver's files beside them.

An instance is noted in the run folder first, then made, then mounted, and ended in the opposite order: whoever finds the
note can end it, however far its making came.
"""

import errno
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from cgpu.cdi import BindMount, Edits, virtual_nodes
from cgpu.cgpufs import mount_cgpufs, unmount
from cgpu.core.errors import UnavailableError
from cgpu.core.memory import visible_bytes
from cgpu.core.model import Card
from cgpu.core.names import Mode
from cgpu.driver import driver_files
from cgpu.footprint import Footprint, node_numbers
from cgpu.procfs import CgpuProc, Instance, driver_version
from deviceplugin.compute import Compute
from deviceplugin.grants import Grant, weight_of

_RUNTIME: Final = "kubernetes"
_BUSY_S: Final = 0.5
_READ_ONLY: Final = ("ro", "nosuid", "nodev", "bind")


class KernelInstances:
    """Instances of the kernel module, as `deviceplugin.instances.Instances` wants them."""

    def __init__(
        self,
        proc: CgpuProc,
        problem: Callable[[Mode], str],
        run: Path,
        *,
        compute: Compute | None = None,
        proc_root: Path = Path("/proc"),
        host_root: Path = Path("/"),
        mount: Callable[[str, Path], None] = mount_cgpufs,
        unmount: Callable[[Path], None] = unmount,
    ) -> None:
        """`run`: /run/cgpu; `compute`: sets the cards' policy; `host_root`: the node's own root, with the driver's files."""
        self._proc = proc
        self._problem = problem
        self._footprint = Footprint(proc, run, host_root / "dev/char", mount, unmount)
        self._compute = compute or Compute(proc, run)
        self._proc_root = proc_root
        self._host_root = host_root

    def problem(self, mode: Mode) -> str:
        """Why nothing can be made here in this mode, "" when it can."""
        return self._problem(mode)

    def adopt(self, grant: Grant, cards: Sequence[Card]) -> bool:
        """Whether the grant's instance is there; its sizes are the grant's afterwards.

        Raises UnavailableError, for example when it uses more than it would have.
        """
        wanted = _sizes(grant, cards)
        there = {row.gpu: row for row in self._proc.instances_of(grant.instance)}
        if not self._footprint.note(grant.instance).exists() or there.keys() != wanted.keys():
            return False
        for minor, size in wanted.items():
            if there[minor].mem != size:
                self._set_size(grant, there[minor], size)
        self._mount_nodes(grant.instance)
        return True

    def _set_size(self, grant: Grant, row: Instance, size: int) -> None:
        try:
            self._proc.set_instance(row.gpu, grant.instance, "memsize", size)
        except UnavailableError as error:
            if getattr(error.__cause__, "errno", None) != errno.EBUSY:
                raise
            used = f"container {grant.container} uses {row.used >> 20} MiB of GPU memory"
            raise UnavailableError(f"{used}, more than the {size >> 20} MiB that it would have") from error

    def create(self, grant: Grant, cards: Sequence[Card]) -> None:
        """Make the grant's instance on each of its cards. Raises UnavailableError; nothing stays then."""
        if problem := self.problem(grant.mode):
            raise UnavailableError(problem)
        if self._footprint.has_any(grant.instance):
            self.destroy(grant.instance)  # of other cards, or half-made
        try:
            self._write_note(grant)
            for minor, size in _sizes(grant, cards).items():
                self._compute.prepare(minor, grant.mode)
                self._proc.create(grant.instance, minor, size, _weight(grant), highprio=grant.high_prio)
            self._mount_nodes(grant.instance)
        except UnavailableError:
            with suppress(UnavailableError):
                self.destroy(grant.instance)
            raise

    def destroy(self, instance: str) -> None:
        """End an instance; one that is gone is no error. Raises UnavailableError while a container holds it."""
        self._footprint.end(instance, _BUSY_S)

    def existing(self) -> frozenset[str]:
        """Ids of the instances that were made for pods."""
        return frozenset(note.stem for note in self._footprint.run.glob("*.json") if _is_ours(note))

    def rows(self) -> tuple[Instance, ...]:
        """Every instance as the kernel counts it; none while the module is not there."""
        try:
            return self._proc.instances()
        except UnavailableError:
            return ()

    def edits(self, grant: Grant, env: Mapping[str, str], cards: Sequence[Card]) -> Edits:
        """The instance's nodes, the driver's files, and the environment."""
        del cards
        files = driver_files(self._host_root, driver_version(self._proc_root))
        libraries = [BindMount(file.source, file.path, _READ_ONLY) for file in files]
        devices = node_numbers(self._proc.instances_of(grant.instance))
        return virtual_nodes(env, self._footprint.run / grant.instance, devices, libraries)

    def _mount_nodes(self, instance: str) -> None:
        if os.path.ismount(self._footprint.run / instance):
            return
        try:
            self._footprint.mount_nodes(instance)
        except UnavailableError as error:
            raise UnavailableError(
                f"{error}: the plugin's pod must be privileged (devicePlugin.privileged of the chart)"
            ) from error

    def _write_note(self, grant: Grant) -> None:
        document = {
            "runtime": _RUNTIME,
            "containers": [grant.container],
            "namespace": grant.namespace,
            "pod": grant.pod,
            "podUID": grant.pod_uid,
        }
        self._footprint.write_note(grant.instance, document)


def _sizes(grant: Grant, cards: Sequence[Card]) -> dict[int, int]:
    """Bytes by NVIDIA minor."""
    used = (card for card in cards if card.uuid in grant.shares)
    return {card.minor: visible_bytes(card.mem_mib, grant.shares[card.uuid].mem, card.units) for card in used}


def _weight(grant: Grant) -> int | None:
    """Where compute is not asked for the kernel gives what is free: 1, or none where all slices are handed out."""
    return weight_of(grant) if grant.mode is Mode.CORE_MEM else None


def _is_ours(note: Path) -> bool:
    try:
        owner: Any = json.loads(note.read_bytes())
    except (OSError, ValueError):
        return False  # being made by another, who writes whole files
    return isinstance(owner, dict) and owner.get("runtime") == _RUNTIME
