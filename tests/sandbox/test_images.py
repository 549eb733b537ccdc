# SPDX-License-Identifier: Apache-2.0
"""Images: archives as runtimes read them, keys that follow the inputs, stores that nodes may write to."""

import hashlib
import json
import shutil
import tarfile
from pathlib import Path

import pytest

from cgpu.core.errors import SettingError
from cgpu.sandbox.archive import Recipe, write_archive
from cgpu.sandbox.imagebuild import inputs_digest
from cgpu.sandbox.images import copy_store

PROJECT = Path(__file__).parents[2]


def test_an_archive_holds_what_its_manifest_says(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\n")
    recipe = Recipe("localhost/tool:1", ((tool, "bin/tool"),), (("bin/alias", "tool"),), ("/bin/tool",))

    write_archive(recipe, tmp_path / "tool.tar")

    with tarfile.open(tmp_path / "tool.tar") as archive:
        (manifest,) = json.loads(archive.extractfile("manifest.json").read())
        config = json.loads(archive.extractfile(manifest["Config"]).read())
        layer = archive.extractfile(manifest["Layers"][0]).read()
        with tarfile.open(fileobj=archive.extractfile(manifest["Layers"][0])) as inside:
            modes = {member.name: member.mode for member in inside}
            alias = inside.getmember("bin/alias").linkname
    assert manifest["RepoTags"] == ["localhost/tool:1"]
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]
    assert config["config"]["Entrypoint"] == ["/bin/tool"]
    assert (modes["bin/tool"], modes["tmp"], alias) == (0o755, 0o1777, "tool")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tool", "tool.tar"]


def test_equal_recipes_give_equal_archives(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.write_text("x")
    recipe = Recipe("localhost/tool:1", ((tool, "bin/tool"),))
    write_archive(recipe, tmp_path / "a.tar")
    tool.touch()
    write_archive(recipe, tmp_path / "b.tar")

    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A checkout with one source file, and one of the module."""
    folder = tmp_path / "project"
    for name in ("Dockerfile", "pyproject.toml", "requirements.lock", "README.md", "cgpu/a.py", "kmod/main.c"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return folder


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        pytest.param("cgpu/a.py", True, id="a source file"),
        pytest.param("cgpu/b.py", True, id="a new source file"),
        pytest.param("kmod/main.c", True, id="the module's source"),
        pytest.param("kmod/nvsim/main.c", False, id="the simulated driver's source"),
        pytest.param("Dockerfile", True, id="the Dockerfile"),
        pytest.param("requirements.lock", True, id="the lock file"),
        pytest.param("cgpu/__pycache__/a.pyc", False, id="compiled code"),
        pytest.param("docs/a.md", False, id="documentation"),
    ],
)
def test_the_image_is_built_anew_when_an_input_changed(project: Path, name: str, changes: bool) -> None:
    before = inputs_digest(project)
    (project / name).parent.mkdir(parents=True, exist_ok=True)
    (project / name).write_text("changed")

    assert (inputs_digest(project) != before) is changes


def test_a_folder_that_is_no_checkout_is_refused(project: Path) -> None:
    (project / "requirements.lock").unlink()

    with pytest.raises(SettingError, match="requirements.lock is missing: the image is built from a checkout"):
        inputs_digest(project)


def test_what_docker_may_see_is_what_the_digest_covers() -> None:
    seen = {line[1:] for line in (PROJECT / ".dockerignore").read_text().splitlines() if line.startswith("!")}

    assert seen == {
        "Dockerfile",
        "README.md",
        "pyproject.toml",
        "requirements.lock",
        "cgpu",
        "deviceplugin",
        "extender",
        "kmod",
    }


def test_nodes_share_contents_and_own_their_databases(tmp_path: Path) -> None:
    template = tmp_path / "template"
    (template / "blobs").mkdir(parents=True)
    (template / "blobs/a").write_text("content")
    (template / "meta.db").write_text("empty")
    (tmp_path / "node").mkdir()

    copy_store(template, tmp_path / "node")
    (tmp_path / "node/meta.db").write_text("written by the node")
    shutil.rmtree(tmp_path / "node/blobs")

    assert (template / "meta.db").read_text() == "empty"
    assert (template / "blobs/a").read_text() == "content"
