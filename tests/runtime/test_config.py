# SPDX-License-Identifier: Apache-2.0
"""/etc/cgpu/config.toml."""

from pathlib import Path

import pytest

from cgpu.core.errors import SettingError
from cgpu.runtime.config import PLACE, Config, config_path, parse_config, read_config


def test_without_a_file_there_are_defaults(tmp_path: Path) -> None:
    assert read_config(tmp_path / "none.toml") == Config("runc", "refuse", True, "/var/log/cgpu-runtime.log")


def test_every_key_may_be_set() -> None:
    text = b'runtime = "crun"\nprivileged = "unisolated"\nlibraries = false\nlog_file = ""\n'

    assert parse_config(text, "f") == Config("crun", "unisolated", False, "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param(
            'color = "red"', "f: unknown key 'color': must be one of runtime, privileged, libraries", id="unknown"
        ),
        pytest.param('privileged = "yes"', "f: privileged = 'yes': must be one of refuse, unisolated", id="a word"),
        pytest.param('libraries = "no"', "f: libraries = 'no': must be true or false", id="a switch"),
        pytest.param('runtime = ""', "f: runtime = '': must be a name or a path", id="no runtime"),
        pytest.param("log_file = 3", "f: log_file = 3: must be a path", id="a number"),
        pytest.param("runtime = ", "f: no TOML", id="no TOML"),
        pytest.param("runtime = '\xff'", "f: no TOML", id="no UTF-8"),
    ],
)
def test_a_mistake_names_file_key_and_rule(text: str, reason: str) -> None:
    with pytest.raises(SettingError, match=reason):
        parse_config(text.encode("latin-1"), "f")


def test_where_the_file_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CGPU_CONFIG", raising=False)
    assert str(config_path()) == str(PLACE) == "/etc/cgpu/config.toml"
    monkeypatch.setenv("CGPU_CONFIG", "/else/where.toml")
    assert str(config_path()) == "/else/where.toml"
