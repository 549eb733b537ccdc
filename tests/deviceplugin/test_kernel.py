# SPDX-License-Identifier: Apache-2.0
"""Shares that the kernel module enforces, on a /proc and a root in folders; tests/node has a real kernel."""

import errno
import json
import os
from pathlib import Path

import pytest

from cgpu.cdi import BindMount, DeviceNode
from cgpu.core.errors import UnavailableError
from cgpu.core.model import Card, Share
from cgpu.core.names import Mode
from cgpu.procfs import CgpuProc
from deviceplugin.compute import Compute
from deviceplugin.grants import Grant
from deviceplugin.kernel import KernelInstances

ID = "0a1b2c3d4e5f"
CARDS = (Card(0, 0, "GPU-0", "T4", 15109, 14), Card(1, 1, "GPU-1", "T4", 15109, 14))
SIX = 6475 << 20
VERSION = "535.261.03"


def grant(mem: int = 6, mode: Mode = Mode.CGPU, core: int = 0, cards: tuple[str, ...] = ("GPU-0",)) -> Grant:
    shares = {uuid: Share(mem, core) for uuid in cards}
    return Grant("h", ID, ("u0",), "uid", "ns", "pod", "main", mode, shares)


class Kernel(CgpuProc):
    """inst_ctl does what it is told. `full`: cards that take no instance; `busy`: destroys that are refused."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        for minor in (0, 1):
            (root / f"cgpu_km/{minor}").mkdir(parents=True)
            (root / f"cgpu_km/{minor}/policy").write_text("1\n")
            (root / f"cgpu_km/{minor}/max_inst").write_text("20\n")
        (root / "cgpu_km/version").write_text("1.0.0\n")
        (root / "cgpu_km/inst_ctl").touch()
        self.full: set[int] = set()
        self.busy = 0
        self.in_use = False  # memsize cannot be lowered

    def set_instance(self, gpu: int, id_: str, name: str, value: int) -> None:
        if self.in_use:
            raise UnavailableError("refused") from OSError(errno.EBUSY, "busy")
        super().set_instance(gpu, id_, name, value)

    def create(self, id_: str, gpu: int, mem: int, weight: int | None = None, highprio: bool = False) -> None:
        if gpu in self.full:
            raise UnavailableError("the card has no free instance")
        line = f"{id_} gpu={gpu} inst=1 mem={mem} used=0 weight={weight or 1} highprio={int(highprio)} busy_ns=0 oom=0"
        with (self.path / "inst_ctl").open("a") as control:
            control.write(f"{line} dev=240:{gpu} ctl=241:2 uvm=241:3\n")
        (self.path / f"{gpu}/{id_}").mkdir(exist_ok=True)
        (self.path / f"{gpu}/{id_}/memsize").touch()

    def destroy(self, id_: str) -> None:
        if self.busy:
            self.busy -= 1
            raise UnavailableError("it is in use") from OSError(errno.EBUSY, "busy")
        (self.path / "inst_ctl").write_text("")


class Node:
    """A node in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kernel = Kernel(folder / "proc")
        self.mounted: list[Path] = []
        self.mount_error = 0
        self.problem = ""
        library = folder / f"host/usr/lib/x86_64-linux-gnu/libcuda.so.{VERSION}"
        library.parent.mkdir(parents=True)
        library.touch()
        (library.parent / "libcuda.so.1").symlink_to(f"/usr/lib/x86_64-linux-gnu/{library.name}")
        (folder / "proc/driver/nvidia").mkdir(parents=True)
        (folder / "proc/driver/nvidia/version").write_text(f"NVRM version: NVIDIA Kernel Module  {VERSION}  Mon\n")
        self.instances = KernelInstances(
            self.kernel, lambda _: self.problem, folder / "run", proc_root=folder / "proc", host_root=folder / "host",
            mount=self.mount, unmount=self.unmount,
        )  # fmt: skip

    def mount(self, _: str, folder: Path) -> None:
        if self.mount_error:
            raise OSError(self.mount_error, os.strerror(self.mount_error))
        self.mounted.append(folder)

    def unmount(self, folder: Path) -> None:
        self.mounted = [path for path in self.mounted if path != folder]

    @property
    def left(self) -> list[str]:
        folders = (self.folder / "run", self.folder / "host/dev/char")
        files = [path.name for folder in folders if folder.exists() for path in folder.iterdir()]
        return sorted([*files, *(row.id for row in self.kernel.instances()), *map(str, self.mounted)])


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_an_instance_has_the_share_that_the_product_documents(node: Node) -> None:
    node.instances.create(grant(), CARDS)

    [row] = node.instances.rows()
    assert (row.id, row.gpu, row.mem) == (ID, 0, SIX)
    assert node.instances.existing() == {ID}
    assert node.mounted == [node.folder / "run" / ID]
    assert json.loads((node.folder / f"run/{ID}.json").read_text()) == {
        "runtime": "kubernetes", "containers": ["main"], "namespace": "ns", "pod": "pod", "podUID": "uid",
    }  # fmt: skip


def test_shares_of_compute_are_weights_of_a_card_that_divides_itself_by_them(node: Node) -> None:
    (node.kernel.path / "0/max_inst").write_text("25\n")

    node.instances.create(grant(mode=Mode.CORE_MEM, core=30), CARDS)

    [row] = node.instances.rows()
    assert (row.mem, row.weight) == (SIX, 6)
    assert (node.kernel.get_gpu(0, "policy"), node.kernel.get_gpu(0, "max_inst")) == (3, 20)
    assert node.kernel.get_gpu(1, "policy") == 1


