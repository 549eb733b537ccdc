# SPDX-License-Identifier: Apache-2.0
"""The module in a virtual machine with the simulated driver, looked at through /proc, nvidia-smi and libcuda."""

import json
from typing import Final

import pytest

from tests.vm.bench import Choice
from tests.vm.machine import Machine

MIB: Final = 1 << 20
SHARE: Final = "cccccccccccc"
PREPARE: Final = f"""
set -e
cd /proc/cgpu_km
if [ -e 0/{SHARE} ]; then umount /run/cgpu/{SHARE} 2>/dev/null || :; echo "destroy {SHARE}" > inst_ctl; fi
"""
MOUNTED: Final = f"""
mkdir -p /run/cgpu/{SHARE}; mount -t cgpufs -o id={SHARE} cgpu /run/cgpu/{SHARE}
inside() {{ unshare -m bash -c "for f in /run/cgpu/{SHARE}/nvidia*; do mount --bind \\$f /dev/\\$(basename \\$f); done; $*"; }}
"""
LEAVE: Final = f'cd /; umount /run/cgpu/{SHARE}; echo "destroy {SHARE}" > /proc/cgpu_km/inst_ctl'
REFUSALS: Final = [
    pytest.param(
        f"create {SHARE} gpu=0 mem=1048576", "inst_ctl", "File exists", "has a share of GPU 0 already", id="twice"
    ),
    pytest.param(
        "create aaa gpu=0 mem=1125899906842624", "inst_ctl", "No space left", "ask less", id="more than the card"
    ),
    pytest.param("create aaa gpu=9 mem=1048576", "inst_ctl", "Invalid argument", "there is no GPU 9", id="no such GPU"),
    pytest.param("create aaa gpu=0 mem=0", "inst_ctl", "Invalid argument", "more than 0", id="no memory"),
    pytest.param("create aaa gpu=0 mem=1048576 weight=26", "inst_ctl", "Invalid argument", "within 1..25", id="weight"),
    pytest.param(
        "create a/b gpu=0 mem=1048576", "inst_ctl", "Invalid argument", "letters, digits", id="a name with a slash"
    ),
    pytest.param("make aaa", "inst_ctl", "Invalid argument", "say create", id="unknown command"),
    pytest.param("7", "0/policy", "Invalid argument", "policies", id="policy 7"),
    pytest.param("26", "0/max_inst", "Invalid argument", "1 to 25", id="26 instances"),
    pytest.param("10", "0/max_inst", "resource busy", "instances exist", id="max_inst while one exists"),
    pytest.param("19", "0/prio_ratio", "Invalid argument", "20 to 99", id="prio_ratio 19"),
    pytest.param("99", f"0/{SHARE}/weight", "Invalid argument", "free_weight", id="weight 99"),
    pytest.param("2", f"0/{SHARE}/highprio", "Invalid argument", "0 or 1", id="highprio 2"),
    pytest.param("word", f"0/{SHARE}/memsize", "Invalid argument", "a number is wanted", id="memsize word"),
    pytest.param("0", f"0/{SHARE}/memsize", "Invalid argument", "more than 0", id="memsize 0"),
    pytest.param(str(1 << 60), f"0/{SHARE}/memsize", "No space left", "that others do not have", id="memsize of 2^60"),
    pytest.param("1", "0/free_weight", "Permission denied", "it is read only", id="a file that is read only"),
    pytest.param("destroy aaa", "inst_ctl", "No such file", "there is no such instance", id="destroy of none"),
    pytest.param("create aaa gpu=0 mem=5x", "inst_ctl", "Invalid argument", "mem=5x is no NAME=NUMBER", id="no number"),
    pytest.param("create aaa mem=1048576", "inst_ctl", "Invalid argument", "there is no GPU -1", id="no GPU said"),
]


def output(vm: Machine, script: str) -> str:
    result = vm.run(script, timeout=300)
    text = result.stdout + result.stderr
    assert result.code == 0, text
    return text


@pytest.mark.parametrize(
    "vm",
    [
        pytest.param(Choice("450", kernel="6.12"), id="450 on Linux 6.12"),
        pytest.param(Choice("535"), id="535 on Linux 6.1"),
    ],
    indirect=True,
    scope="module",
)
def test_nvidia_smi_shows_the_limit(vm: Machine) -> None:
    text = output(
        vm, f'{PREPARE} echo "create {SHARE} gpu=0 mem={6043 * MIB}" > inst_ctl {MOUNTED} inside nvidia-smi; {LEAVE}'
    )
    assert "0MiB /  6043MiB" in text


