# SPDX-License-Identifier: Apache-2.0
"""Which GPUs a document gives, by each of the ways in which Docker, Podman and NVIDIA's runtime say it."""

from typing import Any

import pytest

from cgpu.core.errors import ContainerError
from cgpu.core.names import ENV_VISIBLE_DEVICES
from cgpu.runtime.choose import asks_for_gpus, chosen_gpus, env_of, is_kubernetes
from tests.runtime.documents import A10, CLIENTS_HOOK, HOOK, MAJORS, NULL, document, node

PODMANS = {"io.container.manager": "libpod", "io.kubernetes.cri-o.TTY": "false", "io.kubernetes.cri-o.Created": "x"}


def visible(text: str) -> dict[str, Any]:
    """A document with NVIDIA_VISIBLE_DEVICES."""
    return document({ENV_VISIBLE_DEVICES: text})


def named_by_mount(name: str) -> dict[str, Any]:
    """A document whose GPUs are named by NVIDIA's folder of names."""
    mount = {"destination": f"/var/run/nvidia-container-devices/{name}", "source": "/dev/null", "type": "bind"}
    return document({ENV_VISIBLE_DEVICES: "void"}, mounts=[mount])


@pytest.mark.parametrize(
    ("spec", "indices"),
    [
        pytest.param(document(), [], id="nothing names a GPU"),
        pytest.param(visible(""), [], id="empty is unset"),
        pytest.param(visible("none"), [], id="none"),
        pytest.param(visible("void"), [], id="void"),
        pytest.param(visible("all"), [0, 1, 2, 3], id="all"),
        pytest.param(visible("2"), [2], id="an index"),
        pytest.param(visible("2,0"), [0, 2], id="in the order of the driver"),
        pytest.param(visible("GPU-1,gpu-3"), [1, 3], id="UUIDs"),
        pytest.param(visible("1,GPU-1"), [1], id="a card named twice"),
        pytest.param(visible("nvidia.com/gpu=2"), [2], id="a qualified CDI name"),
        pytest.param(visible("runtime.nvidia.com/gpu=all"), [0, 1, 2, 3], id="NVIDIA's own CDI name"),
        pytest.param(document({ENV_VISIBLE_DEVICES: "1"}, hooks={"prestart": [HOOK]}), [1], id="Docker --gpus, hook"),
        pytest.param(document(devices=[NULL, node("/dev/nvidia0", 195, 0)]), [3], id="a node, by minor"),
        pytest.param(
            document({ENV_VISIBLE_DEVICES: "all"}, devices=[node("/dev/nvidia2", 195, 2), node("/dev/nvidiactl", 195, 255)]),
            [1],
            id="nodes win over the variable",
        ),
        pytest.param(document(devices=[node("/dev/nvidiactl", 195, 255)]), [], id="nvidiactl is no GPU"),
        pytest.param(document(devices=[node("/dev/nvidia1", 7, 1)]), [], id="a foreign device by that name"),
        pytest.param(named_by_mount("0"), [0], id="NVIDIA's folder of names"),
        pytest.param(document({ENV_VISIBLE_DEVICES: "all"}, hooks={"prestart": [CLIENTS_HOOK]}), [1, 2], id="ctr --gpus, containerd 1.6"),
        pytest.param(document(hooks={"createRuntime": [CLIENTS_HOOK], "poststop": None}), [1, 2], id="nerdctl --gpus, containerd 2"),
        pytest.param(named_by_mount("cdi/nvidia.com/gpu/1"), [1], id="a CDI name in that folder"),
    ],
)  # fmt: skip
def test_gpus_of_a_document(spec: dict[str, Any], indices: list[int]) -> None:
    found = chosen_gpus(spec, A10, MAJORS)

    assert [gpu.ordinal for gpu in found] == indices
    assert asks_for_gpus(spec, MAJORS) == bool(indices)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        pytest.param(visible("7"), r"NVIDIA_VISIBLE_DEVICES=7: must be .*; this machine has 0 \(GPU-0\), 1", id="no such index"),
        pytest.param(visible("GPU-none"), "NVIDIA_VISIBLE_DEVICES=GPU-none: must be", id="no such UUID"),
        pytest.param(visible("MIG-1"), "NVIDIA_VISIBLE_DEVICES=MIG-1: MIG devices cannot be shared", id="a MIG UUID"),
        pytest.param(visible("0:1"), "NVIDIA_VISIBLE_DEVICES=0:1: MIG devices cannot be shared", id="a MIG index"),
        pytest.param(document(devices=[node("/dev/nvidia9", 195, 9)]), "/dev/nvidia9 was given", id="a node without card"),
    ],
)  # fmt: skip
def test_a_name_that_no_card_has(spec: dict[str, Any], reason: str) -> None:
    with pytest.raises(ContainerError, match=reason):
        chosen_gpus(spec, A10, MAJORS)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(document(), False, id="Docker"),
        pytest.param(document(annotations={"io.kubernetes.cri.container-name": "x"}), True, id="containerd"),
        pytest.param(document(annotations={"io.kubernetes.container.name": "x"}), True, id="CRI-O"),
        pytest.param(document(annotations={"org.example": "x"}), False, id="a user's annotation"),
        pytest.param(document(annotations=PODMANS), False, id="Podman, which writes some of CRI-O's"),
        pytest.param(document(annotations=PODMANS | {"io.kubernetes.cri-o.SandboxID": "x"}), False, id="Podman, in a pod of its own"),
        pytest.param(document(annotations=PODMANS | {"io.kubernetes.pod.uid": "x"}), True, id="a pod that names Podman"),
        pytest.param(document(annotations={"nerdctl/name": "x", "io.containerd.image.config.stop-signal": "15"}), False, id="nerdctl"),
        pytest.param(document(linux={"cgroupsPath": "system.slice:docker:0123"}), False, id="Docker, systemd's names"),
        pytest.param(document(linux={"cgroupsPath": "kubepods-pod1.slice:cri-containerd:0"}), True, id="a kubelet's, systemd's names"),
        pytest.param(document(linux={"cgroupsPath": "/kubepods/besteffort/pod1/x"}), True, id="a kubelet's cgroup"),
    ],
)  # fmt: skip
def test_containers_that_a_kubelet_made(spec: dict[str, Any], expected: bool) -> None:
    assert is_kubernetes(spec) == expected


def test_of_a_variable_that_is_written_twice_the_last_counts() -> None:
    assert env_of({"process": {"env": ["A=1", "B", "A=2=3"]}}) == {"A": "2=3", "B": ""}
