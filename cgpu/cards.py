# SPDX-License-Identifier: Apache-2.0
"""Card lists as people write them in YAML; every mistake is answered with file, line and column.

`--simulate FILE` of the device plugin is `cards: [{model, memMiB, count, uuid?, numa?, healthy?}]`; the sandbox's
`--cards FILE` holds the same rows under each of its nodes and reads them with the same functions.
"""

import uuid as uuids
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

import yaml

from cgpu.core.errors import SettingError

_NAMESPACE: Final = uuids.UUID(
    "5f1c6a52-6d0c-4f39-9f0e-2f2f7c1a8c11"
)  # any fixed one: UUIDs must repeat on every start
MAX_MEM_MIB: Final = 16 * 1024 * 1024
MAX_CARDS: Final = 64


@dataclass(frozen=True, slots=True)
class CardRow:
    """One row: `count` cards of one model."""

    model: str
    mem_mib: int
    count: int = 1
    uuid: str = ""
    numa: int | None = None
    healthy: bool = True


@dataclass(frozen=True, slots=True)
class Place:
    """A YAML node with the file it came from, to complain about."""

    node: yaml.Node
    file: str

    def refuse(self, text: str) -> NoReturn:
        """Raises SettingError: file, line and column (from 1), then `text`."""
        mark = self.node.start_mark
        raise SettingError(f"{self.file}:{mark.line + 1}:{mark.column + 1}: {text}")


def read_document(path: Path) -> Place:
    """The YAML document of a file. Raises SettingError when it cannot be read or is no YAML."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"{path}: cannot be read: {error}") from error
    return parse_document(text, str(path))


def parse_document(text: str, file: str) -> Place:
    """The YAML document of a text. Raises SettingError."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise SettingError(f"{file}{where}: no YAML: {error.problem}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise SettingError(f"{file}: no YAML: {error}") from error
    if node is None:
        raise SettingError(f"{file}:1:1: the file is empty: write `cards:` and a list")
    return Place(node, file)


def mapping(place: Place, allowed: Collection[str], required: Collection[str] = ()) -> dict[str, Place]:
    """The values of a mapping by key. Raises SettingError for another kind, unknown, doubled or missing keys."""
    if not isinstance(place.node, yaml.MappingNode):
        place.refuse(f"expected a mapping with {', '.join(allowed)}")
    found: dict[str, Place] = {}
    for key, value in place.node.value:
        name = key.value if isinstance(key, yaml.ScalarNode) else "?"
        if name not in allowed:
            Place(key, place.file).refuse(f"unknown key {name!r}: must be one of {', '.join(allowed)}")
        if name in found:
            Place(key, place.file).refuse(f"key {name!r} is written twice")
        found[name] = Place(value, place.file)
    for name in required:
        if name not in found:
            place.refuse(f"{name!r} is missing")
    return found


def sequence(place: Place, what: str) -> list[Place]:
    """The items of a list. Raises SettingError."""
    if not isinstance(place.node, yaml.SequenceNode):
        place.refuse(f"expected a list of {what}")
    return [Place(item, place.file) for item in place.node.value]


def scalar(place: Place, kind: type, what: str) -> Any:
    """A value of one kind: str, int or bool. Raises SettingError naming `what`."""
    node = place.node
    tags = {"str": "tag:yaml.org,2002:str", "int": "tag:yaml.org,2002:int", "bool": "tag:yaml.org,2002:bool"}
    if not isinstance(node, yaml.ScalarNode) or node.tag != tags[kind.__name__]:
        written = node.value if isinstance(node, yaml.ScalarNode) else "a collection"
        place.refuse(f"{what} is {written!r}: expected {_KIND_NAMES[kind.__name__]}")
    return yaml.SafeLoader("").construct_object(node)


_KIND_NAMES: Final = {"str": "a text", "int": "a whole number", "bool": "true or false"}


def _number(low: int, high: int) -> Callable[[Place, str], int]:
    def read(place: Place, what: str) -> int:
        value: int = scalar(place, int, what)
        if not low <= value <= high:
            place.refuse(f"{what} is {value}: must be from {low} to {high}")
        return value

    return read


def _text(place: Place, what: str) -> str:
    value: str = scalar(place, str, what)
    if not value.strip() or len(value) > 128:
        place.refuse(f"{what} is {value[:40]!r}: must have 1 to 128 characters")
    return value


def _flag(place: Place, what: str) -> bool:
    value: bool = scalar(place, bool, what)
    return value


_FIELDS: Final[Mapping[str, tuple[str, Callable[[Place, str], object]]]] = {
    "model": ("model", _text),
    "memMiB": ("mem_mib", _number(1, MAX_MEM_MIB)),
    "count": ("count", _number(1, MAX_CARDS)),
    "uuid": ("uuid", _text),
    "numa": ("numa", _number(0, 1023)),
    "healthy": ("healthy", _flag),
}


def card_rows(place: Place) -> tuple[CardRow, ...]:
    """The rows of a `cards` list. Raises SettingError with the place of the first mistake."""
    rows = tuple(_row(item) for item in sequence(place, "cards"))
    if sum(row.count for row in rows) > MAX_CARDS:
        place.refuse(f"{sum(row.count for row in rows)} cards: a node has at most {MAX_CARDS}")
    named = [row.uuid for row in rows if row.uuid]
    if len(set(named)) != len(named):
        place.refuse("two rows have the same uuid")
    return rows


def _row(place: Place) -> CardRow:
    found = mapping(place, tuple(_FIELDS), required=("model", "memMiB"))
    values: dict[str, Any] = {_FIELDS[key][0]: _FIELDS[key][1](value, key) for key, value in found.items()}
    row = CardRow(**values)
    if row.uuid and row.count != 1:
        found["uuid"].refuse(f"uuid names one card and count is {row.count}: write a row for each card")
    return row


def read_cards(path: Path) -> tuple[CardRow, ...]:
    """The rows of a `--simulate` file. Raises SettingError."""
    return card_rows(mapping(read_document(path), ("cards",), required=("cards",))["cards"])


def card_uuid(node: str, index: int) -> str:
    """The UUID of a simulated card whose row names none: the same at every start, another on every node."""
    return f"GPU-{uuids.uuid5(_NAMESPACE, f'{node}/{index}')}"


def expand(rows: Sequence[CardRow]) -> list[CardRow]:
    """One row a card."""
    return [row for row in rows for _ in range(row.count)]
