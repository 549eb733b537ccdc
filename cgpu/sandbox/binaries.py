# SPDX-License-Identifier: Apache-2.0
"""Programs of the pinned versions: from the cache, else from PATH when the version matches, else built from Go modules.

A folder `<cache>/bin/<name>-<version>` exists only when every program in it is complete: it is filled beside its
place and renamed. A lock file a folder keeps two processes from building the same thing.
"""

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from cgpu.core.errors import UnavailableError
from cgpu.sandbox.golang import Go, find_go
from cgpu.sandbox.progress import Say, step
from cgpu.sandbox.versions import Source

_TAIL_LINES: Final = 15


def folder_of(cache: Path, source: Source) -> Path:
    """Where the programs of `source` are, or will be."""
    return cache / "bin" / source.key


def ensure(cache: Path, sources: tuple[Source, ...], say: Say) -> dict[str, Path]:
    """Program name to path, for every program of every source; what is missing is built, with a line a program.

    Raises UnavailableError when a build fails; the text ends with the compiler's last lines.
    """
    programs: dict[str, Path] = {}
    for source in sources:
        folder = folder_of(cache, source)
        if not folder.is_dir():
            with locked(folder.with_suffix(folder.suffix + ".lock"), say):
                if not folder.is_dir():
                    _fill(cache, folder, source, say)
        programs.update({name: folder / name for name in source.mains})
    return programs


@contextmanager
def locked(path: Path, say: Say) -> Iterator[None]:
    """Hold an exclusive lock on `path` (made when missing); waiting for another process is said."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another process that prepares {path.stem}")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _fill(cache: Path, folder: Path, source: Source, say: Say) -> None:
    """Fill the folder beside its place and move it there."""
    work = fresh_work(folder.parent, source.key)
    try:
        if not _copy_from_path(work, source, say):
            _build(cache, work, source, say)
        work.chmod(0o755)
        work.rename(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def fresh_work(parent: Path, key: str) -> Path:
    """A new folder beside the place it is for; what a killed process left of an earlier one is removed.

    The caller holds the lock of `key`.
    """
    for left in parent.glob(f".{key}.*"):
        shutil.rmtree(left)
    return Path(tempfile.mkdtemp(prefix=f".{key}.", dir=parent))


def _copy_from_path(work: Path, source: Source, say: Say) -> bool:
    """Copy the programs from PATH if all are there and say the wanted version."""
    found = {name: shutil.which(name) for name in source.mains}
    if not all(path and says_version(path, source) for path in found.values()):
        return False
    for name, path in found.items():
        shutil.copy2(path or "", work / name)
    say(f"{source.key}: taken from PATH")
    return True


def says_version(path: str, source: Source) -> bool:
    """Whether the program at `path` prints the wanted version, as a whole word."""
    try:
        told = subprocess.run([path, *source.says], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return re.search(rf"(?<![\d.])v?{re.escape(source.version)}(?![\d.])", told.stdout) is not None


def _build(cache: Path, work: Path, source: Source, say: Say) -> None:
    go = find_go(cache, say)
    with tempfile.TemporaryDirectory(prefix="cgpu-go-") as module:
        Path(module, "go.mod").write_text(module_text(source, go))
        Path(module, "programs.go").write_text(imports_text(source))
        environment = go_environment(go)
        with step(say, f"{source.key}: fetching Go modules (only what the cache lacks)"):
            _run([str(go.program), "mod", "download", source.module], module, environment)
        for name, package in source.mains.items():
            with step(say, f"{source.key}: building {name}"):
                _run(build_command(go, source, package, work / name), module, environment)


def module_text(source: Source, go: Go) -> str:
    """A go.mod whose only purpose is to build the programs of `source`."""
    lines = ["module sandbox", "", f"go {go.version[0]}.{go.version[1]}.0", ""]
    lines += [f"require {source.module} v{source.version}", ""]
    lines += [f"replace {module} => {module} {version}" for module, version in source.replace]
    return "\n".join(lines) + "\n"


def imports_text(source: Source) -> str:
    """A file that keeps the programs' packages among the module's needs."""
    imports = "\n".join(f'\t_ "{package}"' for package in source.mains.values())
    return f"//go:build programs\n\npackage sandbox\n\nimport (\n{imports}\n)\n"


def go_environment(go: Go) -> dict[str, str]:
    """The caller's environment with a static, reproducible build that fetches no other toolchain."""
    path = f"{go.program.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return {
        **os.environ,
        "CGO_ENABLED": "0",
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "-mod=mod -buildvcs=false",
        "PATH": path,
    }


def build_command(go: Go, source: Source, package: str, output: Path) -> list[str]:
    """The `go build` of one program; niced, since it may take minutes beside other work."""
    tags = [f"-tags={source.tags}"] if source.tags else []
    flags = ["-trimpath", *tags, "-ldflags", f"-s -w {source.ldflags}".strip()]
    return ["nice", "-n", "10", str(go.program), "build", *flags, "-o", str(output), package]


def _run(command: list[str], folder: str, environment: dict[str, str]) -> None:
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        tail = "\n".join(done.stderr.strip().splitlines()[-_TAIL_LINES:])
        raise UnavailableError(f"{' '.join(command)} ended with {done.returncode}:\n{tail}")
