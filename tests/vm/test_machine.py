# SPDX-License-Identifier: Apache-2.0
"""The bench itself, on a machine without a driver: what the other tests rely on when they believe a result."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.vm.bench import PROJECT, Choice, hardware
from tests.vm.errors import BenchError, GuestCrashError
from tests.vm.hardware import command_line
from tests.vm.kernels import build_modules, fetch
from tests.vm.machine import Machine, Result
from tests.vm.programs import compile_c

BARE = Choice(branch="none")
bare = pytest.mark.parametrize("vm", [pytest.param(BARE, id="bare machine")], indirect=True, scope="module")


@bare
@pytest.mark.parametrize(
    ("script", "want"),
    [
        pytest.param("echo out; echo err >&2; exit 7", Result("out\n", "err\n", 7), id="output, errors and code apart"),
        pytest.param("kill -9 $$", Result("", "", 137), id="death by a signal is 128 and its number"),
        pytest.param("#!/usr/bin/python3\nprint(6 * 7)", Result("42\n", "", 0), id="the first line names the program"),
        pytest.param(
            "sleep 1000 & echo started", Result("started\n", "", 0), id="a daemon that holds the pipe is not waited for"
        ),
        pytest.param(
            "head -c 300000 /dev/zero | tr '\\0' x", Result("x" * 300000, "", 0), id="much output arrives whole"
        ),
        pytest.param(
            "[ $(id -u) = 0 ] && [ -c /dev/kmsg ] && [ -e /sys/fs/cgroup/cgroup.procs ]",
            Result("", "", 0),
            id="root, devices, cgroup v2",
        ),
        pytest.param(
            "python3 -c 'import grpc, msgspec, cgpu; print(cgpu.__file__)'",
            Result("/opt/project/cgpu/__init__.py\n", "", 0),
            id="the working tree and its dependencies import",
        ),
    ],
)
def test_a_script_leaves_its_output_and_code(vm, script, want):
    assert want == vm.run(script)


@bare
def test_files_go_in_and_come_out(vm):
    content = bytes(range(256)) * 5000
    vm.put("/tmp/folder/file", content, mode=0o750)

    assert vm.run("stat -c %a /tmp/folder/file").stdout == "750\n"
    assert content == vm.get("/tmp/folder/file")
    with pytest.raises(BenchError, match="reading /none: .*No such file"):
        vm.get("/none")


@bare
def test_output_is_streamed_and_scripts_run_side_by_side(vm):
    seen = []
    vm.run("rm -f /tmp/fifo; mkfifo /tmp/fifo").checked()
    first = vm.spawn("echo ready; read -r word < /tmp/fifo; echo $word", sinks=(seen.append, None))

    vm.run("echo go > /tmp/fifo", timeout=60).checked()

    assert vm.wait(first, timeout=60) == Result("ready\ngo\n", "", 0)
    assert b"".join(seen) == b"ready\ngo\n"


@bare
def test_a_script_that_takes_too_long_is_killed_and_the_machine_lives(vm):
    slow = vm.spawn("rm -f /tmp/begun; echo begun; touch /tmp/begun; sleep 1000")
    vm.run("until [ -e /tmp/begun ]; do sleep 0.1; done", timeout=60).checked()

    with pytest.raises(BenchError, match=r"killed after 1 s; its output ends with:\nbegun"):
        vm.wait(slow, timeout=1)

    assert vm.run("true").code == 0


@bare
def test_a_program_compiled_on_the_host_runs(vm, tmp_path):
    (tmp_path / "hello.c").write_text('#include <stdio.h>\nint main(void) { puts("hello"); return 3; }\n')
    vm.put("/tmp/hello", compile_c("hello", [tmp_path / "hello.c"]))

    assert vm.run("/tmp/hello") == Result("hello\n", "", 3)


@bare
def test_docker_podman_and_both_runtimes_start_containers(vm):
    vm.run("start-docker").checked()

    assert vm.run("docker run --rm busybox echo from runc").stdout == "from runc\n"
    assert vm.run("docker run --rm --runtime crun busybox echo from crun").stdout == "from crun\n"


@pytest.mark.parametrize(
    ("parameter", "words"),
    [
        pytest.param("complain=1", "complain: as asked", id="a warning"),
        pytest.param("overrun=1", "Right Redzone overwritten", id="a write behind an allocation"),
    ],
)
def test_a_complaint_of_the_kernel_ends_the_machine_with_the_kernels_words(vm_pool, parameter, words):
    vm = vm_pool.get(BARE)
    vm.put("/tmp/complain.ko", build_modules(fetch("6.1"), Path(__file__).parent / "data/complain") / "complain.ko")
    vm.run("insmod /tmp/complain.ko; rmmod complain").checked()

    with pytest.raises(GuestCrashError, match=words):
        vm.run(f"insmod /tmp/complain.ko {parameter}; sleep 1; echo done").checked()

    assert not vm.alive
    assert vm_pool.get(BARE).run("echo back").stdout == "back\n"


@pytest.mark.parametrize(
    ("setting", "want"),
    [
        pytest.param({"BRANCH": "440"}, "driver branch '440' is unknown", id="branch"),
        pytest.param({"CARDS": "T4,T5"}, "card 'T5' is unknown", id="card"),
        pytest.param({"KERNEL": "4.4"}, "kernel '4.4' is unknown", id="kernel"),
    ],
)
def test_vm_run_refuses_what_there_is_not(tmp_path, setting, want):
    (tmp_path / "script").write_text("true\n")

    done = vm_run(tmp_path / "script", setting)

    assert done.returncode == 125
    assert want in done.stderr


def vm_run(script, settings):
    return subprocess.run(
        [sys.executable, "-m", "tests.vm.run", script],
        env={**os.environ, **settings},
        cwd=PROJECT,
        capture_output=True,
        text=True,
    )


def test_vm_run_passes_output_and_exit_code_on(tmp_path):
    (tmp_path / "script").write_text("nvidia-smi -L; exit 7\n")

    done = vm_run(tmp_path / "script", {"BRANCH": "450", "CARDS": "T4,V100", "KERNEL": "6.12"})

    assert done.returncode == 7
    assert "vm-run: script exit 7" in done.stderr
    assert [line.split(" (")[0] for line in done.stdout.splitlines()] == [
        "GPU 0: Tesla T4",
        "GPU 1: Tesla V100-SXM2-16GB",
    ]


def test_a_machine_that_dies_before_its_first_word_is_booted_once_more(tmp_path, monkeypatch, capsys):
    hardware_ = hardware(BARE, tmp_path)
    machine = Machine(replace(hardware_, append="init=/none rdinit=/none"), tmp_path)
    lines = []

    def once(given, folder):
        lines.append(command_line(given if not lines else hardware_, folder))
        return lines[-1]

    monkeypatch.setattr("tests.vm.machine.command_line", once)
    with machine:
        assert machine.run("echo up").stdout == "up\n"
    assert len(lines) == 2
    assert re.search("booted once more: .*Kernel panic", capsys.readouterr().err, re.DOTALL)
