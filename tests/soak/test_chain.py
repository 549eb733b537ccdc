# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's own runtime above ours, built from its Go module, and NVIDIA's own list of the driver's files."""

import pytest

from tests.docker.host import output
from tests.vm.bench import Choice
from tests.vm.fixtures import vm, vm_pool
from tests.vm.machine import Machine

__all__ = ["vm", "vm_pool"]
HOST = Choice("535", "T4", total_mib="15109", hosts=True)
on_host = pytest.mark.parametrize("vm", [HOST], indirect=True, ids=["535"], scope="module")
CHAIN = """
set -e
. /opt/project/tests/docker/chain.sh
[ -e /var/run/cdi/nvidia.yaml ] || nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml 2> /tmp/said || cat /tmp/said
"""


@on_host
def test_below_nvidias_runtime_a_container_has_its_slice_in_every_mode(vm: Machine) -> None:
    """Its runtime puts the genuine nodes in; ours takes them and their rules out again."""
    text = output(
        vm,
        f"""{CHAIN}
nvidia_runtime jit-cdi; nvidia_runtime cdi
docker_knows nvidia-jit-cdi nvidia-cdi
docker run --rm --network none --runtime nvidia-cdi $ALL $SHARE busybox $SEES
docker run --rm --network none --runtime nvidia-jit-cdi --gpus all $SHARE busybox sh -c "$SEES
	ls /dev | grep -c '^nvidia[0-9]'; mknod /tmp/mine c 195 0; cat /tmp/mine 2>&1 | sed 's/.*: //'"
docker_forgets
tail -n 2 /var/log/cgpu-runtime.log | cut -d ' ' -f 3-
""",
    )
    assert text.splitlines() == [
        "6043 MiB", "6043 MiB", "1", "Operation not permitted",
        "6043 MiB of GPU 0", "6043 MiB of GPU 0",
    ]  # fmt: skip


@on_host
def test_without_it_the_files_of_its_cdi_spec_are_mounted_below_crun_as_well(vm: Machine) -> None:
    """A library that our own table knows stays away when the spec leaves it out."""
    text = output(
        vm,
        f"""{CHAIN}
sed -i '/hostPath.*nvvm/d' /var/run/cdi/nvidia.yaml
below crun docker run --rm --network none $ALL $SHARE busybox sh -c "$SEES; ls /usr/lib/x86_64-linux-gnu | grep nvvm || echo as listed"
rm /var/run/cdi/nvidia.yaml
""",
    )
    assert text.splitlines() == ["6043 MiB", "as listed"]
