# SPDX-License-Identifier: Apache-2.0
"""The front stays and cores change: below running containers, refused where it would not be safe."""

import json
from pathlib import Path
from typing import Final

import pytest

from tests.kmod.test_module import LEAVE, MIB, MOUNTED, PREPARE, SHARE, output
from tests.vm.bench import PROJECT, Choice
from tests.vm.kernels import build_modules, fetch
from tests.vm.machine import Machine

OTHER: Final = "1.0.1"
PROGRAM: Final = "/opt/project/tests/kmod/programs/busy.py"
CREATE: Final = f'echo "create {SHARE} gpu=0 mem={1024 * MIB}" > inst_ctl'
UPGRADES: Final = 10


def core_of(version: str, *flags: str) -> Path:
    """A core of another version, built from these sources."""
    name = f"cgpu_core_{version.replace('.', '_')}.ko"
    return build_modules(fetch(Choice().kernel), PROJECT / "kmod", f"CGPU_CORE_VERSION={version}", *flags) / name


@pytest.fixture(scope="module")
def other() -> Path:
    """A core of another version with the same layouts."""
    return core_of(OTHER)


def put(vm: Machine, core: Path) -> str:
    vm.put(f"/run/{core.name}", core)
    return f"/run/{core.name}"


def test_ten_upgrades_below_programs_that_allocate_and_launch(vm: Machine, other: Path) -> None:
    """No call fails, what is held stays charged, and `version` tells which core runs."""
    text = output(
        vm,
        f"""{PREPARE} {CREATE} {MOUNTED}
files=("{put(vm, other)}" "$(echo /opt/bench/modules/cgpu_core_*.ko)")
rm -f /tmp/end /tmp/busy*
for n in 1 2; do inside "exec python3 {PROGRAM} /tmp/end /tmp/busy$n" & jobs="$jobs $!"; done
until [ -s /tmp/busy1 ] && [ -s /tmp/busy2 ]; do kill -0 $jobs; sleep 0.1; done
ran=$(awk '/^core:/ {{ print $2 }}' upgrade)
for ((n = 0; n < {UPGRADES}; n++)); do
	file=${{files[n % 2]}}; name=$(basename $file .ko)
	insmod $file; echo $name > upgrade; rmmod $ran; ran=$name
	echo UPGRADE $(cat version) $(awk '/^(core|error):/ {{ print $2 }}' upgrade)
	before=$(cat /tmp/busy1); while [ "$(cat /tmp/busy1)" = $before ]; do kill -0 $jobs; sleep 0.1; done
	[ "$(sed 's/.* used=\\([0-9]*\\) .*/\\1/' inst_ctl)" -ge {2 * 64 * MIB} ]
done
touch /tmp/end; for job in $jobs; do wait $job; done
cat inst_ctl; {LEAVE}""",
    )
    versions = [line.split()[1:] for line in text.splitlines() if line.startswith("UPGRADE")]
    expected = [[OTHER, "cgpu_core_1_0_1", "none"], ["1.0.0", "cgpu_core_1_0_0", "none"]] * (UPGRADES // 2)
    assert versions == expected
    reports = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    assert [report["errors"] for report in reports] == [[], []]
    assert f"{SHARE} gpu=0 inst=0 mem={1024 * MIB} used=0 " in text


def test_what_runs_stays_while_an_instance_exists(vm: Machine) -> None:
    """A cold upgrade is refused, mounted or not; a core that is not there is refused by name."""
    text = output(
        vm,
        f"""{PREPARE} {CREATE}
dmesg -C; (echo cgpu_core_9_9_9 > upgrade) 2>&1 && echo ACCEPTED; dmesg; cat upgrade
rmmod cgpu_core_1_0_0 2>&1 || echo CORE STAYS; rmmod cgpu_km 2>&1 || echo FRONT STAYS
cat version; echo "destroy {SHARE}" > inst_ctl""",
    )
    assert ("No such file" in text, "ACCEPTED" in text) == (True, False)
    assert text.count("no core named 'cgpu_core_9_9_9' is loaded") == 2
    assert ("CORE STAYS" in text, "FRONT STAYS" in text, "1.0.0" in text.splitlines()) == (True, True, True), text


def test_without_a_core_there_are_no_gpus_and_no_instances(vm: Machine) -> None:
    text = output(
        vm,
        f"""{PREPARE} rmmod cgpu_core_1_0_0; cat version; [ ! -e 0 ] && echo NO GPU
dmesg -C; ({CREATE}) 2>&1 && echo ACCEPTED; dmesg; cd /; rmmod cgpu_km && echo GONE; load-cgpu; cat /proc/cgpu_km/version""",
    )
    assert text.splitlines()[:2] == ["none", "NO GPU"]
    assert "load the cgpu_core module of version 1.0.0" in text
    assert ("No such device" in text, "ACCEPTED" in text) == (True, False)
    assert text.splitlines()[-2:] == ["GONE", "1.0.0"]


def test_a_core_of_another_layout_is_refused_by_name(vm: Machine) -> None:
    core = core_of("1.0.2", "CFLAGS_MODULE=-DCGPU_LAYOUT=2")
    text = output(vm, f"{PREPARE} dmesg -C; insmod {put(vm, core)} 2>&1 && echo ACCEPTED; dmesg; cat version upgrade")
    assert "ACCEPTED" not in text
    assert "cgpu_core_1_0_2 has layout 2, this front 1" in text
    assert "1.0.0" in text.splitlines()
