# SPDX-License-Identifier: Apache-2.0
"""Other hosts than Debian 12's Docker: containerd's ctr, Podman, a Docker with CDI names, control groups of the older layout."""

import pytest

from tests.docker.host import output
from tests.soak.test_chain import CHAIN, on_host
from tests.vm.bench import Choice
from tests.vm.fixtures import Pool, vm, vm_pool
from tests.vm.machine import Machine

__all__ = ["vm", "vm_pool"]
V1 = Choice("535", "T4", total_mib="15109", append="bench.cgroup=v1")
SYSTEMD = Choice(
    "535", "T4", total_mib="15109", append="bench.init=/lib/systemd/systemd systemd.unit=bench.service apparmor=0"
)


@on_host
def test_containerds_own_client(vm: Machine) -> None:
    """Its --gpus leaves a hook that would bring genuine nodes; what a kubelet made is not ours to judge by its variables."""
    text = output(
        vm,
        f"""{CHAIN}
ctr images import /opt/images/busybox.tar > /dev/null
printf '#!/bin/sh\\necho called > /tmp/called\\n' > /usr/local/bin/nvidia-container-cli; chmod 755 /usr/local/bin/nvidia-container-cli
run="ctr run --rm --runc-binary $WRAPPER ${{SHARE//-e /--env }}"
image=docker.io/library/busybox:latest
$run --gpus 0 --cgroup /system.slice:docker:web $image web $SEES
below crun $run --env NVIDIA_VISIBLE_DEVICES=0 $image web $SEES
/opt/docker/$run --env NVIDIA_VISIBLE_DEVICES=all --annotation io.kubernetes.cri.sandbox-id=x $image web ls /dev | grep nvidia || echo nothing
ls /tmp/called 2> /dev/null || echo no hook
rm /usr/local/bin/nvidia-container-cli
""",
    )
    assert text.splitlines() == ["6043 MiB", "6043 MiB", "nothing", "no hook"]


@on_host
def test_podman(vm: Machine) -> None:
    text = output(
        vm,
        f"""{CHAIN}
podman load -q -i /opt/images/busybox.tar > /dev/null
podman() {{ command podman --cgroup-manager cgroupfs --runtime $WRAPPER "$@"; }}
podman run -d --name one --network none --device nvidia.com/gpu=all $SHARE busybox sleep 100000 > /dev/null
podman exec one $SEES
cut -d ' ' -f 1,2,4 /proc/cgpu_km/inst_ctl | sed "s/$(podman ps -q)/ONE/"
podman rm -f -t 0 one > /dev/null
podman run --rm --network none $ALL -e ALIYUN_COM_GPU_MEM_CONTAINER=six busybox true 2>&1 || true
""",
    )
    seen, instance, refused = text.splitlines()
    assert (seen, instance) == ("6043 MiB", f"ONE gpu=0 mem={6043 << 20}")
    assert "cgpu: ALIYUN_COM_GPU_MEM_CONTAINER=six: 'six' is no whole number of GiB" in refused


@on_host
def test_a_docker_with_cdi_names_that_is_killed_in_the_middle_of_a_creation(vm: Machine) -> None:
    """The second container's creation stands still while its daemon dies; the next daemon takes the container away."""
    text = output(
        vm,
        f"""{CHAIN}
newer_docker start
docker load -q -i /opt/images/busybox.tar > /dev/null
docker run --rm --network none --device nvidia.com/gpu=all $SHARE busybox $SEES
docker version --format '{{{{.Server.Version}}}}' | cut -d . -f 1,2
cat > /tmp/slow <<- 'END'
	#!/bin/sh
	case "$*" in *create*) touch /tmp/reached; while [ ! -e /tmp/go ]; do sleep 0.1; done;; esac
	exec runc "$@"
END
chmod 755 /tmp/slow; rm -f /tmp/reached /tmp/go
creating() {{ docker run -d --network none --device nvidia.com/gpu=all $SHARE busybox sleep 100000 > /dev/null 2>&1 & }}
killing() {{
	creating
	until [ -e /tmp/reached ]; do sleep 0.1; done
	wc -l < /proc/cgpu_km/inst_ctl
	kill -9 $(cat /run/newer/pid); tail --pid=$(cat /run/newer/pid) -f /dev/null
	touch /tmp/go
}}
below /tmp/slow killing
newer_docker start
docker run --rm --network none --device nvidia.com/gpu=0 $SHARE busybox $SEES
docker ps -aq | xargs -r docker rm -f > /dev/null
ended
wc -l < /proc/cgpu_km/inst_ctl
newer_docker stop
rm /var/run/cdi/nvidia.yaml
""",
    )
    assert text.splitlines() == ["6043 MiB", "26.1", "1", "6043 MiB", "0"]


