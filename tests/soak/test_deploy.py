# SPDX-License-Identifier: Apache-2.0
"""The scripts of deploy/ on a real Debian: installed, upgraded below a running container, taken away; verify-hardware.sh."""

from typing import Final

import pytest

from tests.docker.test_docker import T4
from tests.kmod.containers import output
from tests.kmod.test_load import BACK, PREPARE
from tests.kmod.test_upgrade import core_of
from tests.vm.fixtures import vm, vm_pool
from tests.vm.machine import Machine

__all__ = ["vm", "vm_pool"]
NEXT: Final = "1.0.1"
HOST: Final = f"""
. /opt/project/tests/docker/guest.sh
modules=/lib/modules/$(uname -r)
mkdir -p /run/dkms /tmp/upper /tmp/work /tmp/next /etc/docker
mount -t overlay -o lowerdir=$modules,upperdir=/tmp/upper,workdir=/tmp/work overlay $modules
cp /opt/project/tests/soak/dkms.sh /usr/local/sbin/dkms; chmod 755 /usr/local/sbin/dkms
cp -R /opt/project/cgpu /opt/project/kmod /opt/project/deploy /tmp/next
sed -i 's/"1.0.0"/"{NEXT}"/' /tmp/next/kmod/dkms.conf /tmp/next/kmod/cgpu.h
printf '{{"bridge":"none",  "iptables": false}}' > /etc/docker/daemon.json
rmmod $(awk '/^cgpu_core/ {{ print $1 }}' /proc/modules) cgpu_km
# key.json is dockerd's own
host() {{ (cd /; find etc usr/local opt/cgpu usr/src var/log/cgpu* "$modules" -type f ! -name key.json -exec sha256sum {{}} +; find etc usr/local opt/cgpu usr/src "$modules" -type l -printf '%p %l\\n' -o -type d -print) 2> /dev/null | sort; }}
"""
SCRIPT: Final = """
host > /tmp/before
sh /opt/project/deploy/docker/install.sh --dry-run > /tmp/dry && host | cmp - /tmp/before && echo the dry run changed nothing
sh /opt/project/deploy/docker/install.sh > /tmp/said || cat /tmp/said
cat /proc/cgpu_km/version
start-docker > /dev/null; run one 6 15; memory_of one
sh /opt/project/deploy/docker/upgrade.sh 2>&1 | sed -n "s/$(id_of one)/ONE/p"
sh /opt/project/deploy/docker/uninstall.sh 2>&1 | sed -n "s/$(id_of one)/ONE/p"
sh /tmp/next/deploy/docker/upgrade.sh --hot > /tmp/said || cat /tmp/said
cat /proc/cgpu_km/version; memory_of one
end_all; while [ -s /proc/cgpu_km/inst_ctl ]; do sleep 0.2; done
sh /opt/project/deploy/docker/upgrade.sh > /tmp/said || cat /tmp/said
cat /proc/cgpu_km/version
sh /opt/project/deploy/docker/uninstall.sh > /tmp/said || cat /tmp/said
[ -e /proc/cgpu_km ] || echo not loaded
host | diff /tmp/before - && echo as it was found
docker run --rm --network none busybox echo docker works
"""

# no scope: the first test ends its machine, the second wants another
on_t4 = pytest.mark.parametrize("vm", [T4], indirect=True, ids=["535"])


@on_t4
@pytest.mark.timeout(1200)
def test_a_host_from_installation_to_its_end(vm: Machine, vm_pool: object) -> None:
    """Cold upgrades and the end are refused while a container has a share; nothing of ours is left at the end."""
    vm.run("mkdir -p /run/dkms").checked()
    core = core_of(NEXT)
    vm.put(f"/run/dkms/{core.name}", core)
    result = vm.run(HOST + SCRIPT, timeout=1000)
    vm_pool.discard()  # type: ignore[attr-defined]

    assert result.stdout.splitlines() == [
        "the dry run changed nothing",
        "1.0.0", "0MiB /  6043MiB",
        "upgrade.sh: containers have shares: ONE ; stop them (docker ps, docker stop), or say --hot",
        "uninstall.sh: containers have shares: ONE ; end them first (docker ps, docker rm -f)",
        NEXT, "0MiB /  6043MiB",
        "1.0.0", "not loaded", "as it was found", "docker works",
    ], result.stdout + result.stderr  # fmt: skip


@on_t4
@pytest.mark.timeout(1200)
def test_the_report_of_a_simulated_card(vm: Machine) -> None:
    """Every check holds, the trace and the card's figures are there, and nothing is left behind."""
    result = output(
        vm,
        f"""{PREPARE} sh /opt/project/deploy/verify-hardware.sh /tmp/report; echo $?
ls /proc/cgpu_km 2>&1 | grep -o 'No such file'; ls /run/cgpu; {BACK}""",
        timeout=1000,
    )
    report = vm.get("/tmp/report").decode()
    sections = [line[3:] for line in report.splitlines() if line.startswith("== ")]

    assert "FAIL" not in result, result + report[-4000:]
    assert result.count("PASS: ") == 6, result
    assert result.splitlines()[-2:] == ["0", "No such file"]
    assert report.splitlines()[1] == "SIMULATED: the driver is a simulator, nothing here is about silicon"
    assert sections == [
        "machine", "frame buffer, before", "kernel module",
        "calls of a CUDA program on the card", "calls of a CUDA program in an instance",
        "memory limit: 3777 of 15109 MiB", "frame buffer, after", "compute: weights 1 and 2", "kernel's log",
    ]  # fmt: skip
    assert report.count("ioctl(") > 200