def test_a_cuda_program_runs_within_its_share(vm: Machine) -> None:
    program = "python3 /opt/project/tests/nvsim/programs/everything.py"
    text = output(
        vm,
        f'{PREPARE} echo "create {SHARE} gpu=0 mem={6043 * MIB}" > inst_ctl {MOUNTED} inside {program}; cat inst_ctl; {LEAVE}',
    )
    facts = json.JSONDecoder().raw_decode(text[text.index("{") :])[0]
    false = [name for name, value in facts.items() if value is False]
    assert (facts["total_mib"], facts["totals_agree"], facts["too_much"], false) == (6043, True, True, [])
    assert f"{SHARE} gpu=0 inst=0 mem={6043 * MIB} used=0 " in text


@pytest.mark.parametrize(("words", "file", "error", "reason"), REFUSALS)
def test_refusals_have_an_error_and_a_reason(vm: Machine, words: str, file: str, error: str, reason: str) -> None:
    text = output(
        vm,
        f"""{PREPARE} echo "create {SHARE} gpu=0 mem={MIB}" > inst_ctl
dmesg -C; (echo "{words}" > {file}) 2>&1 && echo ACCEPTED; dmesg; echo "destroy {SHARE}" > inst_ctl""",
    )
    assert (error in text, reason in text, "ACCEPTED" in text) == (True, True, False), text


def test_a_mounted_instance_stays_and_the_module_too(vm: Machine) -> None:
    text = output(
        vm,
        f"""{PREPARE} echo "create {SHARE} gpu=0 mem={MIB}" > inst_ctl {MOUNTED}
(echo "destroy {SHARE}" > inst_ctl) 2>&1 || echo KEPT; rmmod cgpu_km 2>&1 || echo HELD; {LEAVE}; ls /proc/cgpu_km/0""",
    )
    assert ("KEPT" in text, "HELD" in text, SHARE in text.splitlines()) == (True, True, False), text


def test_a_gpus_thread_sleeps_while_no_instance_has_work(vm: Machine) -> None:
    """Instances exist, and a process of one has a device open: between two looks nothing has woken the thread up."""
    text = output(
        vm,
        f"""{PREPARE} echo "create {SHARE} gpu=0 mem={MIB}" > inst_ctl {MOUNTED}
exec 3<> /run/cgpu/{SHARE}/nvidiactl
turns() {{ awk '/ctxt/ {{ n += $2 }} END {{ print n }}' /proc/$(pgrep -x cgpu/0)/status; }}
for try in 1 2 3 4 5 6 7 8 9 10; do before=$(turns); sleep 1; [ $(turns) = $before ] && break; done
echo "woken $(($(turns) - before)) times"; exec 3>&-; {LEAVE}""",
    )
    assert "woken 0 times" in text


def test_weights_choose_policy_2_until_somebody_writes_one(vm: Machine) -> None:
    text = output(
        vm,
        f"""{PREPARE} rmmod cgpu_core_1_0_0 cgpu_km; load-cgpu; cd /proc/cgpu_km
cat 0/policy; echo "create {SHARE} gpu=0 mem={MIB} weight=2" > inst_ctl; cat 0/policy 0/free_weight
echo "destroy {SHARE}" > inst_ctl; cat 0/policy 0/free_weight""",
    )
    assert text.split() == ["1", "2", "18", "1", "20"]


@pytest.mark.parametrize("vm", [pytest.param(Choice(kernel="5.10"), id="Linux 5.10")], indirect=True, scope="module")
def test_an_old_kernel_is_refused_by_name(vm: Machine) -> None:
    """Its mappings cannot veto mprotect(), so that nothing there would be safe."""
    text = output(vm, "dmesg -C; load-cgpu 2>&1 && echo LOADED; dmesg; [ ! -e /proc/cgpu_km ] && echo NOTHING LEFT")
    assert "cgpu_km: this kernel has no vm_operations_struct.mprotect (Linux 5.11 and later)" in text
    assert ("LOADED" in text, "NOTHING LEFT" in text) == (False, True)
