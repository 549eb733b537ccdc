# SPDX-License-Identifier: Apache-2.0
"""What happens before a container is created, by document and machine."""

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from cgpu.core.errors import CgpuError, UnavailableError
from cgpu.core.names import ENV_CONTAINER, ENV_DEV, ENV_DISABLE, ENV_HIGH_PRIO, ENV_VISIBLE_DEVICES, ENV_WEIGHT
from cgpu.runtime.arguments import Call, parse
from cgpu.runtime.create import STAND_IN, prepare
from tests.runtime.documents import HOOK, docker_cdi, document, node
from tests.runtime.fakes import Machine, lasting

ID = "0123456789abcdef" * 4
SHARE = {ENV_CONTAINER: "6", ENV_DEV: "15"}
ALL = {ENV_VISIBLE_DEVICES: "all"}
PRIVILEGED = [{"allow": True, "access": "rwm"}]


def call(container: str = ID) -> Call:
    return parse(["--root", "/run/docker/runtime-runc/moby", "create", "--bundle", "/b", container])


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_the_documentations_container_gets_its_slice(machine: Machine) -> None:
    made = prepare(call(), document(SHARE | ALL), machine.tools)

    assert made
    assert machine.kernel.commands == ["create 0123456789ab gpu=0 mem=6043MiB weight=None highprio=False"]
    assert [mount["destination"] for mount in made["mounts"][1:]] == [
        "/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidiactl", "/usr/lib/libcuda.so.1",
    ]  # fmt: skip
    added = [(rule["major"], rule["minor"]) for rule in made["linux"]["resources"]["devices"] if "minor" in rule][1:]
    assert added == [(241, 1), (240, 0), (241, 0)]
    assert machine.log == ["0123456789ab: 6043 MiB of GPU 0"]


def test_a_cdi_name_gives_the_card_and_its_nodes_go(machine: Machine) -> None:
    given = docker_cdi()
    given["process"]["env"] += [f"{name}={value}" for name, value in SHARE.items()]
    made = prepare(call(), given, machine.tools)

    assert made
    assert machine.kernel.commands == ["create 0123456789ab gpu=0 mem=6043MiB weight=None highprio=False"]
    assert made["linux"]["devices"] == []
    assert [each for each in made["linux"]["resources"]["devices"] if each.get("major") in (195, 510)] == []
    assert made["hooks"] == given["hooks"]
    assert [mount["destination"] for mount in made["mounts"] if "libcuda" in mount["destination"]] == [
        "/usr/lib/x86_64-linux-gnu/libcuda.so.535.261.03"
    ]


def test_a_note_says_whose_the_instance_is(machine: Machine) -> None:
    prepare(call(), document(SHARE | ALL), machine.tools)

    note = json.loads((machine.run / "0123456789ab.json").read_text())
    assert (note["runtime"], note["containers"]) == ("docker", [ID])
    assert note["state"] == f"/run/docker/runtime-runc/moby/{ID}"


@pytest.mark.parametrize(
    ("runtime", "place"),
    [
        ("runc", "/run/runc"),
        ("/usr/bin/crun", "/run/crun"),
        ("/opt/my-crun", "/run/crun"),
        ("/opt/logged", "/run/runc"),
    ],
)
def test_where_a_container_is_kept_whose_caller_names_no_folder(machine: Machine, runtime: str, place: str) -> None:
    prepare(parse(["create", "--bundle", "/b", ID], runtime), document(SHARE | ALL), machine.tools)

    note = json.loads((machine.run / "0123456789ab.json").read_text())
    assert note["state"] == f"{place}/{ID}"


