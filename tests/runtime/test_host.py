# SPDX-License-Identifier: Apache-2.0
"""What is known of the machine, and when it is asked anew."""

from pathlib import Path

import pytest

from cgpu.core.errors import UnavailableError
from cgpu.procfs import driver_version
from cgpu.runtime.host import Paths, nvidia_majors, parse_cards, read_host, scan_cards
from cgpu.runtime.libraries import HostFile, discover, wanted
from cgpu.runtime.request import HostGpu
from tests.runtime.documents import T4

VERSION = "535.261.03"
MODULE = f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {VERSION}  Thu Jun 12\nGCC version: gcc version 12.2.0\n"


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """A machine with one card and its driver's user space."""
    card = tmp_path / "proc/driver/nvidia/gpus/0000:1e:00.0"
    card.mkdir(parents=True)
    (card / "information").write_text("Model: \t Tesla T4\nDevice Minor: \t 3\n")
    (tmp_path / "proc/driver/nvidia/version").write_text(MODULE)
    (tmp_path / "proc/sys/kernel/random").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/random/boot_id").write_text("one\n")
    libraries = tmp_path / "usr/lib/x86_64-linux-gnu"
    libraries.mkdir(parents=True)
    for name in ("libcuda", "libnvidia-ml", "libnvidia-encode", "libnvidia-glcore", "libother"):
        (libraries / f"{name}.so.{VERSION}").write_text("")
        (libraries / f"{name}.so.1").symlink_to(f"{name}.so.{VERSION}")
    (libraries / "libcuda.so").symlink_to("libcuda.so.1")
    (libraries / "libnvidia-ml.so.470.1").write_text("")
    (tmp_path / "usr/bin").mkdir()
    (tmp_path / "usr/bin/nvidia-smi").write_text("")
    return Paths(tmp_path / "proc", tmp_path / "dev", tmp_path / "run", tmp_path)


def test_the_driver_is_asked_once(paths: Paths) -> None:
    first = read_host(paths, lambda _: T4)

    def never(_: Path) -> tuple[HostGpu, ...]:
        raise AssertionError

    assert read_host(paths, never) == first
    assert first.gpus == T4


@pytest.mark.parametrize(
    ("file", "text"),
    [
        pytest.param("proc/sys/kernel/random/boot_id", "two\n", id="another boot"),
        pytest.param("proc/driver/nvidia/version", MODULE.replace("535", "550"), id="another driver"),
        pytest.param("proc/driver/nvidia/gpus/0000:1f:00.0", None, id="another card"),
        pytest.param("etc/cdi/nvidia.yaml", "kind: nvidia.com/gpu", id="NVIDIA's list of files"),
        pytest.param("run/cards.json", "{", id="a file that was cut off"),
        pytest.param("run/cards.json", "[]", id="a file of another form"),
    ],
)
def test_it_is_asked_anew(paths: Paths, tmp_path: Path, file: str, text: str | None) -> None:
    read_host(paths, lambda _: T4)
    if text is None:
        (tmp_path / file).mkdir()
    else:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)

    assert read_host(paths, lambda _: ()).gpus == ()


def test_cards_as_nvidia_smi_lists_them() -> None:
    listed = "0, 00000000:1E:00.0, GPU-a, 15109\n1, 00000001:AF:00.0, GPU-b, 23028\n"

    assert parse_cards(listed, {"0000:1e:00.0": 3, "0001:af:00.0": 0}) == (
        HostGpu(0, 3, "GPU-a", 15109), HostGpu(1, 0, "GPU-b", 23028),
    )  # fmt: skip


@pytest.mark.parametrize("listed", ["0, x", "0, 00000000:1E:00.0, GPU-a, [N/A]", "0, 00000000:99:00.0, GPU-a, 1"])
def test_a_list_that_cannot_be_read_is_shown(listed: str) -> None:
    with pytest.raises(UnavailableError, match="cannot be read: '0, "):
        parse_cards(listed, {"0000:1e:00.0": 3})


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        pytest.param(None, "is NVIDIA's driver installed", id="not installed"),
        pytest.param("echo NVIDIA-SMI has failed; exit 9", "ended with 9: NVIDIA-SMI has failed", id="no driver"),
    ],
)
def test_a_driver_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, reason: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    if script:
        (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "nvidia-smi").chmod(0o755)

    with pytest.raises(UnavailableError, match=reason):
        scan_cards(tmp_path)


