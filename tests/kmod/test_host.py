# SPDX-License-Identifier: Apache-2.0
"""The module's pure files on the host: their suites under sanitizers, and every policy in simulated time."""

import re
import subprocess
from pathlib import Path

import pytest

KMOD = Path(__file__).parents[2] / "kmod"
PURE = ("sched.c", "sched_round.c", "ring.c", "account.c", "objects.c", "replies.c")
FLAGS = ("-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Itests/shim", "-I.")
SCHED_SIM = ("tests/sched_sim.c", "tests/sched_cases.c")
SANITIZERS = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def compiled(program: Path, *arguments: str) -> Path:
    done = subprocess.run(
        ["gcc", *FLAGS, *arguments, "-o", str(program)], cwd=KMOD, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return program


def output(*command: str | Path) -> tuple[int, str]:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_suites_pass_under_sanitizers(tmp_path: Path) -> None:
    suites = [f"tests/{file.name}" for file in sorted((KMOD / "tests").glob("*_kunit.c"))]
    code, text = output(compiled(tmp_path / "suites", *SANITIZERS, "tests/host_main.c", *suites, *PURE))
    counts = re.search(r"(\d+) of (\d+) cases pass", text)
    assert code == 0, text
    assert counts is not None
    assert counts[1] == counts[2]
    assert int(counts[2]) >= 32


def test_every_policy_keeps_its_shares_in_simulated_time(tmp_path: Path) -> None:
    code, text = output(compiled(tmp_path / "sim", "-O2", *SCHED_SIM, "sched.c", "sched_round.c"), "10")
    assert (code, text.splitlines()[-1]) == (0, "9500 of 9500 hold"), text


def turns(tmp_path: Path, watch: str = "watch.c") -> tuple[int, str]:
    """What the module's looks make of a GPU in simulated time."""
    played = ("tests/turns_sim.c", "tests/turns_cases.c")
    files = ("turns.c", watch, "sched.c", "sched_round.c")
    return output(compiled(tmp_path / "turns", "-O2", "-include", "tests/shim/cgpu.h", *played, *files))


def test_looks_charge_what_the_gpu_did_in_simulated_time(tmp_path: Path) -> None:
    code, text = turns(tmp_path)
    assert (code, text.splitlines()[-1]) == (0, "305 of 305 hold"), text


@pytest.mark.parametrize(
    ("rule", "broken"),
    [
        pytest.param("if (rate &&", "if (rate == 1 &&", id="gaps between two looks are charged"),
        pytest.param(
            "ran = min(ran, max(entry, share->longest_ns));", "ran = 0;", id="who is below a sleeper runs dry"
        ),
    ],
)
def test_the_simulation_sees_what_is_charged_wrongly(tmp_path: Path, rule: str, broken: str) -> None:
    text = (KMOD / "watch.c").read_text()
    assert text.count(rule) == 1
    mutant = tmp_path / "watch.c"
    mutant.write_text(text.replace(rule, broken))
    code, _ = turns(tmp_path, str(mutant))
    assert code == 1


@pytest.mark.parametrize(
    ("file", "rule", "broken"),
    [
        pytest.param(
            "sched_round.c",
            "e->debt_ns = cgpu_round_clamp(s, e->debt_ns + debt);",
            "e->debt_ns = 0;",
            id="debt is forgotten",
        ),
        pytest.param("sched_round.c", "s->cursor[highprio] = ent;", "", id="the round starts over each time"),
    ],
)
def test_the_simulation_sees_a_broken_rule(tmp_path: Path, file: str, rule: str, broken: str) -> None:
    text = (KMOD / file).read_text()
    assert text.count(rule) == 1
    mutant = tmp_path / file
    mutant.write_text(text.replace(rule, broken))
    (tmp_path / "tests").symlink_to(KMOD / "tests")
    code, _ = output(compiled(tmp_path / "sim", "-O2", *SCHED_SIM, "sched.c", str(mutant)), "2")
    assert code == 1
