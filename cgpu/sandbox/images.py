# SPDX-License-Identifier: Apache-2.0
"""The images of a sandbox, as archives in the cache: two of busybox, kube-scheduler's, and ours from the Dockerfile."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cgpu import __version__
from cgpu.sandbox.archive import Recipe, write_archive
from cgpu.sandbox.binaries import fresh_work, locked
from cgpu.sandbox.configs import PAUSE
from cgpu.sandbox.imagebuild import build_image, inputs_digest
from cgpu.sandbox.progress import Say, step

BUSYBOX: Final = "localhost/busybox:1"
OURS: Final = f"localhost/cgpu:{__version__}"
_BUSYBOX_PROGRAM: Final = Path("/usr/bin/busybox")
# the first process of a pod: it waits, ends at once when told, and collects the orphans of a shared process namespace
_PAUSE_SCRIPT: Final = "trap 'exit 0' TERM INT; while :; do sleep 86400 & wait $!; done"


@dataclass(frozen=True, slots=True)
class Archive:
    """An image in the cache. `key` changes with its content."""

    key: str
    path: Path


def archives(cache: Path, project: Path | None, kubernetes: str, scheduler: Path, say: Say) -> tuple[Archive, ...]:
    """Every image, made where the cache lacks it; ours only where there is a `project` to build it from.

    Raises UnavailableError when a build fails.
    """
    found = [
        _written(cache, "busybox-1", _busybox(), say),
        _written(cache, "pause-2", _pause(), say),
        _written(cache, f"kube-scheduler-{kubernetes}", _scheduler(kubernetes, scheduler), say),
    ]
    if project is not None:
        found.append(ours(cache, project, say))
    return tuple(found)


def ours(cache: Path, project: Path, say: Say) -> Archive:
    """Our image, built by buildah when a source, the lock file or the Dockerfile changed."""
    key = f"cgpu-{__version__}-{inputs_digest(project)}"
    path = cache / "images" / f"{key}.tar"
    with locked(cache / "images" / "cgpu.lock", say):
        if not path.exists():
            for old in path.parent.glob("cgpu-*.tar"):
                old.unlink()
            with step(say, f"image {OURS}"):
                work = fresh_work(path.parent, "cgpu")
                build_image(cache, project, OURS, work, say)
                (work / "image.tar").rename(path)
                shutil.rmtree(work)
    return Archive(key, path)


def _written(cache: Path, key: str, recipe: Recipe, say: Say) -> Archive:
    path = cache / "images" / f"{key}.tar"
    with locked(path.with_suffix(".lock"), say):
        if not path.exists():
            work = fresh_work(path.parent, key)
            with step(say, f"image {recipe.reference}"):
                write_archive(recipe, work / "image.tar")
                (work / "image.tar").rename(path)
            work.rmdir()
    return Archive(key, path)


def _busybox() -> Recipe:
    listed = subprocess.run([_BUSYBOX_PROGRAM, "--list"], capture_output=True, text=True, check=True).stdout.split()
    links = tuple((f"bin/{name}", "busybox") for name in listed if name != "busybox")
    return Recipe(BUSYBOX, ((_BUSYBOX_PROGRAM, "bin/busybox"),), links)


def _pause() -> Recipe:
    files = ((_BUSYBOX_PROGRAM, "bin/busybox"),)
    links = (("bin/sh", "busybox"), ("bin/sleep", "busybox"))
    return Recipe(PAUSE, files, links, ("/bin/sh", "-c", _PAUSE_SCRIPT))


def _scheduler(version: str, program: Path) -> Recipe:
    files = ((program, "usr/local/bin/kube-scheduler"),)
    return Recipe(f"localhost/kube-scheduler:v{version}", files, entrypoint=("/usr/local/bin/kube-scheduler",))


def copy_store(template: Path, target: Path) -> None:
    """Give a node its own copy of a containerd folder: contents are linked, the databases are copied.

    Contents and committed snapshots are never written again, so nodes may share them; across file systems they are
    copied.
    """
    shutil.rmtree(target, ignore_errors=True)
    linked = subprocess.run(["cp", "-al", template, target], capture_output=True, check=False)
    if linked.returncode:
        shutil.rmtree(target, ignore_errors=True)
        subprocess.run(["cp", "-a", template, target], check=True)
    for database in template.rglob("*.db"):
        copy = target / database.relative_to(template)
        copy.unlink()
        shutil.copy2(database, copy)
