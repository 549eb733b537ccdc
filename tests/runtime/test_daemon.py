# SPDX-License-Identifier: Apache-2.0
"""daemon.json: our runtime comes and goes, everything else stays."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgpu.runtime.daemon import main, registered, unregistered

OURS = "/usr/local/bin/cgpu-runtime"
THEIRS: dict[str, Any] = {
    "log-driver": "journald",
    "default-runtime": "nvidia",
    "runtimes": {"nvidia": {"path": "nvidia-container-runtime", "runtimeArgs": []}, "crun": {"path": "crun"}},
}


def test_we_are_the_default_and_answer_to_nvidia() -> None:
    assert registered(THEIRS, OURS) == {
        "log-driver": "journald",
        "default-runtime": "cgpu",
        "runtimes": {"nvidia": {"path": OURS}, "crun": {"path": "crun"}, "cgpu": {"path": OURS}},
    }


@pytest.mark.parametrize("steps", [["unregister"], ["release", "unregister"], ["release", "release", "unregister"]])
@pytest.mark.parametrize("text", ["", "{}", json.dumps(THEIRS), '{"bridge":   "none"}\n'])
def test_the_file_comes_back_byte_for_byte(tmp_path: Path, text: str, steps: list[str]) -> None:
    file = tmp_path / "docker" / "daemon.json"
    if text:
        file.parent.mkdir()
        file.write_text(text)

    assert main(["register", str(file), OURS]) == 0
    assert main(["register", str(file), OURS]) == 0
    assert json.loads(file.read_text())["default-runtime"] == "cgpu"
    assert [main([step, str(file), OURS]) for step in steps] == [0] * len(steps)
    assert (file.read_text() if file.exists() else "") == text
    assert list(file.parent.glob("*")) == ([file] if text else [])


@pytest.mark.parametrize("text", ["{}", '{"bridge":   "none"}\n', '{"runtimes":{"crun":{"path":"crun"}}}'])
def test_a_file_that_never_had_us_is_left_as_it_is(tmp_path: Path, text: str) -> None:
    file = tmp_path / "daemon.json"
    file.write_text(text)

    assert [main([step, str(file), OURS]) for step in ("release", "unregister")] == [0, 0]
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("daemon.json", text)]


@pytest.mark.parametrize(("before", "named"), [("", "runc"), (json.dumps(THEIRS), "nvidia")])
def test_a_running_dockerd_is_told_another_default_runtime(tmp_path: Path, before: str, named: str) -> None:
    """It keeps the one it has when the file names none."""
    file = tmp_path / "daemon.json"
    file.write_text(before)
    main(["register", str(file), OURS])
    main(["release", str(file), OURS])

    assert json.loads(file.read_text())["default-runtime"] == named


def test_what_was_changed_since_stays(tmp_path: Path) -> None:
    file = tmp_path / "daemon.json"
    file.write_text(json.dumps(THEIRS))
    main(["register", str(file), OURS])
    changed = json.loads(file.read_text()) | {"debug": True}
    file.write_text(json.dumps(changed))
    main(["unregister", str(file), OURS])

    assert json.loads(file.read_text()) == THEIRS | {"debug": True}


def test_a_dry_run_shows_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "daemon.json"
    file.write_text("{}")

    assert main(["register", str(file), OURS, "--dry-run"]) == 0
    assert '+  "default-runtime": "cgpu"' in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["daemon.json"]
    assert file.read_text() == "{}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "no JSON"),
        ("[]", "expected an object"),
        ('{"runtimes": []}', ""),
        ('{"runtimes": [1]}', "expected an object"),
    ],
)
def test_a_file_that_is_wrong_already_is_not_made_worse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, reason: str
) -> None:
    file = tmp_path / "daemon.json"
    file.write_text(text)

    assert main(["register", str(file), OURS]) == (1 if reason else 0)
    assert reason in capsys.readouterr().err
    assert (file.read_text() == text) == bool(reason)


@pytest.mark.parametrize("words", [[], ["register"], ["list", "a", "b"], ["register", "a", "b", "c"]])
def test_usage(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert main(words) == 2
    assert "usage" in capsys.readouterr().err


ENTRY = st.fixed_dictionaries({"path": st.sampled_from(["runc", "crun", "nvidia-container-runtime"])})
DOCUMENT = st.fixed_dictionaries(
    {},
    optional={
        "debug": st.booleans(),
        "default-runtime": st.sampled_from(["runc", "nvidia", "crun"]),
        "runtimes": st.dictionaries(st.sampled_from(["runc", "nvidia", "crun"]), ENTRY, min_size=1),
    },
)


@given(DOCUMENT)
def test_out_undoes_in(document: dict[str, Any]) -> None:
    assert unregistered(registered(document, OURS), document, OURS) == document
