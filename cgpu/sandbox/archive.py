# SPDX-License-Identifier: Apache-2.0
"""Container images of one layer, written as docker-archive without a builder."""

import hashlib
import io
import json
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

_FOLDERS: Final = {"bin": 0o755, "etc": 0o755, "tmp": 0o1777, "dev": 0o755, "proc": 0o755, "sys": 0o755, "usr": 0o755}
_BLOCK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Recipe:
    """An image: `files` from the machine to paths inside, `links` inside, and what it runs."""

    reference: str
    files: tuple[tuple[Path, str], ...]
    links: tuple[tuple[str, str], ...] = ()
    entrypoint: Sequence[str] = field(default_factory=tuple)
    path: str = "/usr/local/bin:/bin"


def write_archive(recipe: Recipe, target: Path) -> None:
    """Write the archive to `target`; equal inputs give equal bytes. Raises OSError for a file that cannot be read."""
    layer_file = target.with_suffix(".layer")
    try:
        with layer_file.open("w+b") as layer:
            _write_layer(recipe, layer)
            digest = _digest(layer)
            config = _config(recipe, digest)
            name = hashlib.sha256(config).hexdigest()
            manifest = [{"Config": f"{name}.json", "RepoTags": [recipe.reference], "Layers": [f"{digest}/layer.tar"]}]
            with tarfile.open(target, "w") as archive:
                _add_bytes(archive, f"{name}.json", config)
                _add_stream(archive, f"{digest}/layer.tar", layer)
                _add_bytes(archive, "manifest.json", json.dumps(manifest).encode())
    finally:
        layer_file.unlink(missing_ok=True)


def _write_layer(recipe: Recipe, layer: IO[bytes]) -> None:
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for folder, mode in _FOLDERS.items():
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            tar.addfile(entry)
        for source, inside in recipe.files:
            entry = tarfile.TarInfo(inside)
            entry.mode, entry.size = 0o755, source.stat().st_size
            with source.open("rb") as content:
                tar.addfile(entry, content)
        for inside, aim in recipe.links:
            entry = tarfile.TarInfo(inside)
            entry.type, entry.linkname = tarfile.SYMTYPE, aim
            tar.addfile(entry)


def _config(recipe: Recipe, digest: str) -> bytes:
    run = {"Entrypoint": list(recipe.entrypoint) or None, "Env": [f"PATH={recipe.path}"]}
    layers = {"type": "layers", "diff_ids": [f"sha256:{digest}"]}
    return json.dumps(
        {"architecture": "amd64", "os": "linux", "config": run, "rootfs": layers, "history": [{}]}
    ).encode()


def _digest(stream: IO[bytes]) -> str:
    stream.seek(0)
    summed = hashlib.sha256()
    while block := stream.read(_BLOCK):
        summed.update(block)
    return summed.hexdigest()


def _add_bytes(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    _add_stream(archive, name, io.BytesIO(content))


def _add_stream(archive: tarfile.TarFile, name: str, stream: IO[bytes]) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    archive.addfile(entry, stream)
