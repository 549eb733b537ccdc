# SPDX-License-Identifier: Apache-2.0
"""The command over a proc tree in a folder."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cgpu.cli import smi

A, B = "0a1b2c3d4e5f", "0affffffffff"
LINE = (
    "{} gpu={} inst=3 mem=6442450944 used=1048576 weight=6 highprio=1 busy_ns=77 oom=2 dev=240:3 ctl=241:6 uvm=241:7\n"
)
Run = Callable[..., int]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A loaded module with instance A on GPU 0 and 1, and B on GPU 0."""
    for gpu, id_ in ((0, A), (1, A), (0, B)):
        folder = tmp_path / "cgpu_km" / str(gpu) / id_
        folder.mkdir(parents=True)
        (folder / "meminfo").write_text(f"Free: 5\nPID: {gpu + 70} Mem: 3145728\n")
        for name, value in {"memsize": "6442450944", "weight": "6", "highprio": "1"}.items():
            (folder / name).write_text(value)
    for gpu in (0, 1):
        for name, value in {"policy": "1", "max_inst": "20"}.items():
            (tmp_path / "cgpu_km" / str(gpu) / name).write_text(value)
    (tmp_path / "cgpu_km" / "version").write_text("1.0.0\n")
    (tmp_path / "cgpu_km" / "inst_ctl").write_text(LINE.format(A, 0) + LINE.format(A, 1) + LINE.format(B, 0))
    (tmp_path / "70").mkdir()
    (tmp_path / "70" / "comm").write_text("python3\n")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / f"{A}.json").write_text('{"runtime": "kubernetes", "namespace": "ns", "pod": "web-0"}')
    (tmp_path / "run" / f"{B}.json").write_text("[]")
    return tmp_path


@pytest.fixture
def run(root: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr("cgpu.cli.smi.time.sleep", lambda _: None)
    return lambda *words: smi.main([*words, "--proc-root", str(root), "--run-folder", str(root / "run")])


def test_rows_are_sorted_and_named(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0

    shown = capsys.readouterr().out
    assert shown.startswith("| cGPU Version: 1.0.0\n+---+")
    assert [line.split("|")[2].strip() for line in shown.splitlines()[4:7]] == [B, "ns/web-0", "ns/web-0"]
    assert "\x1b" not in shown


def test_a_terminal_gets_a_bold_heading(root: Path) -> None:
    """A real one; what is not a terminal gets none (above)."""
    ours, theirs = pty.openpty()
    command = "import sys; from cgpu.cli.smi import main; sys.exit(main())"
    words = ["--proc-root", str(root), "--run-folder", str(root / "run")]
    done = subprocess.run([sys.executable, "-c", command, *words], stdout=theirs, cwd=Path(__file__).parents[2])
    os.close(theirs)
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)

    assert done.returncode == 0
    assert shown.count("\x1b[1m") == shown.count("\x1b[0m") == 1


def test_processes_by_name_where_they_can_be_seen(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--processes") == 0

    lines = capsys.readouterr().out.splitlines()
    assert [line.split("|")[3:6] for line in lines if "MiB" in line] == [
        ["      70 ", " python3         ", "       3MiB"],
        ["      70 ", " python3         ", "       3MiB"],
        ["      71 ", " -               ", "       3MiB"],
    ]


def test_json_is_json(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--json") == 0

    shown = json.loads(capsys.readouterr().out)
    assert [each["id"] for each in shown["instances"]] == [B, A, A]
    assert shown["instances"][1]["processes"] == [{"pid": 70, "name": "python3", "usedBytes": 3 << 20}]


def test_watching_prints_until_it_is_interrupted(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    naps: list[float] = []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("cgpu.cli.smi.time.sleep", nap)
    assert run("--watch=2") == 130
    assert naps == [2.0, 2.0, 2.0]
    assert capsys.readouterr().out.count("cGPU Version") == 2


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        pytest.param(["set", B, "--mem", "4GiB"], {f"0/{B}/memsize": "4294967296\n"}, id="memory"),
        pytest.param(["set", "0af", "--weight", "4", "--highprio", "0"], {f"0/{B}/weight": "4\n", f"0/{B}/highprio": "0\n"}, id="by the beginning of the name"),
        pytest.param(["set", A, "--weight", "4"], {f"0/{A}/weight": "4\n", f"1/{A}/weight": "4\n"}, id="on every GPU"),
        pytest.param(["set", A, "--weight", "4", "--gpu", "1"], {f"0/{A}/weight": "6", f"1/{A}/weight": "4\n"}, id="on one GPU"),
    ],
)  # fmt: skip
def test_a_change_is_written(run: Run, root: Path, words: list[str], changed: dict[str, str]) -> None:
    for path in changed:  # the kernel replaces what a file shows, a plain file would keep its tail
        (root / "cgpu_km" / path).write_text(
            (root / "cgpu_km" / path).read_text() if "0/" + A in path and "--gpu" in words else ""
        )

    assert run(*words) == 0
    assert {path: (root / "cgpu_km" / path).read_text() for path in changed} == changed


def test_a_change_that_is_refused_half_way_is_taken_back(
    run: Run, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = (root / "cgpu_km" / str(gpu) / A / "weight" for gpu in (0, 1))
    first.write_text("")
    second.unlink()
    second.symlink_to("/dev/full")

    assert run("set", A, "--weight", "4") == 1
    assert first.read_text() == "6\n"
    assert "nothing was changed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "status", "reason"),
    [
        pytest.param(["set", "0a", "--weight", "4"], 2, "'0a' means 2 instances; there are: 0a1b2c3d4e5f, 0affffffffff", id="several"),
        pytest.param(["set", "fff", "--weight", "4"], 2, "'fff' means 0 instances", id="none"),
        pytest.param(["set", B, "--weight", "4", "--gpu", "1"], 2, "no share of GPU 1; it has of 0", id="another GPU"),
        pytest.param(["set", B], 2, "say what: --mem, --weight or --highprio", id="nothing to change"),
    ],
)  # fmt: skip
def test_a_change_that_means_nothing(
    run: Run, capsys: pytest.CaptureFixture[str], words: list[str], status: int, reason: str
) -> None:
    assert run(*words) == status
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["--watch=0"],
        ["--watch=often"],
        ["--unknown"],
        ["set"],
        ["set", B, "--weight", "26"],
        ["set", B, "--highprio", "2"],
        ["set", B, "--mem", "4G"],
        ["list"],
    ],
)
def test_usage(run: Run, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        run(*words)

    assert raised.value.code == 2
    assert "cgpu-smi" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["set", B, "--weight", "4"]])
def test_without_the_module(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert smi.main([*words, "--proc-root", str(tmp_path)]) == 1
    assert "the kernel module cgpu_km is not loaded" in capsys.readouterr().err