@pytest.mark.parametrize("vm", [pytest.param(V1, id="cgroup v1")], indirect=True)
def test_cgroup_v1_docker_over_runc_and_crun_and_podman(vm: Machine) -> None:
    """One hierarchy a controller, device rules without BPF: genuine nodes made inside stay shut there too."""
    text = output(
        vm,
        """
. /opt/project/tests/docker/chain.sh
stat -f -c %T /sys/fs/cgroup
inside="$SEES; mknod /tmp/mine c 195 0; cat /tmp/mine 2>&1 | sed 's/.*: //'"
container() { "$@" run --rm --network none --cap-add MKNOD $ALL $SHARE busybox sh -c "$inside"; }
container docker
below crun container docker
podman load -q -i /opt/images/busybox.tar > /dev/null
container podman --cgroup-manager cgroupfs --runtime $WRAPPER
""",
    )
    assert text.splitlines() == ["tmpfs", *["6043 MiB", "Operation not permitted"] * 3]


# dockerd looks for the hook that --gpus needs when it starts
STARTED = """
. /opt/project/tests/docker/guest.sh
[ -x /opt/cgpu/bin/cgpu ] || install_cgpu; systemctl start docker; docker load -q -i /opt/images/busybox.tar
"""
on_systemd = pytest.mark.parametrize("vm", [pytest.param(SYSTEMD, id="systemd")], indirect=True, scope="module")


@on_systemd
def test_systemd_holds_the_control_groups(vm: Machine) -> None:
    """It takes the device rules from runc, and sets its own copy of them again at every reload and update."""
    vm.run(STARTED, timeout=400).checked()
    text = output(
        vm,
        """
. /opt/project/tests/docker/chain.sh
docker info --format '{{.CgroupDriver}} {{.CgroupVersion}}'
run one 6 15 --cap-add MKNOD; memory_of one
systemctl daemon-reload; memory_of one
docker update --memory 300m --memory-swap 300m one > /dev/null; memory_of one
docker exec one sh -c 'mknod /tmp/mine c 195 0; cat /tmp/mine' 2>&1 | sed 's/.*: //'
docker rm -f one > /dev/null; ended; wc -l < /proc/cgpu_km/inst_ctl
""",
    )
    seen = "0MiB /  6043MiB"
    assert text.splitlines() == ["systemd 2", seen, seen, seen, "Operation not permitted", "0"], text


@on_systemd
def test_systemd_loads_the_module_before_docker(vm: Machine, vm_pool: Pool) -> None:
    """The unit that install.sh leaves, started as at a boot; DKMS is a stand-in."""
    vm.run(STARTED, timeout=400).checked()
    text = output(
        vm,
        """
modules=/lib/modules/$(uname -r)
mkdir -p /run/dkms /run/upper /run/work # in memory: under systemd /tmp lies on an overlay, on which no other can write
mount -t overlay -o lowerdir=$modules,upperdir=/run/upper,workdir=/run/work overlay $modules
cp /opt/project/tests/soak/dkms.sh /usr/local/sbin/dkms; chmod 755 /usr/local/sbin/dkms
rmmod $(awk '/^cgpu_core/ { print $1 }' /proc/modules) cgpu_km
sh /opt/project/deploy/docker/install.sh > /tmp/said 2>&1 || cat /tmp/said
systemctl is-enabled cgpu.service
systemctl show -p Before cgpu.service | grep -o docker.service
systemctl stop docker.socket docker; cgpu module unload > /dev/null
systemctl start cgpu.service docker; systemctl is-active cgpu.service
run one 6 15; memory_of one; docker rm -f one > /dev/null; ended
sh /opt/project/deploy/docker/uninstall.sh > /tmp/said 2>&1 || cat /tmp/said
ls /etc/systemd/system | grep cgpu || echo gone
""",
    )
    vm_pool.discard()

    assert text.splitlines() == ["enabled", "docker.service", "active", "0MiB /  6043MiB", "gone"], text
