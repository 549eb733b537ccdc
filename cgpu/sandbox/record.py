# SPDX-License-Identifier: Apache-2.0
"""What a sandbox has made on this machine, written down before it is made.

Every name a sandbox uses (network namespaces, links, cgroups, the folder of pinned mount namespaces) follows from its
slot, a small number, and its nodes' names. So one record, kept under /run for as long as those names can exist (a
reboot ends both), is enough to remove everything, whatever was killed and whenever.
"""

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from ipaddress import IPv4Network
from pathlib import Path
from typing import Final

from cgpu.core.errors import SettingError, UnavailableError

RECORDS: Final = Path("/run/cgpu-sandbox")
SLOTS: Final = 16


@dataclass(frozen=True, slots=True)
class Record:
    """One sandbox. `nodes`: its container nodes, `machines`: its virtual ones. `options`: what it was asked for.

    `complete`: it was Ready.
    """

    slot: int
    state: str
    nodes: tuple[str, ...]
    options: str
    kubernetes: str
    complete: bool = False
    machines: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Prefix of everything that is visible on the machine."""
        return f"cgpu{self.slot}"

    @property
    def network(self) -> IPv4Network:
        """Addresses of the host, the control plane and the nodes."""
        return network_of(self.slot)

    @property
    def host_link(self) -> str:
        """The host's end of the link into the sandbox."""
        return f"{self.name}h"

    @property
    def cgroup(self) -> str:
        """Name of the cgroup, in every hierarchy, that holds every process of the sandbox."""
        return f"cgpu-sandbox-{self.slot}"

    def address(self, number: int) -> str:
        """1: the host, 2: the control plane, 10 and up: the nodes."""
        return str(self.network[number])

    def node_address(self, node: str) -> str:
        """Address of a container node or a machine."""
        return self.address(10 + self._number(node))

    def pods_of(self, node: str) -> str:
        """Subnet of a node's pods; it is known inside the sandbox only, so every sandbox has the same ones."""
        return f"10.88.{self._number(node)}.0/24"

    def tap(self, machine: str) -> str:
        """The control plane's end of a machine's link."""
        return f"tap{self._number(machine)}"

    def _number(self, node: str) -> int:
        return (*self.nodes, *self.machines).index(node)

    def namespace(self, node: str = "") -> str:
        """Network namespace of the control plane or of a node."""
        return f"{self.name}-{node}" if node else self.name


def network_of(slot: int) -> IPv4Network:
    """The host's route to a sandbox."""
    return IPv4Network(f"10.77.{slot}.0/24")


class Records:
    """The records of this machine's sandboxes, in a folder that a reboot empties."""

    def __init__(self, folder: Path = RECORDS) -> None:
        self._folder = folder

    def pins(self, record: Record) -> Path:
        """Folder of the pinned mount namespaces of a sandbox."""
        return self._folder / f"{record.slot}.ns"

    def all(self) -> tuple[Record, ...]:
        """Every record, by slot."""
        paths = sorted(self._folder.glob("*.json"), key=lambda path: int(path.stem))
        return tuple(decode_record(path.read_text(), path) for path in paths)

    def of_state(self, state: Path) -> Record | None:
        """The sandbox whose state folder is `state`."""
        return next((record for record in self.all() if record.state == str(state)), None)

    def claim(self, draft: Record, routed: Callable[[IPv4Network], bool]) -> Record:
        """Write a record for `draft` in the first free slot whose network nobody else routes.

        Raises UnavailableError when no slot is free, naming the sandboxes that hold them.
        """
        with self._lock():
            taken = {record.slot: record.state for record in self.all()}
            for slot in range(SLOTS):
                if slot not in taken and not routed(network_of(slot)):
                    record = replace(draft, slot=slot)
                    self.write(record)
                    return record
        held = ", ".join(sorted(taken.values())) or "other users of 10.77.0.0/20"
        raise UnavailableError(f"all {SLOTS} slots for sandboxes are taken by {held}; run `cgpu sandbox down` there")

    def write(self, record: Record) -> None:
        """Replace the record of the slot, in one step."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._folder / f"{record.slot}.json"
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps(asdict(record)))
        draft.rename(path)

    def forget(self, record: Record) -> None:
        """Remove the record: nothing of the sandbox is left."""
        with self._lock():
            (self._folder / f"{record.slot}.json").unlink(missing_ok=True)
            leftover = {path.name for path in self._folder.iterdir()}
        if leftover <= {"lock"}:
            (self._folder / "lock").unlink(missing_ok=True)
            self._folder.rmdir()

    @contextmanager
    def _lock(self) -> Iterator[None]:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (self._folder / "lock").open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield


def decode_record(text: str, path: Path) -> Record:
    """A record from its JSON; what another version of cgpu added is left out, so that this one can end its sandboxes.

    Raises SettingError naming the file when it is no record.
    """
    try:
        known = {name: value for name, value in json.loads(text).items() if name in _FIELDS}
        names = {"nodes": tuple(known["nodes"]), "machines": tuple(known.get("machines", ()))}
        return Record(**{**known, **names})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise SettingError(f"{path} is no record of a sandbox ({error!r}): remove it when no sandbox is up") from error


_FIELDS: Final = frozenset(field.name for field in fields(Record))


@contextmanager
def state_locked(state: Path) -> Iterator[None]:
    """Hold the state folder, made when missing, so that `up` and `down` of one sandbox do not meet."""
    handle = _lock_folder(state)
    try:
        yield
    finally:
        os.close(handle)


def _lock_folder(state: Path) -> int:
    """An open, locked folder; one that was removed while this process waited is made and locked anew."""
    while True:
        state.mkdir(parents=True, exist_ok=True)
        handle = os.open(state, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(handle, fcntl.LOCK_EX)
        if state.exists() and os.fstat(handle).st_ino == state.stat().st_ino:
            return handle
        os.close(handle)
