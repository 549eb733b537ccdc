# SPDX-License-Identifier: Apache-2.0
"""Docker's daemon.json: our runtime in, our runtime out, everything else as it was.

    python -m cgpu.runtime.daemon register|release|unregister FILE RUNTIME [--dry-run]

`register` keeps the file as it was beside it; `unregister` puts that back where nothing else was changed since, and
otherwise takes only our keys out. `release` comes before that: a dockerd that runs keeps the default runtime that it has
when the file names none any more, so the file must name another one once. All print what they changed.
"""

import difflib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from cgpu.core.errors import CgpuError, SettingError, UnavailableError

NAMES: Final = ("cgpu", "nvidia")  # the documentation's own commands say --runtime=nvidia
DEFAULT: Final = "default-runtime"
STOCK: Final = "runc"  # Docker's own
_BACKUP: Final = ".before-cgpu"


def registered(document: Mapping[str, Any], runtime: str) -> dict[str, Any]:
    """daemon.json with our runtime as the default one, answering to both names."""
    runtimes = dict(document.get("runtimes") or {}) | {name: {"path": runtime} for name in NAMES}
    return dict(document) | {DEFAULT: NAMES[0], "runtimes": runtimes}


def unregistered(document: Mapping[str, Any], before: Mapping[str, Any], runtime: str) -> dict[str, Any]:
    """daemon.json without our runtime; what its names meant `before` comes back."""
    old = before.get("runtimes") or {}
    runtimes = {
        name: entry for name, entry in (document.get("runtimes") or {}).items() if (entry or {}).get("path") != runtime
    }
    runtimes = {name: old[name] for name in NAMES if name in old and name not in runtimes} | runtimes
    made = {key: value for key, value in document.items() if key not in ("runtimes", DEFAULT)}
    default = document.get(DEFAULT)
    if default == NAMES[0]:
        default = before.get(DEFAULT)
    return made | ({DEFAULT: default} if default else {}) | ({"runtimes": runtimes} if runtimes else {})


def released(document: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """daemon.json with the default runtime of `before`, by name."""
    return dict(document) | {DEFAULT: before.get(DEFAULT) or STOCK}


def parse(text: str, file: Path) -> dict[str, Any]:
    """The document; an empty file is an empty one. Raises SettingError."""
    try:
        document = json.loads(text) if text.strip() else {}
    except ValueError as error:
        raise SettingError(f"{file}: no JSON: {error}; dockerd does not read it either: mend it first") from error
    if not isinstance(document, dict) or not isinstance(document.get("runtimes") or {}, dict):
        raise SettingError(f"{file}: expected an object, with an object of runtimes: mend it first")
    return document


def written(document: Mapping[str, Any]) -> str:
    """The document as text."""
    return json.dumps(document, indent=2) + "\n" if document else ""


def register(file: Path, runtime: str) -> tuple[str, str]:
    """The file's text before and after."""
    text = _read(file)
    document = parse(text, file)
    made = registered(document, runtime)
    return text, text if made == document else written(made)


def release(file: Path, _: str) -> tuple[str, str]:
    """The file's text before and after."""
    text = _read(file)
    document = parse(text, file)
    if document.get(DEFAULT) != NAMES[0]:
        return text, text
    return text, written(released(document, parse(_read(_backup(file)), _backup(file))))


def unregister(file: Path, runtime: str) -> tuple[str, str]:
    """The file's text before and after."""
    text, backup = _read(file), _read(_backup(file))
    before = parse(backup, _backup(file))
    ours = registered(before, runtime)
    document = parse(text, file)
    if text and document in (ours, released(ours, before)):
        return text, backup
    made = unregistered(document, before, runtime)
    return text, text if made == document else written(made)


def _backup(file: Path) -> Path:
    return file.with_name(file.name + _BACKUP)


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"{file} cannot be read: {error}") from error


def _write(file: Path, text: str) -> None:
    """The whole text, or no file where there is nothing to say. Raises UnavailableError."""
    temporary = file.with_name(file.name + ".tmp")
    try:
        if not text:
            file.unlink(missing_ok=True)
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text)
        temporary.replace(file)
    except OSError as error:
        raise UnavailableError(f"{file} cannot be written: {error.strerror}") from error


def _apply(verb: str, file: Path, before: str, after: str) -> None:
    if verb == "register" and before != after and not _backup(file).exists():
        _write(_backup(file), before)
    if before != after:
        _write(file, after)
    if verb == "unregister":
        _write(_backup(file), "")


def main(argv: Sequence[str] | None = None) -> int:
    """Exit 0 ok, 1 it cannot be done, 2 usage."""
    words = list(sys.argv[1:] if argv is None else argv)
    dry = "--dry-run" in words
    verbs = {"register": register, "release": release, "unregister": unregister}
    try:
        verb, name, runtime = (word for word in words if word != "--dry-run")
        how = verbs[verb]
    except (ValueError, KeyError):
        sys.stderr.write("usage: python -m cgpu.runtime.daemon register|release|unregister FILE RUNTIME [--dry-run]\n")
        return 2
    file = Path(name)
    try:
        before, after = how(file, runtime)
        sys.stdout.writelines(
            difflib.unified_diff(before.splitlines(True), after.splitlines(True), name, f"{name} (after {verb})", n=1)
        )
        if not dry:
            _apply(verb, file, before, after)
    except CgpuError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
