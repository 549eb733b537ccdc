# SPDX-License-Identifier: Apache-2.0
"""The suites of the module's pure files in a kernel with KUnit: built as a module, loaded, their report read."""

import re
from pathlib import Path
from typing import Final

from tests.vm.kernels import build_modules, fetch
from tests.vm.machine import Machine

KMOD: Final = Path(__file__).parents[2] / "kmod"
RESULT: Final = re.compile(r"^\s+(ok|not ok) \d+ (?:- )?(\w+)", re.MULTILINE)
CASE: Final = re.compile(r"KUNIT_CASE\((\w+)\)")
SUITE: Final = re.compile(r'\.name = "([\w-]+)", \.test_cases')
SHOW: Final = """set -e; insmod /tmp/cgpu_kunit.ko
for suite in /sys/kernel/debug/kunit/cgpu-*; do echo "suite ${suite##*/}"; cat $suite/results; done; rmmod cgpu_kunit"""


def written(folder: Path = KMOD / "tests") -> dict[str, list[str]]:
    """The names of the cases that the sources have, by suite."""
    texts = [file.read_text() for file in sorted(folder.glob("*_kunit.c"))]
    return {name: CASE.findall(text) for text in texts for name in SUITE.findall(text)}


def results(text: str) -> dict[str, dict[str, str]]:
    """What a report says of each case, by suite: `ok` or `not ok`."""
    suites = (part.partition("\n") for part in re.split(r"^suite ", text, flags=re.MULTILINE)[1:])
    return {name: {case: word for word, case in RESULT.findall(body)} for name, _, body in suites}


def run_suites(vm: Machine, kernel: str) -> dict[str, dict[str, str]]:
    """Builds the suites for a kernel, loads them in a machine that runs it, and says what came of each case."""
    module = build_modules(fetch(kernel), KMOD, "CGPU_KUNIT=1") / "cgpu_kunit.ko"
    vm.put("/tmp/cgpu_kunit.ko", module)
    return results(vm.run(SHOW).checked().stdout)
