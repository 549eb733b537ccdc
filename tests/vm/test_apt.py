# SPDX-License-Identifier: Apache-2.0
import pytest

from tests.vm.apt import find_mirror, need_programs, parse_mirror, run
from tests.vm.errors import BenchError

STANZAS = """Types: deb
# a comment
URIs: http://mirror.test/security
Suites: bookworm-security
Components: main

Types: deb deb-src
URIs: http://mirror.test/debian http://other.test/debian
Suites: bookworm bookworm-updates
Components: main
"""


@pytest.mark.parametrize(
    ("text", "codename", "want"),
    [
        pytest.param(
            STANZAS, "bookworm", "http://mirror.test/debian", id="the stanza of the main suite, its first address"
        ),
        pytest.param(STANZAS, "trixie", None, id="no stanza serves another release"),
        pytest.param(STANZAS.replace("deb deb-src", "deb-src"), "bookworm", None, id="sources alone do not count"),
        pytest.param("deb http://m.test/debian bookworm main\n", "bookworm", "http://m.test/debian", id="one line"),
        pytest.param(
            "deb [signed-by=/k] http://m.test/d bookworm main",
            "bookworm",
            "http://m.test/d",
            id="one line with options",
        ),
        pytest.param("# deb http://m.test/debian bookworm main\n", "bookworm", None, id="a comment is no source"),
        pytest.param(
            "deb http://m.test/debian bookworm-updates main\n", "bookworm", None, id="updates alone do not count"
        ),
    ],
)
def test_the_mirror_is_the_one_of_the_main_suite(text, codename, want):
    assert want == parse_mirror(text, codename)


def test_a_machine_without_a_debian_source_is_told_what_to_add(tmp_path):
    (tmp_path / "apt").mkdir()
    (tmp_path / "os-release").write_text("VERSION_CODENAME=bookworm\n")

    with pytest.raises(BenchError, match=r"no apt source .* serves the suite bookworm; add one"):
        find_mirror(tmp_path)


def test_a_program_that_fails_shows_its_last_lines():
    with pytest.raises(BenchError, match=r"ended with 3:\nwhy"):
        run(["sh", "-c", "echo why; exit 3"])


def test_programs_that_are_there_need_nothing():
    need_programs({"sh": "a-package-that-does-not-exist"})
