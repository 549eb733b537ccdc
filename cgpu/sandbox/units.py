# SPDX-License-Identifier: Apache-2.0
"""The long-running programs of a sandbox: each is started from a written unit, so that any later process can restart it."""

import json
import os
import shlex
import signal
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from cgpu.core.errors import SettingError, UnavailableError
from cgpu.sandbox.host import is_zombie, run

_START_S: Final = 60
_STOP_S: Final = 60


@dataclass(frozen=True, slots=True)
class Place:
    """Where a program runs. `network`, `mounts`: namespace files ("" = the host's). `joins`: files of its cgroups."""

    network: str
    mounts: str
    joins: tuple[str, ...]

    def command(self, argv: list[str]) -> list[str]:
        """`argv`, moved there before it starts."""
        flags = [f"--net={self.network}", *([f"--mount={self.mounts}"] if self.mounts else [])]
        joins = "".join(f"echo $$ > {shlex.quote(path)} || exit 1; " for path in self.joins)
        return ["sh", "-c", f'{joins}exec "$@"', "sh", "nsenter", *flags, *argv]


@dataclass(frozen=True, slots=True)
class Unit:
    """One program: `name` like `kube-apiserver` or `node-1/kubelet`."""

    name: str
    argv: list[str]
    place: Place
    path: str


class Units:
    """The units of one sandbox, kept in its state folder."""

    def __init__(self, state: Path) -> None:
        self._folder = state / "units"
        self._logs = state / "log"

    def log(self, name: str) -> Path:
        """Where the program's output goes."""
        return self._logs / f"{_flat(name)}.log"

    def names(self) -> list[str]:
        """Every unit that was ever started."""
        return sorted(self._load(path).name for path in self._folder.glob("*.json"))

    def start(self, unit: Unit) -> None:
        """Write the unit and start its program. Raises UnavailableError when it does not come to life."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._logs.mkdir(parents=True, exist_ok=True)
        self._unit_file(unit.name).write_text(json.dumps(asdict(unit)))
        self._launch(unit)

    def start_again(self, name: str) -> None:
        """Start a unit's program as it was written. Raises SettingError for an unknown name."""
        if not self.alive(name):
            self._launch(self._unit(name))

    def kill(self, name: str, signal_number: int = signal.SIGKILL) -> None:
        """End a unit's program and wait until it is gone; one that is not running is fine."""
        process = self.process(name)
        if process is None:
            return
        os.kill(process, signal_number)
        end = time.monotonic() + _STOP_S
        while not is_zombie(process):
            if time.monotonic() > end:
                raise UnavailableError(f"{name} (process {process}) does not end after signal {signal_number}")
            time.sleep(0.01)

    def alive(self, name: str) -> bool:
        """Whether the program runs."""
        return self.process(name) is not None

    def process(self, name: str) -> int | None:
        """The program's process id while it runs. Raises SettingError for an unknown name."""
        self._unit(name)
        try:
            number, born = self._pid_file(name).read_text().split()
        except (OSError, ValueError):
            return None
        return int(number) if _born(int(number)) == born and not is_zombie(int(number)) else None

    def tail(self, name: str, lines: int = 15) -> str:
        """The last lines of a program's output."""
        try:
            return "\n".join(self.log(name).read_text(errors="replace").splitlines()[-lines:])
        except OSError:
            return ""

    def _launch(self, unit: Unit) -> None:
        pid_file, log = self._pid_file(unit.name), self.log(unit.name)
        pid_file.unlink(missing_ok=True)
        # written by the process itself before it becomes the program: a number and the time it was born (man 5 proc)
        note = 'echo $$ $(cut -d" " -f22 /proc/$$/stat) > "$0.draft"; mv "$0.draft" "$0"'
        script = f'{note}; exec "$@"'
        with log.open("ab") as output:
            subprocess.run(
                ["setsid", "--fork", "sh", "-c", script, str(pid_file), *unit.place.command(unit.argv)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, "PATH": unit.path},
                cwd="/",
                check=True,
            )
        end = time.monotonic() + _START_S
        while not pid_file.exists():
            if time.monotonic() > end:
                raise UnavailableError(f"{unit.name} did not start within {_START_S} s; see {log}")
            time.sleep(0.005)

    def _unit(self, name: str) -> Unit:
        path = self._unit_file(name)
        if not path.exists():
            raise SettingError(f"no program {name!r} in this sandbox; there are {', '.join(self.names()) or 'none'}")
        return self._load(path)

    @staticmethod
    def _load(path: Path) -> Unit:
        fields = json.loads(path.read_text())
        place = fields["place"]
        return Unit(**{**fields, "place": Place(place["network"], place["mounts"], tuple(place["joins"]))})

    def _unit_file(self, name: str) -> Path:
        return self._folder / f"{_flat(name)}.json"

    def _pid_file(self, name: str) -> Path:
        return self._folder / f"{_flat(name)}.pid"


def _flat(name: str) -> str:
    return name.replace("/", "_")


def _born(process: int) -> str:
    """When the process was born, in the kernel's ticks; "" when it is gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[21]
    except (OSError, IndexError):
        return ""


def run_in(place: Place, argv: list[str], text: str | None = None) -> str:
    """Standard output of a command in a place. Raises UnavailableError when it fails."""
    return run(place.command(argv), text=text)
