# SPDX-License-Identifier: Apache-2.0
"""A host with Docker in the virtual machine: scripts that begin with `guest.sh` and end with no container left."""

from typing import Final

from tests.vm.machine import Machine, Result

BEGIN: Final = """
# Docker waits two seconds for the end of a container's runtime, and then goes on without it
ended() {
	local n
	for n in $(seq 300); do
		[ ! -s /proc/cgpu_km/inst_ctl ] && ! ls /run/cgpu 2> /dev/null | grep -qv '^cards.json$' && return
		sleep 0.2
	done
	echo "instances stay: $(cat /proc/cgpu_km/inst_ctl; ls /run/cgpu)" >&2
}
. /opt/project/tests/docker/guest.sh
{ [ -x /opt/cgpu/bin/cgpu ] || install_cgpu; kill -0 $(cat /var/run/docker.pid 2> /dev/null) 2> /dev/null || start-docker; end_all; ended; } > /dev/null
"""


def attempt(vm: Machine, script: str, timeout: float = 400) -> Result:
    """What a script does on the host, which has cgpu and a running Docker without containers."""
    return vm.run(f"{BEGIN}\n{script}\ncode=$?; end_all; ended; exit $code", timeout=timeout)


def output(vm: Machine, script: str, timeout: float = 400) -> str:
    """What a script prints; it must succeed."""
    result = attempt(vm, script, timeout)
    text = result.stdout + result.stderr
    assert result.code == 0, text
    return text
