# SPDX-License-Identifier: Apache-2.0
"""Our image from the project's Dockerfile by buildah, on a Debian base that debootstrap makes; no daemon is needed."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cgpu.core.errors import SettingError, UnavailableError
from cgpu.sandbox.binaries import fresh_work, locked
from cgpu.sandbox.host import IMAGE_PACKAGES, ensure_packages, run
from cgpu.sandbox.progress import Say, step
from cgpu.sandbox.versions import SUITE

_INPUTS: Final = ("Dockerfile", "pyproject.toml", "requirements.lock", "README.md")
_TREES: Final = ("cgpu", "deviceplugin", "extender", "kmod/abi")
_MODULE: Final = "kmod"
_BASE_PACKAGES: Final = "ca-certificates,python3,python3-venv"
_PIP_KEYS: Final = ("index-url", "extra-index-url", "trusted-host", "timeout", "cert", "proxy")
_CERTIFICATES: Final = Path("/etc/ssl/certs")
_TAIL_LINES: Final = 25


def inputs_digest(project: Path) -> str:
    """A digest of everything that goes into the image. Raises SettingError when a file is missing."""
    summed = hashlib.sha256()
    for path in _input_files(project):
        summed.update(str(path.relative_to(project)).encode())
        summed.update(path.read_bytes())
    return summed.hexdigest()[:16]


def _input_files(project: Path) -> Iterator[Path]:
    for name in _INPUTS:
        if not (project / name).is_file():
            raise SettingError(f"{project / name} is missing: the image is built from a checkout of the project")
        yield project / name
    for tree in _TREES:
        for path in sorted((project / tree).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path
    yield from (path for path in sorted((project / _MODULE).iterdir()) if path.is_file())


def build_image(cache: Path, project: Path, reference: str, work: Path, say: Say) -> None:
    """Build the image and write it to `work`/image.tar as docker-archive; `work` is an empty folder.

    Raises UnavailableError with the build's last words.
    """
    ensure_packages(IMAGE_PACKAGES, say)
    buildah = Buildah(cache / "buildah")
    base = ensure_base(cache, buildah, say)
    settings = work / "pip.conf"
    settings.write_text(pip_settings())
    buildah.build(project, base, reference, settings)
    buildah.run("push", reference, f"docker-archive:{work / 'image.tar'}:{reference}")


class Buildah:
    """buildah with a storage of its own; each command mounts in a namespace of its own, so that killing one is clean."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def run(self, *words: str) -> str:
        """One command's standard output. Raises UnavailableError with its last words."""
        self._folder.mkdir(parents=True, exist_ok=True)
        quiet = {**os.environ, "STORAGE_DRIVER": "overlay", "BUILDAH_ISOLATION": "chroot"}
        private = ["unshare", "--mount", "--propagation=private", "nice", "-n", "5"]
        with tempfile.TemporaryDirectory(prefix="cgpu-buildah-") as mounted:
            storage = [f"--root={self._folder / 'storage'}", f"--runroot={mounted}"]
            command = [*private, "buildah", *storage, *words]
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=quiet, errors="replace")
        if done.returncode:
            tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-_TAIL_LINES:])
            raise UnavailableError(f"buildah {' '.join(words)} ended with {done.returncode}:\n{tail}")
        return done.stdout

    def has(self, reference: str) -> bool:
        """Whether the storage holds the image."""
        try:
            self.run("inspect", "--type=image", reference)
        except UnavailableError:
            return False
        return True

    def build(self, project: Path, base: str, reference: str, pip_conf: Path) -> None:
        """`buildah build` of the project; the machine's certificates and pip settings are lent, not left inside."""
        lent = [f"--volume={pip_conf}:/etc/pip.conf:ro"]
        if _CERTIFICATES.is_dir():
            lent.append(f"--volume={_CERTIFICATES}:{_CERTIFICATES}:ro")
        arguments = [f"--build-arg=BASE={base}", "--layers", "--pull-never", *lent, f"--tag={reference}"]
        self.run("build", *arguments, f"--file={project / 'Dockerfile'}", str(project))


def ensure_base(cache: Path, buildah: Buildah, say: Say) -> str:
    """Reference of this month's Debian base with Python; made by debootstrap when the storage lacks it."""
    reference = f"localhost/cgpu-base:{SUITE}-{datetime.now(UTC):%Y-%m}"
    with locked(cache / "buildah.lock", say):
        if not buildah.has(reference):
            with step(say, f"base image: Debian {SUITE} with Python, by debootstrap (about two minutes, once a month)"):
                _make_base(cache, buildah, reference)
    return reference


def _make_base(cache: Path, buildah: Buildah, reference: str) -> None:
    work = fresh_work(cache, "debootstrap")
    try:
        root = work / "root"
        flags = ["--variant=minbase", f"--include={_BASE_PACKAGES}"]
        run(
            [
                "unshare",
                "--mount",
                "--propagation=private",
                "nice",
                "-n",
                "5",
                "debootstrap",
                *flags,
                SUITE,
                str(root),
                *mirror(),
            ]
        )
        for waste in ("var/cache/apt/archives", "var/lib/apt/lists", "usr/share/doc", "usr/share/man"):
            run(["find", str(root / waste), "-mindepth", "1", "-delete"])
        container = buildah.run("from", "scratch").strip()
        try:
            buildah.run("add", "--quiet", container, str(root), "/")
            buildah.run("commit", "--quiet", container, reference)
        finally:
            buildah.run("rm", container)
    finally:
        shutil.rmtree(work)


def mirror() -> list[str]:
    """The machine's own Debian mirror, so that debootstrap asks nobody else; none known: debootstrap's default."""
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", f"Codename: {SUITE}"],
        capture_output=True,
        text=True,
        check=False,
    )
    return [uri for uri in listed.stdout.split() if uri.startswith("http")][:1]


def pip_settings() -> str:
    """The machine's pip settings that say where packages come from, as a pip.conf."""
    programs = ([sys.executable, "-m", "pip"], ["python3", "-m", "pip"])
    told = (
        subprocess.run([*words, "config", "list"], capture_output=True, text=True, check=False) for words in programs
    )
    listed = next((done.stdout for done in told if done.returncode == 0), "")
    values = {"cert": str(_CERTIFICATES / "ca-certificates.crt")} if _CERTIFICATES.is_dir() else {}
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        key = name.rpartition(".")[2]
        if key in _PIP_KEYS and key != "cert":
            values[key] = value.strip("'\"")
    return "\n".join(["[global]", *(f"{key} = {value}" for key, value in values.items())]) + "\n"
