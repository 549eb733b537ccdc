# SPDX-License-Identifier: Apache-2.0
"""Kernel instances for tests of the device plugin that look at what was made and not at how."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from cgpu.cdi import Edits, env_only
from cgpu.core.errors import UnavailableError
from cgpu.core.model import Card
from cgpu.core.names import Mode
from cgpu.procfs import Instance
from deviceplugin.grants import Grant
from tests.fakes import Wire


class FolderInstances:
    """Kernel instances played by a folder: one JSON file an instance, so that what was made can be looked at."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.trouble = ""  # what `problem` says
        self.refuse = ""  # what `create` raises
        self.busy: set[str] = set()  # instances that `destroy` finds in use
        self.used = 0  # GiB a card below which no instance shrinks
        self.most = 1000  # GiB a card above which none grows
        folder.mkdir(parents=True, exist_ok=True)

    def problem(self, mode: Mode) -> str:
        return self.trouble

    def adopt(self, grant: Grant, cards: Sequence[Card]) -> bool:
        path = self.folder / grant.instance
        if not path.exists():
            return False
        row, sizes = json.loads(path.read_text()), [share.mem for share in grant.shares.values()]
        for before, size in zip(row["mem"], sizes, strict=True):
            if size < min(before, self.used) or size > max(before, self.most):
                raise UnavailableError(f"{size} GiB are refused")
        self._write(grant.instance, {**row, "mem": sizes})
        return True

    def _write(self, name: str, row: Wire) -> None:
        """At once, since tests look while it is done in another thread."""
        temporary = self.folder.parent / f"{self.folder.name}.new"
        temporary.write_text(json.dumps(row))
        temporary.replace(self.folder / name)

    def create(self, grant: Grant, cards: Sequence[Card]) -> None:
        if self.refuse:
            raise UnavailableError(self.refuse)
        row = {"pod": grant.pod, "container": grant.container, "mem": [s.mem for s in grant.shares.values()]}
        self._write(grant.instance, row)

    def destroy(self, instance: str) -> None:
        if instance in self.busy:
            raise UnavailableError(f"instance {instance} is in use")
        (self.folder / instance).unlink(missing_ok=True)

    def existing(self) -> frozenset[str]:
        return frozenset(path.name for path in self.folder.iterdir())

    def edits(self, grant: Grant, env: Mapping[str, str], cards: Sequence[Card]) -> Edits:
        return env_only(env)

    def rows(self) -> tuple[Instance, ...]:
        """Nothing counts here."""
        return ()

    def made(self) -> list[Wire]:
        """What exists, in the order of pods and containers."""
        rows = [json.loads(path.read_text()) for path in self.folder.iterdir()]
        return sorted(rows, key=lambda row: (row["pod"], row["container"]))
