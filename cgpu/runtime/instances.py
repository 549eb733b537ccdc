# SPDX-License-Identifier: Apache-2.0
"""Instances of containers: made before the container, ended after it, and never left behind.

What stands behind a container is written down first (/run/cgpu/<id>.json), then made in the kernel, then mounted. Whoever
finds the note can therefore end everything, however far the making came.
"""

from __future__ import annotations

from cgpu import light_json as json
from cgpu.cgpufs import mount_cgpufs, unmount
from cgpu.core.errors import UnavailableError
from cgpu.core.light import TYPE_CHECKING, NamedTuple
from cgpu.footprint import Footprint, node_numbers
from cgpu.light import Path, suppress
from cgpu.procfs import CgpuProc
from cgpu.runtime.request import Request
from cgpu.runtime.spec import Node

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

_BUSY_S: Final = 2.0  # the kernel frees the mounts of a container that has just ended in the background


class Owner(NamedTuple):
    """Whose an instance is: the container, the folder where its runtime keeps it, and the process that makes it."""

    runtime: str
    container: str
    state: str
    maker: int


class Instances:
    """The instances of this host, as far as the runtime wrapper made them."""

    def __init__(
        self,
        kernel: CgpuProc,
        run: Path,
        chars: Path,
        mount: Callable[[str, Path], None] = mount_cgpufs,
        unmount: Callable[[Path], None] = unmount,
    ) -> None:
        """`run`: /run/cgpu; `chars`: /dev/char; `mount` and `unmount` make and end the mount of an instance's nodes."""
        self._kernel = kernel
        self._footprint = Footprint(kernel, run, chars, mount, unmount)

    def make(self, id_: str, owner: Owner, request: Request) -> list[Node]:
        """Make an instance and mount its nodes; what another life of the same container left is ended before.

        Raises UnavailableError with the kernel's reason; nothing is left then.
        """
        if self._footprint.has_any(id_):
            self.end(id_)
        try:
            self._write(id_, owner)
            for part in request.slices:
                self._kernel.create(id_, part.gpu.minor, part.mem, request.weight, request.highprio)
            return self._nodes(id_)
        except BaseException:
            with suppress(UnavailableError):
                self.end(id_)
            raise

    def end(self, id_: str) -> None:
        """End an instance, its mount and its note. Raises UnavailableError while something holds its devices."""
        self._footprint.end(id_, _BUSY_S)

    def has(self, id_: str) -> bool:
        """Whether the wrapper made this instance."""
        return self._footprint.note(id_).exists()

    def leftovers(self) -> list[str]:
        """Instances whose container is gone or never came to be."""
        try:
            notes = sorted(note for note in self._footprint.run.iterdir() if note.name.endswith(".json"))
        except OSError:
            return []  # nothing was ever made
        return [note.stem for note in notes if self._is_leftover(note)]

    def _nodes(self, id_: str) -> list[Node]:
        folder = self._footprint.mount_nodes(id_)
        numbers = node_numbers(self._kernel.instances_of(id_))
        return [Node(str(node), f"/dev/{node.name}", *numbers[node.name]) for node in sorted(folder.iterdir())]

    def _write(self, id_: str, owner: Owner) -> None:
        document = {
            "runtime": owner.runtime,
            "containers": [owner.container],
            "state": owner.state,
            "maker": owner.maker,
            "born": _birth(owner.maker),
        }
        self._footprint.write_note(id_, document)

    def _is_leftover(self, note: Path) -> bool:
        try:
            owner = json.loads(note.read_bytes())
        except (OSError, ValueError):
            return False  # not ours: we write whole files
        if "maker" not in owner or "state" not in owner:
            return False  # made by the device plugin
        being_made = _birth(owner["maker"]) == owner["born"] != ""
        return not being_made and not Path(owner["state"]).exists()


def _birth(pid: int) -> str:
    """When a process began, in ticks since boot: field 22 of its stat; "" when there is none. Tells reused pids apart."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[19]
