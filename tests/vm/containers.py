# SPDX-License-Identifier: Apache-2.0
"""Container images made from local files: no registry takes part."""

import hashlib
import io
import json
import subprocess
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

BUSYBOX_VERSION: Final = 1  # to be raised when the content of the image changes: the root disk holds it
MERGED: Final = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}
FOLDERS: Final = (
    "usr/bin",
    "usr/sbin",
    "usr/lib/x86_64-linux-gnu",
    "usr/lib64",
    "etc",
    "dev",
    "proc",
    "sys",
    "root",
    "run",
    "var",
)
GLIBC: Final = (
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "libgcc_s.so.1",
    "ld-linux-x86-64.so.2",
)


def entry(name: str, kind: bytes, mode: int, link: str = "", size: int = 0) -> tarfile.TarInfo:
    """One member of a layer: owned by root, dated at the epoch so that equal content is an equal file."""
    member = tarfile.TarInfo(name)
    member.type, member.mode, member.linkname, member.size = kind, mode, link, size
    return member


def layer(files: Mapping[str, Path], links: Mapping[str, str], folders: Iterable[str]) -> bytes:
    """A layer as a tar archive."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        made: set[str] = set()
        for folder in folders:
            for depth in range(1, folder.count("/") + 2):
                name = "/".join(folder.split("/")[:depth])
                if name not in made:
                    archive.addfile(entry(name, tarfile.DIRTYPE, 0o755))
                    made.add(name)
        archive.addfile(entry("tmp", tarfile.DIRTYPE, 0o1777))
        for name, file in files.items():
            data = file.read_bytes()
            archive.addfile(entry(name, tarfile.REGTYPE, 0o755, size=len(data)), io.BytesIO(data))
        for name, target in links.items():
            archive.addfile(entry(name, tarfile.SYMTYPE, 0o777, target))
    return out.getvalue()


def write_archive(place: Path, tag: str, layer_tar: bytes, command: list[str]) -> None:
    """Writes the archive that `docker load`, `podman load` and `ctr images import` take."""
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Cmd": command, "Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer_tar).hexdigest()]},
    }
    encoded = json.dumps(config).encode()
    name = hashlib.sha256(encoded).hexdigest() + ".json"
    manifest = json.dumps([{"Config": name, "RepoTags": [tag], "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(place, "w") as archive:
        for member, data in ((name, encoded), ("layer.tar", layer_tar), ("manifest.json", manifest)):
            archive.addfile(entry(member, tarfile.REGTYPE, 0o644, size=len(data)), io.BytesIO(data))


def write_busybox(place: Path, root: Path) -> None:
    """The image `busybox` from the files of a Debian root: busybox, and glibc so that NVIDIA's programs run in it.

    Its folders are laid out as Debian's, so a container may also bind the host's whole `/usr` over its own.
    """
    busybox = root / "usr/bin/busybox" if (root / "usr/bin/busybox").is_file() else root / "bin/busybox"
    applets = subprocess.run([busybox, "--list"], check=True, capture_output=True, text=True).stdout.split()
    libraries = root / "usr/lib/x86_64-linux-gnu"
    files = {"usr/bin/busybox": busybox, **{f"usr/lib/x86_64-linux-gnu/{name}": libraries / name for name in GLIBC}}
    links = {
        **MERGED,
        "usr/lib64/ld-linux-x86-64.so.2": "../lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
        **{f"usr/bin/{name}": "busybox" for name in applets if name != "busybox"},
    }
    write_archive(place, "busybox:latest", layer(files, links, FOLDERS), ["sh"])
