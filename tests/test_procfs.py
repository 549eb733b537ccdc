# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

from cgpu.core.errors import UnavailableError
from cgpu.procfs import CgpuProc, Instance, parse_instance

LINE = "0a1b2c3d4e5f gpu=0 inst=3 mem=6442450944 used=1048576 weight=6 highprio=1 busy_ns=77 oom=2 dev=240:3 ctl=240:1027 uvm=241:3"


def make_tree(root: Path) -> CgpuProc:
    """A loaded module with GPU 0 and 2 and one instance."""
    for name in ("0", "2", "0/0a1b2c3d4e5f"):
        (root / "cgpu_km" / name).mkdir(parents=True)
    for name, text in {"version": "1.0.0\n", "inst_ctl": f"{LINE}\n", "0/policy": "1\n", "0/max_inst": "20\n"}.items():
        (root / "cgpu_km" / name).write_text(text)
    for name in ("memsize", "weight"):
        (root / "cgpu_km" / "0" / "0a1b2c3d4e5f" / name).write_text("")
    return CgpuProc(root)


def test_a_line_of_inst_ctl_is_read() -> None:
    assert parse_instance(LINE) == Instance(
        id="0a1b2c3d4e5f", gpu=0, inst=3, mem=6 << 30, used=1 << 20, weight=6, highprio=1, busy_ns=77, oom=2,
        dev=(240, 3), ctl=(240, 1027), uvm=(241, 3),
    )  # fmt: skip


def test_keys_of_a_newer_module_are_left_out() -> None:
    assert parse_instance(f"{LINE} colour=red") == parse_instance(LINE)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("0a1b2c3d4e5f gpu=0", id="keys are missing"),
        pytest.param(LINE.replace("mem=6442450944", "mem=much"), id="no number"),
        pytest.param(LINE.replace("dev=240:3", "dev=240"), id="half a device number"),
    ],
)
def test_a_line_that_cannot_be_read_is_shown(line: str) -> None:
    with pytest.raises(UnavailableError, match="0a1b2c3d4e5f gpu=0"):
        parse_instance(line)


def test_what_the_module_shows(tmp_path: Path) -> None:
    proc = make_tree(tmp_path)

    assert (proc.version(), proc.gpus()) == ("1.0.0", {0, 2})
    assert [row.id for row in proc.instances()] == ["0a1b2c3d4e5f"]
    assert proc.get_gpu(0, "max_inst") == 20


def test_commands_are_one_write_each(tmp_path: Path) -> None:
    proc = make_tree(tmp_path)
    control = tmp_path / "cgpu_km" / "inst_ctl"
    control.write_text("")

    proc.create("0a1b2c3d4e5f", 2, 6 << 30, weight=6, highprio=True)
    assert control.read_text() == "create 0a1b2c3d4e5f gpu=2 mem=6442450944 weight=6 highprio=1\n"
    control.write_text("")
    proc.create("0a1b2c3d4e5f", 0, 1)
    assert control.read_text() == "create 0a1b2c3d4e5f gpu=0 mem=1\n"
    control.write_text("")
    proc.destroy("0a1b2c3d4e5f")
    assert control.read_text() == "destroy 0a1b2c3d4e5f\n"
    proc.set_gpu(0, "policy", 3)
    proc.set_instance(0, "0a1b2c3d4e5f", "weight", 12)
    assert (tmp_path / "cgpu_km" / "0" / "policy").read_text() == "3\n"
    assert (tmp_path / "cgpu_km" / "0" / "0a1b2c3d4e5f" / "weight").read_text() == "12\n"


def test_a_module_that_is_not_loaded(tmp_path: Path) -> None:
    proc = CgpuProc(tmp_path)

    assert (proc.version(), proc.gpus()) == (None, frozenset())
    with pytest.raises(UnavailableError, match=r"inst_ctl: No such file .*there is no such instance or GPU"):
        proc.instances()


def test_the_kernels_refusal_names_command_and_meaning(tmp_path: Path) -> None:
    proc = make_tree(tmp_path)
    full = tmp_path / "cgpu_km" / "inst_ctl"
    full.unlink()
    full.symlink_to("/dev/full")  # every write to it answers ENOSPC

    with pytest.raises(UnavailableError, match=r"'create 0a1b2c3d4e5f gpu=0 mem=1' was refused: .*no free instance"):
        proc.create("0a1b2c3d4e5f", 0, 1)


def test_an_id_that_could_smuggle_a_command_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="must be 12 hex digits"):
        make_tree(tmp_path).create("a\ndestroy b", 0, 1)


def test_a_value_that_is_no_number_is_shown(tmp_path: Path) -> None:
    proc = make_tree(tmp_path)
    (tmp_path / "cgpu_km" / "0" / "policy").write_text("one")

    with pytest.raises(UnavailableError, match="'one' is no number"):
        proc.get_gpu(0, "policy")
