# SPDX-License-Identifier: Apache-2.0
"""/etc/cgpu/config.toml: what the administrator of a host decides. Every key has a default; an unknown one is an error.

install.sh writes no such file, since reading one costs every start of a container: config.toml.example lies beside it.
"""

from __future__ import annotations

import os

from cgpu.core.errors import SettingError
from cgpu.core.light import TYPE_CHECKING, NamedTuple
from cgpu.light import Path

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final

VARIABLE: Final = "CGPU_CONFIG"
PLACE: Final = Path("/etc/cgpu/config.toml")
REFUSE: Final = "refuse"
UNISOLATED: Final = "unisolated"


class Config(NamedTuple):
    """`runtime` is read by the sh front, which starts it for every command that needs nothing of us."""

    runtime: str = "runc"
    privileged: str = REFUSE
    libraries: bool = True
    log_file: str = "/var/log/cgpu-runtime.log"


def _one_of(*values: str) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        return "" if value in values else f"must be one of {', '.join(values)}"

    return check


def _is_name(value: Any) -> str:
    return "" if isinstance(value, str) and value else "must be a name or a path"


def _is_switch(value: Any) -> str:
    return "" if isinstance(value, bool) else "must be true or false"


def _is_text(value: Any) -> str:
    return "" if isinstance(value, str) else "must be a path, or empty for none"


# rule of each key: the complaint about a value, "" when it is good
_RULES: Final[dict[str, Callable[[Any], str]]] = {
    "runtime": _is_name,
    "privileged": _one_of(REFUSE, UNISOLATED),
    "libraries": _is_switch,
    "log_file": _is_text,
}


def config_path() -> Path:
    """Where the file is: $CGPU_CONFIG of the daemon that calls us, else /etc/cgpu/config.toml."""
    return Path(os.environ.get(VARIABLE) or PLACE)


def read_config(path: Path) -> Config:
    """The file's settings; defaults when there is none. Raises SettingError with file, key, value and rule."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return Config()
    except OSError as error:
        raise SettingError(f"{path} cannot be read: {error.strerror}") from error
    return parse_config(text, str(path))


def parse_config(text: bytes, file: str) -> Config:
    """The settings in a text. Raises SettingError."""
    import tomllib  # noqa: PLC0415 - slow to import, and most hosts have no file

    try:
        pairs = tomllib.loads(text.decode())
    except ValueError as error:
        raise SettingError(f"{file}: no TOML: {error}") from error
    for key, value in pairs.items():
        if key not in _RULES:
            raise SettingError(f"{file}: unknown key {key!r}: must be one of {', '.join(Config._fields)}")
        if complaint := _RULES[key](value):
            raise SettingError(f"{file}: {key} = {value!r}: {complaint}")
    return Config(**pairs)
