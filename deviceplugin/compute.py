# SPDX-License-Identifier: Apache-2.0
"""How a card divides its compute, by the node's mode: the policy and the number of slices, set before an instance is made.

What `core_mem` changes is noted beside the instances, `/run/cgpu/policies/<minor>`, and given back by the next mode.
"""

from contextlib import suppress
from pathlib import Path
from typing import Final

from cgpu.core.errors import UnavailableError
from cgpu.core.names import CORE_PER_CARD, CORE_STEP, MAX_INSTANCES_DEFAULT, Mode
from cgpu.procfs import CgpuProc

SLICES: Final = CORE_PER_CARD // CORE_STEP
"""max_inst of a card whose percentages are weights."""
FIXED: Final = 3


class Compute:
    """Sets policy and max_inst of cards."""

    def __init__(
        self, proc: CgpuProc, run: Path, core_policy: int = FIXED, max_instances: int = MAX_INSTANCES_DEFAULT
    ) -> None:
        """`run`: /run/cgpu; `core_policy`: what mode core_mem sets; `max_instances`: shares that a card takes."""
        self._proc = proc
        self._folder = run / "policies"
        self._core_policy = core_policy
        self._max_instances = max_instances

    def prepare(self, minor: int, mode: Mode) -> None:
        """The card as the mode wants it; nothing is written where it is so. Raises UnavailableError."""
        if mode is Mode.CORE_MEM:
            self._set_slices(minor, SLICES)
            self._divide(minor)
            return
        self._give_back(minor)
        if self._proc.get_gpu(minor, "max_inst") < self._max_instances:
            self._set_slices(minor, self._max_instances)

    def _set_slices(self, minor: int, wanted: int) -> None:
        if self._proc.get_gpu(minor, "max_inst") != wanted:
            self._proc.set_gpu(minor, "max_inst", wanted)

    def _divide(self, minor: int) -> None:
        before = self._proc.get_gpu(minor, "policy")
        if before == self._core_policy:
            return
        note = self._note(minor)
        if not note.exists():
            try:
                note.parent.mkdir(parents=True, exist_ok=True)
                note.write_text(f"{before}\n")
            except OSError as error:
                raise UnavailableError(f"{note} cannot be written: {error.strerror}") from error
        self._proc.set_gpu(minor, "policy", self._core_policy)

    def _give_back(self, minor: int) -> None:
        note = self._note(minor)
        with suppress(OSError, ValueError):  # nothing to give back
            self._proc.set_gpu(minor, "policy", int(note.read_text()))
            note.unlink()

    def _note(self, minor: int) -> Path:
        return self._folder / str(minor)
