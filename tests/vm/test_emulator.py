# SPDX-License-Identifier: Apache-2.0
import re

import pytest

from tests.vm.emulator import check, emulator, version_in
from tests.vm.errors import BenchError

SAYS = "QEMU emulator version {} (Debian 1:{}+ds-2)\nCopyright (c) 2003-2025 Fabrice Bellard\n"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(SAYS.format("10.0.2", "10.0.2"), (10, 0), id="two digits"),
        pytest.param("QEMU emulator version 8.1.0\n", (8, 1), id="without a package's version"),
    ],
)
def test_the_version_is_the_one_that_the_emulator_names(text, want):
    assert want == version_in(text)


def test_an_answer_without_a_version_is_shown():
    with pytest.raises(BenchError, match="says 'no such CPU', which names no version"):
        version_in("no such CPU\n")


@pytest.mark.parametrize("version", [pytest.param("7.2.18", id="7.2"), pytest.param("8.0.4", id="8.0")])
def test_an_emulator_that_loses_what_a_kernel_patches_is_refused(tmp_path, version):
    old = tmp_path / "qemu"
    old.write_text(f"#!/bin/sh\ncat <<'END'\n{SAYS.format(version, version)}END\n")
    old.chmod(0o755)

    with pytest.raises(BenchError, match=re.escape(version[:3]) + r"; the bench needs 8\.1 or newer"):
        check([str(old)])


def test_a_release_with_a_new_enough_emulator_uses_its_own(tmp_path, monkeypatch):
    own = tmp_path / "bin" / "qemu-system-x86_64"
    own.parent.mkdir()
    own.write_text(f"#!/bin/sh\ncat <<'END'\n{SAYS.format('10.0.2', '10.0.2')}END\n")
    own.chmod(0o755)
    (tmp_path / "os-release").write_text("VERSION_CODENAME=trixie\n")
    monkeypatch.setenv("PATH", str(own.parent), prepend=":")

    want = ["qemu-system-x86_64"]

    assert want == emulator(tmp_path)


def test_the_emulator_that_the_bench_uses_is_new_enough():
    assert emulator() == check(emulator())
