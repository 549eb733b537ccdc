# SPDX-License-Identifier: Apache-2.0
"""Where expensive things are kept: `${CGPU_CACHE:-~/.cache/cgpu}`, one folder a thing, never half-made.

A thing is built in a scratch folder beside its place and renamed into it at the end; a lock lets two processes that
want the same thing build it once. The recipe (whatever decides the content) is stored with it: a changed one rebuilds.
"""

import fcntl
import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

RECIPE: Final = ".recipe.json"


def cache_root() -> Path:
    """The cache folder: CGPU_CACHE, else `~/.cache/cgpu`."""
    return Path(os.environ.get("CGPU_CACHE") or Path.home() / ".cache" / "cgpu").absolute()


def say(text: str) -> None:
    """One line of progress, on standard error since standard output belongs to the script that runs in the VM."""
    print(f"vm: {text}", file=sys.stderr, flush=True)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds the lock file beside `path`; waits for whoever has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f".{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def digest(*parts: object) -> str:
    """Twelve hex digits that stand for a recipe."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:12]


def file_digest(paths: list[Path]) -> str:
    """Twelve hex digits over names and contents of files, in the order of their names."""
    total = hashlib.sha256()
    for path in sorted(paths):
        total.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:12]


def is_current(place: Path, recipe: object) -> bool:
    """True when `place` was built by exactly this recipe."""
    try:
        return bool(json.loads((place / RECIPE).read_text()) == json.loads(json.dumps(recipe)))
    except (OSError, ValueError):
        return False


def ensure(place: Path, recipe: object, build: Callable[[Path], None], what: str) -> Path:
    """Returns `place`, built by `build(scratch folder)` unless one of the same recipe stands there already."""
    if is_current(place, recipe):
        return place
    with locked(place):
        if is_current(place, recipe):
            return place
        say(f"building {what} (kept in {place})")
        started = time.monotonic()
        for stale in place.parent.glob(f".{place.name}.[0-9]*"):  # of a build that was killed: we hold its lock
            shutil.rmtree(stale, ignore_errors=True)
        scratch = place.with_name(f".{place.name}.{os.getpid()}")
        scratch.mkdir(parents=True)
        try:
            build(scratch)
            (scratch / RECIPE).write_text(json.dumps(recipe))
            shutil.rmtree(place, ignore_errors=True)
            scratch.rename(place)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        say(f"{what}: done in {time.monotonic() - started:.0f} s")
    return place