def test_a_card_gets_its_policy_back_with_the_mode_that_shares_compute(node: Node) -> None:
    node.kernel.set_gpu(0, "policy", 4)
    for _ in range(2):
        node.instances.create(grant(mode=Mode.CORE_MEM, core=30), CARDS)
        node.instances.destroy(ID)

    node.instances.create(grant(), CARDS)

    assert node.kernel.get_gpu(0, "policy") == 4
    node.kernel.set_gpu(0, "policy", 2)
    node.instances.destroy(ID)
    node.instances.create(grant(), CARDS)
    assert node.kernel.get_gpu(0, "policy") == 2, "what the administrator sets in mode cgpu stays"


def test_a_card_takes_as_many_instances_as_the_chart_says(node: Node) -> None:
    compute = Compute(node.kernel, node.folder / "run", max_instances=25)

    compute.prepare(0, Mode.CGPU)

    assert [node.kernel.get_gpu(minor, "max_inst") for minor in (0, 1)] == [25, 20]


def test_a_container_gets_nodes_rules_and_the_drivers_files(node: Node) -> None:
    node.instances.create(grant(cards=("GPU-0", "GPU-1")), CARDS)

    edits = node.instances.edits(grant(), {"A": "b"}, CARDS)

    folder = node.folder / "run" / ID
    assert edits.env == {"A": "b"}
    assert BindMount(str(folder / "nvidia1"), "/dev/nvidia1") in edits.mounts
    assert DeviceNode("/dev/.cgpu/nvidia-uvm", numbers=(241, 3)) in edits.nodes
    real = f"/usr/lib/x86_64-linux-gnu/libcuda.so.{VERSION}"
    read_only = ("ro", "nosuid", "nodev", "bind")
    assert [mount for mount in edits.mounts if "cuda" in mount.host_path] == [
        BindMount(real, "/usr/lib/x86_64-linux-gnu/libcuda.so.1", read_only),
        BindMount(real, real, read_only),
    ]


def test_every_node_of_a_container_has_the_name_by_which_systemd_gives_it_back_after_a_reload(node: Node) -> None:
    node.instances.create(grant(cards=("GPU-0", "GPU-1")), CARDS)

    numbers = {
        f"{major}:{minor}"
        for major, minor in (row.numbers for row in node.instances.edits(grant(), {}, CARDS).nodes if row.numbers)
    }

    named = {path.name: path.readlink() for path in (node.folder / "host/dev/char").iterdir()}
    assert named.keys() == numbers
    assert {path.name for path in named.values()} == {"nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"}


def test_a_restart_adopts_what_is_there_and_its_size(node: Node) -> None:
    assert not node.instances.adopt(grant(), CARDS)
    node.instances.create(grant(), CARDS)

    assert node.instances.adopt(grant(mem=7), CARDS)
    assert (node.kernel.path / f"0/{ID}/memsize").read_text() == f"{15109 * 7 // 14 << 20}\n"


def test_what_is_in_use_cannot_be_taken_away(node: Node) -> None:
    node.instances.create(grant(), CARDS)
    node.kernel.in_use = True

    with pytest.raises(UnavailableError, match="container main uses 0 MiB of GPU memory, more than the 4316 MiB"):
        node.instances.adopt(grant(mem=4), CARDS)


def test_an_instance_on_another_card_is_made_anew(node: Node) -> None:
    node.instances.create(grant(), CARDS)

    assert not node.instances.adopt(grant(cards=("GPU-1",)), CARDS)
    node.instances.create(grant(cards=("GPU-1",)), CARDS)
    assert [row.gpu for row in node.instances.rows()] == [1]


def test_what_cannot_be_made_leaves_nothing(node: Node) -> None:
    node.kernel.full = {1}
    with pytest.raises(UnavailableError, match="no free instance"):
        node.instances.create(grant(cards=("GPU-0", "GPU-1")), CARDS)
    assert node.left == []

    node.kernel.full, node.mount_error = set(), errno.EPERM
    with pytest.raises(UnavailableError, match="must be privileged"):
        node.instances.create(grant(), CARDS)
    assert node.left == []


def test_nothing_is_made_while_the_module_is_not_ready(node: Node) -> None:
    node.problem = "the module is not there"

    with pytest.raises(UnavailableError, match="the module is not there"):
        node.instances.create(grant(), CARDS)
    assert node.left == []


def test_an_instance_in_use_stays_ours_until_it_can_go(node: Node) -> None:
    node.instances.create(grant(), CARDS)
    node.kernel.busy = 1_000_000

    with pytest.raises(UnavailableError, match="in use"):
        node.instances.destroy(ID)
    assert node.instances.existing() == {ID}
    node.kernel.busy = 1  # as for the moment after a container's end
    node.instances.destroy(ID)
    node.instances.destroy(ID)
    assert node.left == []


def test_what_others_noted_is_not_ours(node: Node) -> None:
    (node.folder / "run").mkdir()
    (node.folder / "run/0123456789ab.json").write_text('{"runtime": "docker"}')
    (node.folder / "run/cards.json").write_text("[")

    assert node.instances.existing() == frozenset()
