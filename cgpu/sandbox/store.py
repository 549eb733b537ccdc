# SPDX-License-Identifier: Apache-2.0
"""A containerd folder with every image unpacked, made once for a set of images and copied to the nodes."""

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from cgpu.core.errors import UnavailableError
from cgpu.sandbox.binaries import fresh_work, locked
from cgpu.sandbox.host import run
from cgpu.sandbox.images import Archive, copy_store
from cgpu.sandbox.progress import Say, step

_NAMESPACE: Final = "k8s.io"
_START_S: Final = 120
_KEPT: Final = 4  # another start may still be copying an older one


def import_command(ctr: Path, archive: Path, socket: str = "") -> list[str]:
    """The command that brings an archive into a running containerd, unpacked."""
    address = [f"--address={socket}"] if socket else []
    return [str(ctr), *address, f"--namespace={_NAMESPACE}", "images", "import", str(archive)]


def ensure_store(cache: Path, archives: Sequence[Archive], programs: dict[str, Path], say: Say) -> Path:
    """The folder for these images; it is made when the cache lacks it, and those of other sets are removed."""
    key = hashlib.sha256(" ".join(sorted(archive.key for archive in archives)).encode()).hexdigest()[:16]
    folder = cache / "stores" / key
    with locked(cache / "stores" / "make.lock", say):
        if not folder.is_dir():
            with step(say, f"unpacking {len(archives)} images, once for all nodes"):
                _make(folder, archives, programs)
                for old in _newest(folder.parent)[_KEPT:]:
                    shutil.rmtree(old)
    return folder


def _newest(parent: Path) -> list[Path]:
    """Complete stores, the newest first."""
    stores = (path for path in parent.iterdir() if path.is_dir() and not path.name.startswith("."))
    return sorted(stores, key=lambda path: -path.stat().st_mtime)


def _make(folder: Path, archives: Sequence[Archive], programs: dict[str, Path]) -> None:
    work = fresh_work(folder.parent, "store")
    try:
        for last in _newest(folder.parent)[:1]:  # layers that did not change need not be unpacked again
            copy_store(last, work / "root")
        with _containerd(work, programs) as socket:
            for archive in archives:
                run(import_command(programs["ctr"], archive.path, socket))
        (work / "root").rename(folder)
        os.utime(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contextmanager
def _containerd(work: Path, programs: dict[str, Path]) -> Iterator[str]:
    """A containerd without the Kubernetes part, in a mount namespace of its own; yields its socket."""
    socket = str(work / "socket")
    config = work / "config.toml"
    config.write_text(
        f'version = 3\nroot = "{work}/root"\nstate = "{work}/state"\n'
        "disabled_plugins = ['io.containerd.cri.v1.images', 'io.containerd.cri.v1.runtime', 'io.containerd.grpc.v1.cri',"
        " 'io.containerd.nri.v1.nri']\n"
        f'[grpc]\n  address = "{socket}"\n[ttrpc]\n  address = "{socket}.ttrpc"\n'
    )
    with (work / "log").open("wb") as log:
        daemon = subprocess.Popen(
            ["unshare", "--mount", "--propagation=private", str(programs["containerd"]), f"--config={config}"],
            stdout=log,
            stderr=log,
        )
        try:
            _wait(daemon, socket, programs["ctr"], work / "log")
            yield socket
        finally:
            daemon.terminate()
            daemon.wait()


def _wait(daemon: "subprocess.Popen[bytes]", socket: str, ctr: Path, log: Path) -> None:
    end = time.monotonic() + _START_S
    while subprocess.run([ctr, f"--address={socket}", "version"], capture_output=True, check=False).returncode:
        if daemon.poll() is not None or time.monotonic() > end:
            raise UnavailableError(f"containerd does not start: {log.read_text(errors='replace')[-1500:]}")
        time.sleep(0.05)
