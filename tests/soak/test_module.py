# SPDX-License-Identifier: Apache-2.0
"""Long churn and fuzzing of the kernel module on the debug kernel (KASAN, lockdep, kmemleak); prints its figures.

CHURN_SECONDS and FUZZ_CALLS choose how long; the defaults are ten minutes and ten million calls. FUZZ_SEED is the first
seed: each piece of PIECE calls has its own, which is printed.
"""

import json
import os
from collections import Counter
from collections.abc import Callable

import pytest

from tests.kmod.churning import LEFT, RARELY_REACHED, REACHED, Met, churn, churn_without, fuzz, stall_beyond
from tests.kmod.ktap import run_suites, written
from tests.vm.bench import Choice
from tests.vm.machine import Machine

SECONDS = int(os.environ.get("CHURN_SECONDS", "600"))
CALLS = int(os.environ.get("FUZZ_CALLS", "10000000"))
SEED = int(os.environ.get("FUZZ_SEED", "7000"))
PIECE = 100_000
LEAKS = 3600  # a look for lost memory takes minutes on a busy host
machine = pytest.mark.parametrize(
    "vm", [pytest.param(Choice("535", kernel="debug"), id="535 on the debug kernel")], indirect=True, scope="module"
)
Record = Callable[[str, object], None]


def tell(record_property: Record, figure: str) -> None:
    """Keeps a figure with the test's report and shows it."""
    record_property("figure", figure)
    print(f"soak: {figure}")


@machine
def test_the_pure_files_suites_pass_in_the_kernel(vm: Machine, record_property: Record) -> None:
    """The same suites as on the host, under KASAN: every case of the sources ran and is well."""
    shown = run_suites(vm, "debug")
    tell(record_property, f"KUnit: {sum(map(len, shown.values()))} cases of {len(shown)} suites")

    assert shown == {suite: dict.fromkeys(cases, "ok") for suite, cases in written().items()}


@machine
@pytest.mark.timeout(SECONDS * 12 + 4 * LEAKS)
def test_churn_on_the_debug_kernel(vm: Machine, record_property: Record) -> None:
    """No step stalls for a second more than without the module, nothing is left, nothing is leaked, no report.

    Under these checks and emulated, the end of a CUDA program alone takes many seconds on a busy host.
    """
    control = churn_without(vm, SECONDS)
    tell(record_property, f"the same without the module: {json.dumps(control)}")
    vm.run("check-leaks clear", timeout=LEAKS).checked()
    facts, left = churn(vm, SECONDS)
    tell(record_property, f"churn, {SECONDS} s: {json.dumps(facts)}")

    assert (facts["failures"], left) == ([], LEFT)
    assert stall_beyond(facts, control) < 1
    vm.run("check-leaks", timeout=LEAKS).checked()


@machine
@pytest.mark.timeout(24 * 3600)
def test_fuzzing_on_the_debug_kernel(vm: Machine, record_property: Record) -> None:
    """Random calls and writes from two instances and the host at once; all kinds of refusals were met."""
    vm.run("check-leaks clear", timeout=LEAKS).checked()
    met: Counter[Met] = Counter()
    made = seconds = 0
    for number in range(-(-CALLS // PIECE)):
        seed = SEED + 3 * number
        done = fuzz(vm, min(PIECE, CALLS - made), seed, timeout=4 * 3600)
        assert done.left == LEFT
        met.update(done.met)
        made, seconds = made + done.calls, seconds + done.seconds
        tell(record_property, f"fuzzing: {made} calls in {seconds} s of the machine, seeds {SEED} to {seed + 2}")
    for (kind, name, result), count in sorted(met.items()):
        print(f"soak: {kind} {name} {result} {count}")

    assert made == CALLS
    assert set(met) >= REACHED | RARELY_REACHED
    vm.run("check-leaks", timeout=LEAKS).checked()
