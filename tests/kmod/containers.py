# SPDX-License-Identifier: Apache-2.0
"""Shell of the guest: instances, and programs that see what a container sees.

share ID GPU:MIB...      makes an instance with these shares and mounts its nodes on /run/cgpu/ID
unshare_all              ends every instance
inside ID COMMAND...     runs a command with pids of its own and a /dev that holds the instance's nodes and no others
unload                   takes the module out
within SECONDS COMMAND   runs a command until it succeeds
"""

from typing import Final

from tests.vm.machine import Machine

PROGRAMS: Final = "/opt/project/tests/kmod/programs"
MIB: Final = 1 << 20
HELPERS: Final = f"""
export PYTHONPATH="$PYTHONPATH:/opt/project/tests/nvsim/programs"
P={PROGRAMS}
share() {{
	local id=$1 pair; shift
	for pair; do echo "create $id gpu=${{pair%:*}} mem=$((${{pair#*:}} << 20))" > /proc/cgpu_km/inst_ctl || return; done
	mkdir -p /run/cgpu/$id; mount -t cgpufs -o id=$id cgpu /run/cgpu/$id
}}
unshare_all() {{
	local id; cd /
	for id in $(cut -d' ' -f1 /proc/cgpu_km/inst_ctl | sort -u); do
		umount /run/cgpu/$id 2> /dev/null
		within 60 sh -c 'echo "destroy $0" > /proc/cgpu_km/inst_ctl 2> /dev/null' $id || echo "$id stays"
	done
}}
inside() {{ local id=$1; shift; unshare --mount --propagation slave --pid --fork --kill-child --mount-proc sh -c '
	id=$1; shift
	mount --make-private /dev; mount -t tmpfs dev /mnt; mount --make-private /mnt; mkdir /mnt/shm; ln -s /proc/self/fd /mnt/fd
	for node in /dev/null /dev/zero /dev/random /dev/urandom /run/cgpu/$id/*; do
		: > /mnt/${{node##*/}}; mount --bind $node /mnt/${{node##*/}}
	done
	mount --move /mnt /dev; exec "$@"' sh "$id" "$@"; }}
hold() {{
	[ -p /tmp/end ] || {{ mkfifo /tmp/end; exec 9<> /tmp/end; }}
	: > /tmp/held; "$@" < /tmp/end > /tmp/held 9>&- & within 60 grep . /tmp/held
}}
let_go() {{ exec 9>&-; rm /tmp/end; wait; }}
unload() {{
	local module
	for module in $(awk '/^cgpu_core/ {{ print $1 }}' /proc/modules) cgpu_km; do rmmod $module || return; done
}}
within() {{ local end=$((SECONDS + $1)); shift; until "$@"; do [ $SECONDS -lt $end ] || return 1; sleep 0.1; done; }}
"""


def output(vm: Machine, script: str, timeout: float = 300) -> str:
    """What a script with the helpers prints; it must succeed, and every instance is ended afterwards."""
    result = vm.run(f"{HELPERS}\n{script}\ncode=$?; unshare_all; exit $code", timeout=timeout)
    text = result.stdout + result.stderr
    assert result.code == 0, text
    return text