def test_weight_and_priority_reach_the_kernel(machine: Machine) -> None:
    prepare(call(), document(SHARE | ALL | {ENV_WEIGHT: "4", ENV_HIGH_PRIO: "1"}), machine.tools)

    assert machine.kernel.commands == ["create 0123456789ab gpu=0 mem=6043MiB weight=4 highprio=True"]
    assert machine.log == ["0123456789ab: 6043 MiB of GPU 0, weight 4, high priority"]


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(document(), id="nothing of ours"),
        pytest.param(document(SHARE | {ENV_VISIBLE_DEVICES: "none"}), id="no GPU wanted"),
        pytest.param(document(SHARE | ALL, annotations={"io.kubernetes.cri.sandbox-id": "x"}), id="made by a kubelet"),
        pytest.param(document(ALL, rules=PRIVILEGED), id="privileged without a share"),
        pytest.param(document(ALL, devices=[node("/dev/nvidia0", 195, 0)]), id="NVIDIA's runtime was here, cGPU is off"),
        pytest.param(document(ALL, hooks={"prestart": [HOOK]}), id="NVIDIA's hook will do it, cGPU is off"),
        pytest.param(document(ALL), id="no driver, cGPU is off"),
    ],
)  # fmt: skip
def test_a_container_that_is_left_as_it_is(machine: Machine, given: dict[str, Any]) -> None:
    assert prepare(call(), given, machine.tools) is None
    assert machine.left == []


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        pytest.param(document(SHARE), (f"{ENV_CONTAINER}=6", "no GPU", "--gpus all"), id="no GPU"),
        pytest.param(document(SHARE | ALL, rules=PRIVILEGED), (f"{ENV_CONTAINER}=6", "privileged"), id="privileged"),
        pytest.param(document(SHARE | {ENV_VISIBLE_DEVICES: "7"}), (f"{ENV_VISIBLE_DEVICES}=7", "must be"), id="no such GPU"),
        pytest.param(document(ALL | {ENV_CONTAINER: "six"}), (f"{ENV_CONTAINER}=six", "whole number"), id="letters"),
        pytest.param(document(ALL | SHARE | {ENV_DISABLE: "?"}), (f"{ENV_DISABLE}=?", "must be"), id="a bad switch"),
        pytest.param(document({ENV_DISABLE: "?"}), (f"{ENV_DISABLE}=?", "must be"), id="a bad switch without GPU"),
        pytest.param(document(ALL | SHARE | {ENV_WEIGHT: "21"}), (f"{ENV_WEIGHT}=21", "1 to 20"), id="weight"),
    ],
)  # fmt: skip
def test_a_container_that_must_not_start(machine: Machine, given: dict[str, Any], parts: tuple[str, ...]) -> None:
    with pytest.raises(CgpuError) as raised:
        prepare(call(), given, machine.tools)

    assert [part for part in parts if part not in str(raised.value)] == []
    assert machine.left == []


def test_what_the_kernel_refuses_leaves_nothing(machine: Machine) -> None:
    prepare(call(), document(SHARE | ALL), machine.tools)
    with pytest.raises(
        UnavailableError, match="=12 asks for 12087 MiB of GPU 0, whose 1 instances leave 9066 of 15109 MiB"
    ):
        prepare(call("f" * 64), document({ENV_CONTAINER: "12", ENV_DEV: "15"} | ALL), machine.tools)

    assert machine.left == lasting("0123456789ab")


def test_a_mount_that_fails_leaves_nothing(machine: Machine) -> None:
    machine.mount_error = errno.ENODEV
    with pytest.raises(UnavailableError, match="cgpufs of 0123456789ab cannot be mounted .*: No such device"):
        prepare(call(), document(SHARE | ALL), machine.tools)

    assert machine.left == []


def test_a_module_that_is_not_loaded(machine: Machine) -> None:
    (machine.kernel.path / "version").unlink()

    with pytest.raises(
        UnavailableError, match="ALIYUN_COM_GPU_MEM_CONTAINER=6: the kernel module cgpu_km is not loaded"
    ):
        prepare(call(), document(SHARE | ALL), machine.tools)


def test_privileged_may_run_unisolated_when_the_administrator_says_so(tmp_path: Path) -> None:
    machine = Machine(tmp_path, privileged="unisolated")

    assert prepare(call(), document(SHARE | ALL, rules=PRIVILEGED), machine.tools) is None
    assert "runs unisolated" in machine.log[0]


def test_without_cgpu_our_stand_in_for_nvidias_hook_is_replaced_by_the_real_nodes(machine: Machine) -> None:
    dev = machine.tools.paths.dev
    dev.mkdir()
    for name in ("nvidia0", "nvidiactl"):
        (dev / name).symlink_to("/dev/null")
    hook = dev / "nvidia-container-runtime-hook"
    hook.symlink_to(dev / STAND_IN)
    made = prepare(call(), document(ALL, hooks={"prestart": [{"path": str(hook)}]}), machine.tools)

    assert made
    assert [entry["path"] for entry in made["linux"]["devices"]] == ["/dev/nvidia0", "/dev/nvidiactl"]
    assert made["hooks"]["prestart"] == []
    assert machine.left == []


@pytest.mark.parametrize("config", [{"libraries": False}, {}])
def test_libraries_come_once(tmp_path: Path, config: dict[str, Any]) -> None:
    machine = Machine(tmp_path, **config)
    given = document(SHARE | ALL)
    if not config:
        given["mounts"].append({"destination": "/usr/lib64/libcuda.so.1", "source": "/theirs"})
    made = prepare(call(), given, machine.tools)

    assert made
    assert [mount["source"] for mount in made["mounts"] if "libcuda" in mount["destination"]] == (
        [] if config else ["/theirs"]
    )
