# SPDX-License-Identifier: Apache-2.0
"""Settings of the services, declared once: a dataclass whose fields are made by `setting`.

A field `drift_seconds` is the flag `--drift-seconds` and the variable `CGPU_DRIFT_SECONDS`; the flag wins, then the
variable, then the default. A value that breaks its rule, or an unknown flag, is a SettingError that names value,
rule and remedy; an empty variable counts as unset.
"""

import argparse
import dataclasses
import difflib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

from cgpu.core.errors import SettingError

S = TypeVar("S")
E = TypeVar("E", bound=StrEnum)

_ENV_PREFIX: Final = "CGPU_"
_INTEGER: Final = re.compile(r"-?[0-9]{1,12}", re.ASCII)
_DECIMAL: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,6})?", re.ASCII)
_ADDRESS: Final = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^:\s\[\]]+):(?P<port>[0-9]{1,5})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine (in a pod: this pod) can reach it."""
        return self.host in ("localhost", "::1") or re.fullmatch(r"127(\.\d+){3}", self.host) is not None

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def setting(meaning: str, parse: Callable[[str], Any], default: Any) -> Any:
    """A field of a settings dataclass; `parse` raises ValueError with the rule, `default` is already parsed."""
    return dataclasses.field(default=default, metadata={"meaning": meaning, "parse": parse})


def text(written: str) -> str:
    """Any text."""
    return written


def path(written: str) -> Path:
    """A file or folder; whether it exists is the user's business."""
    return Path(written)


def names(written: str) -> tuple[str, ...]:
    """A comma list."""
    return tuple(part.strip() for part in written.split(",") if part.strip())


def boolean(written: str) -> bool:
    """true or false, 1 or 0."""
    table = {"true": True, "1": True, "false": False, "0": False}
    if written.lower() not in table:
        raise ValueError("must be true or false")
    return table[written.lower()]


def integer(low: int, high: int) -> Callable[[str], int]:
    """A whole number from low to high."""

    def parse(written: str) -> int:
        if not _INTEGER.fullmatch(written) or not low <= int(written) <= high:
            raise ValueError(f"must be a whole number from {low} to {high}")
        return int(written)

    return parse


def seconds(low: float, high: float) -> Callable[[str], float]:
    """A decimal number of seconds from low to high."""

    def parse(written: str) -> float:
        if not _DECIMAL.fullmatch(written) or not low <= float(written) <= high:
            raise ValueError(f"must be a number of seconds from {low:g} to {high:g}")
        return float(written)

    return parse


def member(table: type[E]) -> Callable[[str], E]:
    """One of an enumeration's values."""

    def parse(written: str) -> E:
        try:
            return table(written)
        except ValueError:
            raise ValueError(f"must be one of {', '.join(table)}") from None

    return parse


def address(written: str) -> Address:
    """host:port, an IPv6 host in brackets."""
    found = _ADDRESS.fullmatch(written)
    if found is None or int(found["port"]) > 65535:
        raise ValueError("must be host:port, such as 127.0.0.1:12345 or [::1]:12345")
    return Address(found["host"].strip("[]"), int(found["port"]))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise SettingError(f"{message}; see {self.prog} --help")


def read_settings(cls: type[S], program: str, argv: Sequence[str], environ: Mapping[str, str] = os.environ) -> S:
    """The settings of one start. Raises SettingError; `--help` prints every setting and exits 0."""
    fields = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    parser = _Parser(prog=program, description=cls.__doc__, allow_abbrev=False)
    for name, field in fields.items():
        alone: dict[str, Any] = {"nargs": "?", "const": "true"} if field.metadata["parse"] is boolean else {}
        meaning = f"{field.metadata['meaning']} (variable {_variable(name)}, default {_shown(field.default)})"
        parser.add_argument(_flag(name), metavar="VALUE", help=meaning.replace("%", "%%"), **alone)
    given, unknown = parser.parse_known_args(argv)
    if unknown:
        raise SettingError(_unknown(program, unknown[0], [_flag(name) for name in fields]))
    values: dict[str, Any] = {}
    for name, field in fields.items():
        written, where = getattr(given, name), _flag(name)
        if written is None and environ.get(_variable(name)):
            written, where = environ[_variable(name)], _variable(name)
        if written is not None:
            values[name] = _parsed(where, written, field.metadata["parse"])
    return cls(**values)


def _parsed(where: str, written: str, parse: Callable[[str], Any]) -> Any:
    try:
        return parse(written)
    except ValueError as error:
        raise SettingError(f"{where}={written[:100]}: {error}") from error


def _unknown(program: str, written: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(written.partition("=")[0], known, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"{written[:100]}: unknown setting; {hint}{program} --help lists all"


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _variable(name: str) -> str:
    return _ENV_PREFIX + name.upper()


def _shown(default: object) -> str:
    if default in (None, "", ()):
        return "none"
    return str(default).lower() if isinstance(default, bool) else str(default)
