# SPDX-License-Identifier: Apache-2.0
import pytest

from tests.vm.cache import cache_root, ensure


def build_text(text):
    return lambda place: (place / "text").write_text(text)


def test_a_thing_is_built_once_for_a_recipe_and_again_for_another(tmp_path):
    place = tmp_path / "thing"
    ensure(place, ["one"], build_text("first"), "thing")
    ensure(place, ["one"], build_text("never"), "thing")
    assert (place / "text").read_text() == "first"

    ensure(place, ["two"], build_text("second"), "thing")
    assert (place / "text").read_text() == "second"


def test_a_build_that_fails_leaves_what_was_there(tmp_path):
    place = tmp_path / "thing"
    ensure(place, ["one"], build_text("first"), "thing")

    with pytest.raises(ZeroDivisionError):
        ensure(place, ["two"], lambda scratch: (scratch / "half").write_text(str(1 // 0)), "thing")

    assert (place / "text").read_text() == "first"
    assert [path.name for path in tmp_path.iterdir() if path.name != ".thing.lock"] == ["thing"]


def test_what_a_killed_build_left_is_removed_by_the_next(tmp_path):
    (tmp_path / ".thing.1234").mkdir()
    (tmp_path / ".thing.more.1234").mkdir()

    ensure(tmp_path / "thing", ["one"], build_text("first"), "thing")

    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == [".thing.more.1234", "thing"]


def test_the_cache_is_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv("CGPU_CACHE", str(tmp_path))
    assert cache_root() == tmp_path
