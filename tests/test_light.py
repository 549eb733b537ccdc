# SPDX-License-Identifier: Apache-2.0
"""What the start of a container uses in place of heavy modules does as those do, and those stay out."""

import errno
import json
import os
import pathlib
import subprocess
import sys
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cgpu import libc, light, light_json
from cgpu.core.light import NamedTuple

ROOT = Path(__file__).parents[1]
HEAVY = (
    "re",
    "enum",
    "pathlib",
    "typing",
    "json",
    "collections",
    "contextlib",
    "functools",
    "tomllib",
    "site",
    "ctypes",
)
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # on a machine however busy
IMPORT = "import sys; sys.path.insert(0, sys.argv[1]); import cgpu.runtime.__main__; print(*sys.modules)"


def test_the_wrapper_imports_nothing_heavy() -> None:
    """A module that comes in by mistake costs every container of a host some milliseconds."""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", IMPORT, ROOT], capture_output=True, text=True, check=True)

    assert set(done.stdout.split()) & set(HEAVY) == set()


class Light(NamedTuple):
    a: int
    b: str = "b"


class Original(typing.NamedTuple):
    a: int
    b: str = "b"


@pytest.mark.parametrize(
    "look",
    [
        pytest.param(lambda kind: tuple(kind(1)), id="a default"),
        pytest.param(lambda kind: (kind(1, "c").b, kind(1, b="c").b, kind(b="c", a=1).a), id="by place and by name"),
        pytest.param(lambda kind: kind(1) == kind(a=1, b="b"), id="equality"),
        pytest.param(lambda kind: {kind(1): 2}[kind(1)], id="a key"),
        pytest.param(lambda kind: tuple(kind(1)._replace(b="x")), id="another value"),
        pytest.param(lambda kind: kind._fields, id="names of the parts"),
        pytest.param(lambda kind: repr(kind(1)).partition("(")[2], id="as text"),
        pytest.param(lambda kind: kind(), id="a part is missing"),
        pytest.param(lambda kind: kind(1, 2, 3), id="too many"),
        pytest.param(lambda kind: kind(1, c=3), id="a part that is not there"),
        pytest.param(lambda kind: kind(1, a=2), id="a part twice"),
    ],
)
def test_tuples_with_names(look: Callable[[Any], object]) -> None:
    assert outcome(look, Light) == outcome(look, Original)


def outcome(look: Callable[[Any], object], kind: object) -> object:
    try:
        return look(kind)
    except Exception as error:  # noqa: BLE001 - what is raised is what is compared
        return type(error)


def made(folder: Path) -> Path:
    (folder / "file.tar.gz").write_text("text\n")
    (folder / "link").symlink_to("file.tar.gz")
    (folder / "sub").mkdir()
    return folder


@pytest.mark.parametrize(
    "look",
    [
        pytest.param(lambda at: [str(at / part) for part in ("a", "a/b", "/abs", "", ".hidden")], id="joined"),
        pytest.param(lambda at: [(at / name).stem for name in ("a", "a.b", "a.b.c", ".hidden")], id="stem"),
        pytest.param(lambda at: str((at / "a/b").parent) + (at / "a/b").name + str((at / "a").with_name("c")), id="parent, name, neighbour"),
        pytest.param(lambda at: ((at / "link").read_text(), (at / "link").read_bytes()), id="read"),
        pytest.param(lambda at: (at / "none").read_text(), id="read what is not there"),
        pytest.param(lambda at: [(at / name).exists() for name in ("link", "none", "sub")], id="exists"),
        pytest.param(lambda at: [(at / name).is_file() for name in ("link", "none", "sub")], id="file"),
        pytest.param(lambda at: [(at / name).is_dir() for name in ("link", "none", "sub")], id="folder"),
        pytest.param(lambda at: (at / "link").resolve().name, id="without links"),
        pytest.param(lambda at: sorted(path.name for path in at.iterdir()), id="what is in it"),
        pytest.param(lambda at: list((at / "none").iterdir()), id="what is in nothing"),
        pytest.param(lambda at: (at / "link").stat().st_size, id="stat"),
        pytest.param(lambda at: ((at / "new/er").mkdir(parents=True), (at / "new").mkdir(exist_ok=True), (at / "new/er").rmdir(), sorted(map(str, (at / "new").iterdir()))), id="folders made and removed"),
        pytest.param(lambda at: (at / "sub").mkdir(), id="a folder that is there"),
        pytest.param(lambda at: ((at / "w").write_text("1"), (at / "w").open("a").close(), (at / "w").replace(at / "x") and None, (at / "x").read_text(), (at / "x").unlink(), (at / "x").unlink(missing_ok=True)), id="written, moved, removed"),
        pytest.param(lambda at: (at / "none").unlink(), id="remove what is not there"),
    ],
)  # fmt: skip
def test_paths(tmp_path: Path, look: Callable[[Any], object]) -> None:
    folders = [made(tmp_path / name) for name in ("one", "two") if not (tmp_path / name).mkdir()]
    found, wanted = (
        outcome(look, kind(folder)) for kind, folder in zip((light.Path, pathlib.Path), folders, strict=True)
    )

    assert str(found).replace("/one", "/two") == str(wanted)


@patient
@given(st.text("./a", max_size=8).filter(lambda text: "." not in text.split("/")))
def test_paths_as_text(text: str) -> None:
    assert str(light.Path(text)) == str(pathlib.Path(text)).replace("//", "/")


def test_suppressed_is_what_was_named() -> None:
    with light.suppress(OSError, ValueError):
        raise FileNotFoundError
    with pytest.raises(KeyError), light.suppress(OSError):
        raise KeyError


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@patient
@given(VALUES)
def test_json_is_written_and_read_as_by_the_original(value: object) -> None:
    assert light_json.dumps(value) == json.dumps(value)
    assert light_json.loads(f" {json.dumps(value, indent=1)}\n".encode()) == value


@patient
@given(st.text('{}[]",: 1tn\\', max_size=12))
def test_what_is_no_json_is_refused(text: str) -> None:
    assert outcome(light_json.loads, text) == outcome(json.loads, text)


@pytest.mark.parametrize("value", [object(), {1, 2}, {"a": b""}])
def test_what_json_cannot_say_is_refused(value: object) -> None:
    with pytest.raises(TypeError):
        light_json.dumps(value)


def test_a_refusal_of_the_c_library_is_an_error_with_its_number(tmp_path: Path) -> None:
    """`_ctypes`, which has no promise of a stable form, against what the kernel says of a folder without a mount."""
    with pytest.raises(OSError, match="Invalid argument|Operation not permitted") as refused:
        libc.call("umount2", os.fsencode(tmp_path), 0)
    assert refused.value.errno in (errno.EINVAL, errno.EPERM)


def test_a_process_ends_with_its_parent() -> None:
    """The middle one ends at once; the last waits for ever, holding the pipe."""
    parent = (
        "import os, sys; sys.path.insert(0, sys.argv[1]); from cgpu.libc import die_with_parent\n"
        "ready, said = os.pipe()\n"
        "if os.fork(): os.read(ready, 1); os._exit(0)\n"
        "die_with_parent(9); os.write(said, b'x'); os.read(0, 1)"
    )
    keeps_open, stdin = os.pipe()
    done = subprocess.run([sys.executable, "-c", parent, ROOT], stdin=keeps_open, stdout=subprocess.PIPE, timeout=60)
    os.close(stdin)

    assert done.returncode == 0
