# SPDX-License-Identifier: Apache-2.0
"""`make soak` runs the kernel's judges over the modules; here is that they judge."""

from pathlib import Path

import pytest

from tests.kmod.style import PROGRAMS, PROJECT, STRICT, checkpatch, findings, scripts, sources
from tests.vm.apt import need_programs
from tests.vm.errors import BenchError
from tests.vm.kernels import build_modules, fetch

CARELESS = Path(__file__).parent / "data/careless"


@pytest.mark.parametrize(
    ("report", "want"),
    [
        pytest.param("total: 0 errors, 0 warnings, 0 checks, 9 lines checked\n", [], id="a clean file"),
        pytest.param("kmod/gate.c:29: WARNING:CONST_STRUCT: text\n", [], id="an accepted finding"),
        pytest.param("kmod/main.c:2: CHECK:LONG_LINE: text\n", ["kmod/main.c:2: CHECK:LONG_LINE: text"], id="another"),
        pytest.param("Must be run from a kernel tree\n", ["Must be run from a kernel tree"], id="a complaint"),
    ],
)
def test_what_was_not_accepted_is_told(report: str, want: list[str]) -> None:
    assert findings(report) == want


def test_checkpatch_finds_what_is_not_the_kernels_style() -> None:
    found = checkpatch([CARELESS / "careless.c"], scripts())
    assert {line.split(": ")[1] for line in found} >= {"ERROR:SPACING", "WARNING:BRACES"}


def test_every_folder_of_kernel_code_is_read() -> None:
    folders = {str(file.parent.relative_to(PROJECT)) for file in sources()}
    assert folders == {"kmod", "kmod/abi", "kmod/nvsim", "kmod/tests"}


def test_sparse_finds_a_users_pointer_that_is_followed() -> None:
    need_programs(PROGRAMS)
    assert list(build_modules(fetch("6.1"), CARELESS).glob("*.ko"))
    with pytest.raises(BenchError, match="dereference of noderef expression"):
        build_modules(fetch("6.1"), CARELESS, *STRICT)
