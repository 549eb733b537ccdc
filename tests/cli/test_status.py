# SPDX-License-Identifier: Apache-2.0
"""How commands end: status and the one text on standard error, for each way."""

import subprocess
import sys

import pytest

from cgpu.cli.status import ended
from cgpu.core.errors import InputError, UnavailableError


def fails_with(error: BaseException) -> object:
    def call() -> int:
        raise error

    return call


@pytest.mark.parametrize(
    ("call", "status", "text"),
    [
        pytest.param(lambda: None, 0, "", id="nothing said is success"),
        pytest.param(lambda: 7, 7, "", id="its own status"),
        pytest.param(fails_with(InputError("no")), 2, "tool: no\n", id="bad input is the caller's turn"),
        pytest.param(fails_with(UnavailableError("gone")), 1, "tool: gone\n", id="what does not work"),
        pytest.param(fails_with(KeyboardInterrupt()), 130, "", id="an interruption needs no words"),
    ],
)
def test_each_way_has_its_status_and_text(call, status, text, capsys) -> None:
    assert ended("tool", call) == status
    assert capsys.readouterr().err == text


def test_a_reader_that_leaves_is_no_fault() -> None:
    """As in `cgpu-smi --watch | head -1`: no traceback, neither at the write nor when Python ends."""
    program = "import sys; from cgpu.cli.status import ended; sys.exit(ended('tool', lambda: [print('x' * 99) for _ in range(9999)] and 0))"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as tool:
        assert tool.stdout is not None
        assert tool.stderr is not None
        tool.stdout.readline()
        tool.stdout.close()
        assert (tool.stderr.read(), tool.wait()) == ("", 1)
