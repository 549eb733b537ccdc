# SPDX-License-Identifier: Apache-2.0
"""Pinned versions and the cache: keys, what is taken from PATH, and builds that leave nothing half-made."""

import os
from pathlib import Path

import pytest

from cgpu.core.errors import SettingError, UnavailableError
from cgpu.sandbox import versions
from cgpu.sandbox.binaries import build_command, ensure, folder_of, go_environment, module_text, says_version
from cgpu.sandbox.golang import Go, parse_go_version
from cgpu.sandbox.versions import Source

GO = Go(Path("/opt/go/bin/go"), (1, 26))


def program(folder: Path, name: str, says: str, status: int = 0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{says}'\nexit {status}\n")
    path.chmod(0o755)
    return path


def test_every_source_has_a_folder_of_its_own() -> None:
    keys = [source.key for source in (*versions.sources(), versions.kubernetes(versions.OLDER_KUBERNETES))]

    assert len(set(keys)) == len(keys)
    assert folder_of(Path("/c"), versions.ETCD_SOURCE) == Path(f"/c/bin/etcd-{versions.ETCD}")


@pytest.mark.parametrize(
    ("version", "words"),
    [
        pytest.param("1.37", "is not MAJOR.MINOR.PATCH", id="two numbers"),
        pytest.param("v1.37.2", "is not MAJOR.MINOR.PATCH", id="a leading v"),
        pytest.param("1.37.x", "is not MAJOR.MINOR.PATCH", id="a letter"),
        pytest.param("1.33.9", "is older than 1.34", id="an old minor"),
    ],
)
def test_a_version_that_cannot_be_had_is_refused(version: str, words: str) -> None:
    with pytest.raises(SettingError, match=words):
        versions.kubernetes(version)


@pytest.mark.parametrize(
    ("version", "has_streaming"),
    [pytest.param("1.37.2", True, id="since 1.36"), pytest.param("1.34.4", False, id="before 1.36")],
)
def test_the_module_names_the_published_parts_of_kubernetes(version: str, has_streaming: bool) -> None:
    text = module_text(versions.kubernetes(version), GO)

    assert f"require k8s.io/kubernetes v{version}\n" in text
    assert f"replace k8s.io/api => k8s.io/api v0.{version[2:]}\n" in text
    assert ("k8s.io/streaming" in text) is has_streaming


def test_kubernetes_knows_its_own_version() -> None:
    command = build_command(GO, versions.kubernetes("1.37.2"), "k8s.io/kubernetes/cmd/kubelet", Path("/out"))

    assert "-X k8s.io/component-base/version.gitVersion=v1.37.2" in command[command.index("-ldflags") + 1]


def test_a_build_is_static_and_fetches_no_toolchain() -> None:
    environment = go_environment(GO)

    assert (environment["CGO_ENABLED"], environment["GOTOOLCHAIN"]) == ("0", "local")
    assert environment["PATH"].startswith(f"/opt/go/bin{os.pathsep}")


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("go1.26.8\n", (1, 26), id="a release"),
        pytest.param("go1.27rc1\n", (1, 27), id="a candidate"),
        pytest.param("devel go1.28\n", None, id="a development build"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_versions_of_go_are_read(text: str, want: tuple[int, int] | None) -> None:
    assert parse_go_version(text) == want


@pytest.mark.parametrize(
    ("says", "want"),
    [
        pytest.param("tool v1.2.3", True, id="the wanted one"),
        pytest.param("tool 1.2.3+g12ab", True, id="the wanted one with a build's name"),
        pytest.param("tool 1.2.30", False, id="a longer number"),
        pytest.param("tool 11.2.3", False, id="a number before"),
        pytest.param("tool", False, id="no version"),
    ],
)
def test_a_program_on_path_is_judged_by_what_it_says(tmp_path: Path, says: str, want: bool) -> None:
    source = Source("tool", "1.2.3", "example.com/tool", {"tool": "example.com/tool"})

    assert says_version(str(program(tmp_path, "tool", says)), source) is want


def test_matching_programs_are_copied_from_path_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source("tool", "1.2.3", "example.com/tool", {"tool": "example.com/tool"})
    program(tmp_path / "path", "tool", "tool 1.2.3")
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}{os.pathsep}{os.environ['PATH']}")
    said: list[str] = []

    first = ensure(tmp_path / "cache", (source,), said.append)
    again = ensure(tmp_path / "cache", (source,), said.append)

    assert first == again == {"tool": tmp_path / "cache/bin/tool-1.2.3/tool"}
    assert first["tool"].read_text() == (tmp_path / "path/tool").read_text()
    assert said == ["tool-1.2.3: taken from PATH"]


def test_a_build_that_fails_says_why_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source("tool", "1.2.3", "example.com/tool", {"no-such-program": "example.com/tool"})
    go = tmp_path / "path/go"
    go.parent.mkdir()
    go.write_text('#!/bin/sh\n[ "$1" = env ] && { echo go1.99.0; exit 0; }\necho "cannot find module" >&2\nexit 1\n')
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{go.parent}{os.pathsep}{os.environ['PATH']}")

    with pytest.raises(UnavailableError, match="cannot find module"):
        ensure(tmp_path / "cache", (source,), lambda _: None)

    assert [path.name for path in (tmp_path / "cache/bin").iterdir()] == ["tool-1.2.3.lock"]