def test_the_number_of_a_node_comes_from_the_driver(
    paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho '0, 00000000:1E:00.0, GPU-a, 15109'\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert scan_cards(paths.proc) == (HostGpu(0, 3, "GPU-a", 15109),)


def test_a_card_whose_address_is_not_told_is_known_by_its_uuid() -> None:
    assert parse_cards("0, [Not Found], GPU-a, 15109\n", {"0000:1e:00.0": 3, "GPU-a": 3}) == (
        HostGpu(0, 3, "GPU-a", 15109),
    )


def test_majors_of_the_driver(tmp_path: Path) -> None:
    (tmp_path / "devices").write_text(
        "Character devices:\n  1 mem\n195 nvidia-frontend\n509 cgpu\n508 cgpu-ctl\n510 nvidia-uvm\n\nBlock devices:\n"
    )

    assert nvidia_majors(tmp_path) == {195, 510, 509, 508}
    assert nvidia_majors(tmp_path / "nowhere") == {195}


def test_a_machine_without_driver(tmp_path: Path) -> None:
    assert driver_version(tmp_path) == ""


def test_the_drivers_own_files_are_found_under_every_name(paths: Paths, tmp_path: Path) -> None:
    found = sorted(discover(paths.root, VERSION), key=lambda file: file.name)

    assert [(file.name, file.capability) for file in found] == [
        ("libcuda.so", "compute"),
        ("libcuda.so.1", "compute"),
        (f"libcuda.so.{VERSION}", "compute"),
        ("libnvidia-encode.so.1", "video"),
        (f"libnvidia-encode.so.{VERSION}", "video"),
        ("libnvidia-ml.so.1", "utility"),
        (f"libnvidia-ml.so.{VERSION}", "utility"),
        ("nvidia-smi", "utility"),
    ]
    assert {Path(file.source).name for file in found if file.name.startswith("libcuda")} == {f"libcuda.so.{VERSION}"}


YAML = """---
cdiVersion: 0.5.0
containerEdits:
  deviceNodes:
  - hostPath: /dev/null
    path: /dev/nvidiactl
  mounts:
  - containerPath: {root}/usr/lib/x86_64-linux-gnu/libcuda.so.{version}
    hostPath: {root}/usr/lib/x86_64-linux-gnu/libcuda.so.{version}
    options:
    - ro
  - containerPath: /usr/lib/libnvidia-glcore.so.{version}
    hostPath: {root}/usr/lib/x86_64-linux-gnu/libnvidia-glcore.so.{version}
  - hostPath: {root}/usr/bin/nvidia-smi
    containerPath: /usr/bin/nvidia-smi
kind: nvidia.com/gpu
"""
JSON = """{
 "kind": "nvidia.com/gpu",
 "containerEdits": {"mounts": [
  {
   "containerPath": "/usr/lib/libcuda.so.{version}",
   "hostPath": "{root}/usr/lib/x86_64-linux-gnu/libcuda.so.{version}",
   "options": ["ro"]
  }
 ]}
}
"""
LISTED = {"libcuda.so": "compute", "libcuda.so.1": "compute", f"libcuda.so.{VERSION}": "compute"}
TABLE = LISTED | {
    "libnvidia-encode.so.1": "video", f"libnvidia-encode.so.{VERSION}": "video",
    "libnvidia-ml.so.1": "utility", f"libnvidia-ml.so.{VERSION}": "utility", "nvidia-smi": "utility",
}  # fmt: skip
GRAPHICS = {"libnvidia-glcore.so.1": "all", f"libnvidia-glcore.so.{VERSION}": "all", "nvidia-smi": "utility"}


@pytest.mark.parametrize(
    ("file", "text", "version", "expected"),
    [
        pytest.param("etc/cdi/nvidia.yaml", YAML, VERSION, LISTED | GRAPHICS, id="nvidia-ctk's YAML"),
        pytest.param("var/run/cdi/nvidia.json", JSON, VERSION, LISTED, id="its JSON"),
        pytest.param("etc/cdi/nvidia.yaml", YAML, "470.1", {"libnvidia-ml.so.470.1": "utility", "nvidia-smi": "utility"}, id="of another driver: not this one's"),
        pytest.param("etc/cdi/nvidia.yaml", YAML.replace("nvidia.com", "other.com"), VERSION, TABLE, id="of another vendor"),
    ],
)  # fmt: skip
def test_nvidias_own_list_of_files_counts(
    paths: Paths, tmp_path: Path, file: str, text: str, version: str, expected: dict[str, str]
) -> None:
    place = tmp_path / file
    place.parent.mkdir(parents=True)
    place.write_text(text.replace("{root}", str(tmp_path)).replace("{version}", VERSION))

    assert {found.name: found.capability for found in discover(paths.root, version)} == expected


def test_a_list_that_cannot_be_used_leaves_the_table(paths: Paths, tmp_path: Path) -> None:
    place = tmp_path / "etc/cdi/nvidia.yaml"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"kind: nvidia.com/gpu\nhostPath: \xff")

    assert len(list(discover(paths.root, VERSION))) == 8


FILES = (
    HostFile("/a", "libcuda.so.1", "compute"),
    HostFile("/b", "nvidia-smi", "utility"),
    HostFile("/c", "libnvcuvid.so.1", "video"),
)


@pytest.mark.parametrize(
    ("env", "names"),
    [
        pytest.param({}, ["libcuda.so.1", "nvidia-smi"], id="utility and compute by default"),
        pytest.param({"NVIDIA_DRIVER_CAPABILITIES": "utility"}, ["nvidia-smi"], id="one"),
        pytest.param({"NVIDIA_DRIVER_CAPABILITIES": "compute, video"}, ["libcuda.so.1", "libnvcuvid.so.1"], id="two"),
        pytest.param({"NVIDIA_DRIVER_CAPABILITIES": "all"}, ["libcuda.so.1", "nvidia-smi", "libnvcuvid.so.1"], id="all"),
    ],
)  # fmt: skip
def test_a_container_gets_what_its_capabilities_ask_for(tmp_path: Path, env: dict[str, str], names: list[str]) -> None:
    assert [Path(file.path).name for file in wanted(FILES, env, tmp_path)] == names


@pytest.mark.parametrize(
    ("folder", "place"),
    [("usr/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu"), ("usr/lib64", "/usr/lib64"), ("opt", "/usr/lib")],
)
def test_libraries_lie_where_the_containers_loader_looks(tmp_path: Path, folder: str, place: str) -> None:
    (tmp_path / folder).mkdir(parents=True)

    assert wanted(FILES[:2], {}, tmp_path)[0].path == f"{place}/libcuda.so.1"
    assert wanted(FILES[:2], {}, tmp_path)[1].path == "/usr/bin/nvidia-smi"
