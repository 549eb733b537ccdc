# SPDX-License-Identifier: Apache-2.0
"""Settings: flag over variable over default, and every mistake named."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import pytest

from cgpu.core.errors import SettingError
from cgpu.settings import (
    Address,
    address,
    boolean,
    integer,
    member,
    names,
    path,
    read_settings,
    seconds,
    setting,
    text,
)


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Example:
    """An example service."""

    name: str = setting("a text", text, "x")
    folder: Path | None = setting("a folder", path, None)
    verbose: bool = setting("a switch", boolean, False)
    count: int = setting("a number, 5% of them", integer(1, 20), 3)
    wait_seconds: float = setting("a time", seconds(0.5, 60), 2.0)
    colour: Colour = setting("a colour", member(Colour), Colour.RED)
    listen: Address = setting("an address", address, Address("127.0.0.1", 80))
    many: tuple[str, ...] = setting("a list", names, ())


@pytest.mark.parametrize(
    ("argv", "environ", "want"),
    [
        pytest.param([], {}, Example(), id="defaults"),
        pytest.param(["--count=4"], {"CGPU_COUNT": "5"}, Example(count=4), id="the flag wins"),
        pytest.param([], {"CGPU_COUNT": "5"}, Example(count=5), id="then the variable"),
        pytest.param([], {"CGPU_COUNT": ""}, Example(), id="an empty variable counts as unset"),
        pytest.param(["--verbose"], {}, Example(verbose=True), id="a switch alone means true"),
        pytest.param(["--verbose=false"], {"CGPU_VERBOSE": "1"}, Example(verbose=False), id="a switch turned off"),
        pytest.param(["--listen", "[::1]:9"], {}, Example(listen=Address("::1", 9)), id="an IPv6 address"),
        pytest.param(["--many", "a, b,"], {}, Example(many=("a", "b")), id="a list"),
        pytest.param(
            ["--folder=/x", "--wait-seconds=0.5", "--colour=blue", "--name="],
            {},
            Example(folder=Path("/x"), wait_seconds=0.5, colour=Colour.BLUE, name=""),
            id="every other kind",
        ),
    ],
)
def test_settings_are_read(argv: list[str], environ: dict[str, str], want: Example) -> None:
    assert read_settings(Example, "example", argv, environ) == want


@pytest.mark.parametrize(
    ("argv", "environ", "want"),
    [
        pytest.param(["--count=21"], {}, "--count=21: must be a whole number from 1 to 20", id="too large"),
        pytest.param(["--count=1e1"], {}, "--count=1e1: must be a whole number", id="no whole number"),
        pytest.param([], {"CGPU_COUNT": "many"}, "CGPU_COUNT=many: must be a whole number", id="in a variable"),
        pytest.param(["--wait-seconds=-1"], {}, "must be a number of seconds from 0.5 to 60", id="a negative time"),
        pytest.param(["--wait-seconds=nan"], {}, "must be a number of seconds", id="no time"),
        pytest.param(["--colour=green"], {}, "must be one of red, blue", id="an unknown member"),
        pytest.param(["--verbose=perhaps"], {}, "must be true or false", id="no boolean"),
        pytest.param(["--listen=:80"], {}, "must be host:port", id="no host"),
        pytest.param(["--listen=a:70000"], {}, "must be host:port", id="a port too large"),
        pytest.param(["--cuont=3"], {}, r"--cuont=3: unknown setting; did you mean --count\? ", id="mistyped"),
        pytest.param(["--coun=3"], {}, "unknown setting", id="an abbreviation"),
        pytest.param(["stray"], {}, "stray: unknown setting; example --help lists all", id="a stray word"),
        pytest.param(["--count"], {}, "expected one argument; see example --help", id="a value that is missing"),
    ],
)
def test_mistakes_are_named(argv: list[str], environ: dict[str, str], want: str) -> None:
    with pytest.raises(SettingError, match=want):
        read_settings(Example, "example", argv, environ)


def test_help_lists_flag_variable_and_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        read_settings(Example, "example", ["--help"], {})
    shown = " ".join(capsys.readouterr().out.split())
    assert end.value.code == 0
    assert "--count VALUE a number, 5% of them (variable CGPU_COUNT, default 3)" in shown


@pytest.mark.parametrize(
    ("where", "want"),
    [
        pytest.param(Address("127.0.0.1", 1), "127.0.0.1:1", id="IPv4"),
        pytest.param(Address("::1", 1), "[::1]:1", id="IPv6"),
    ],
)
def test_addresses_are_written_as_they_are_read(where: Address, want: str) -> None:
    assert str(where) == want
    assert address(want) == where
