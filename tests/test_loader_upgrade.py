# SPDX-License-Identifier: Apache-2.0
"""Another version of the module in place of the one that runs."""

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from cgpu.core.errors import UnavailableError
from tests.test_loader import RELEASE, SIGNED, Host, host, without_headers

__all__ = ["host"]


def run_older(host: Host) -> None:
    host.write("proc/modules", "cgpu_core_0_9_0 1 0 - Live\ncgpu_km 1 0 - Live\n")
    host.write("proc/cgpu_km/version", "0.9.0\n")


def test_an_upgrade_switches_to_the_new_core_and_drops_the_old(host: Host) -> None:
    run_older(host)
    host.loader.upgrade()

    assert host.made("insmod") == ["cgpu_core_1_0_0.ko"]
    assert (host.root / "proc/cgpu_km/upgrade").read_text() == "cgpu_core_1_0_0\n"
    assert host.made("rmmod") == ["cgpu_core_0_9_0"]


def test_a_core_that_refuses_leaves_the_old_one_and_is_dropped(host: Host) -> None:
    run_older(host)
    (host.root / "proc/cgpu_km/upgrade").mkdir()  # a file that cannot be written

    with pytest.raises(UnavailableError, match="cgpu_core_1_0_0 was refused: Is a directory; 0.9.0 runs on"):
        host.loader.upgrade()
    assert host.made("rmmod") == ["cgpu_core_1_0_0"]


def test_a_core_of_other_structures_needs_the_cold_upgrade(host: Host) -> None:
    run_older(host)
    host.answers["insmod"] = (1, "", "insmod: ERROR: could not insert module: Protocol error")

    with pytest.raises(
        UnavailableError, match="end all containers, then `cgpu module unload` and `load`.*; 0.9.0 runs on"
    ):
        host.loader.upgrade()


def test_an_upgrade_without_the_new_core_says_so(host: Host) -> None:
    run_older(host)
    (host.root / f"lib/modules/{RELEASE}/updates/dkms/cgpu_core_1_0_0.ko").unlink()

    with pytest.raises(UnavailableError, match="cgpu_core_1_0_0.ko is not built .*; 0.9.0 runs on"):
        host.loader.upgrade()


def test_a_front_that_cannot_stay_waits_until_no_instance_is_there(host: Host) -> None:
    run_older(host)
    refused = (1, "", "insmod: ERROR: could not insert module: Protocol error")
    host.answers["insmod cgpu_core_1_0_0.ko"] = refused
    host.write("proc/cgpu_km/inst_ctl", "aaa gpu=0 mem=1\n")

    with pytest.raises(UnavailableError, match="0.9.0 runs on; it is loaded anew when no pod has a share"):
        host.loader.exchange({"slice_ms": "2"})
    assert host.made("rmmod") == []

    host.write("proc/cgpu_km/inst_ctl", "")
    host.calls.clear()
    unloaded = host.loader.unload

    def unload() -> None:
        unloaded()
        host.answers.clear()  # what refused was the front, and that is gone

    host.loader.unload = unload  # type: ignore[method-assign]
    assert host.loader.exchange({"slice_ms": "2"}) == "1.0.0"
    assert host.made("rmmod") == ["cgpu_core_0_9_0", "cgpu_km"]
    assert host.made("insmod")[1:] == ["cgpu_km.ko slice_ms=2", "cgpu_core_1_0_0.ko"]


def test_an_exchange_below_running_containers_takes_nothing_out(host: Host) -> None:
    run_older(host)
    host.write("proc/cgpu_km/inst_ctl", "aaa gpu=0 mem=1\n")

    host.loader.exchange({})

    assert (host.made("insmod"), host.made("rmmod")) == (["cgpu_core_1_0_0.ko"], ["cgpu_core_0_9_0"])


def test_an_upgrade_to_what_runs_does_nothing(host: Host) -> None:
    host.loader.load()
    host.calls.clear()

    assert host.loader.upgrade() == "1.0.0"
    assert host.calls == []


class Changing(Host):
    """A machine whose compiler works, where no core bears the front of another version."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.made_of("1.0.0", "cgpu_core_1_0_0")
        self.front = ""

    def made_of(self, front: str, *cores: str) -> None:
        """What is installed: a front of that version, and cores."""
        folder = self.root / f"lib/modules/{RELEASE}/updates/dkms"
        for file in folder.iterdir():
            file.unlink()
        (folder / "cgpu_km.ko").write_bytes(f"{front} ".encode() + SIGNED)
        for core in cores:
            (folder / f"{core}.ko").write_bytes(SIGNED)

    def run(self, argv: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        file = Path(argv[-1])
        if argv[0] == "make":
            for name, text in (("cgpu_km", b"1.0.0 "), ("cgpu_core_1_0_0", b"")):
                (self.root / f"var/tmp/cgpu-build/{name}.ko").write_bytes(text + SIGNED)
        if argv[0] == "modinfo":
            return subprocess.CompletedProcess(list(argv), 0, file.read_text().split()[0] + "\n", "")
        if argv[0] == "insmod" and file.name == "cgpu_km.ko":
            self.front = file.read_text().split()[0]
        elif argv[0] == "insmod" and self.front.replace(".", "_") not in file.name:
            return subprocess.CompletedProcess(list(argv), 1, "", "insmod: ERROR: could not insert: Protocol error")
        return super().run(argv)

    def boot(self, version: str) -> None:
        """The module runs in that version."""
        self.front = version
        self.write("proc/modules", f"cgpu_core_{version.replace('.', '_')} 1 0 - Live\ncgpu_km 1 0 - Live\n")
        self.write("proc/cgpu_km/version", f"{version}\n")


@pytest.fixture
def changing(tmp_path: Path) -> Changing:
    return Changing(tmp_path)


def front_alone(host: Changing) -> None:
    host.made_of("1.0.1", "cgpu_core_1_0_0", "cgpu_core_1_0_1")


def core_alone(host: Changing) -> None:
    host.made_of("1.0.0", "cgpu_core_1_0_0")
    (host.root / f"lib/modules/{RELEASE}/updates/dkms/cgpu_km.ko").unlink()


def newer_runs(host: Changing) -> None:
    front_alone(host)
    host.boot("1.0.1")


@pytest.mark.parametrize(
    "left",
    [
        pytest.param(front_alone, id="a newer version was built and taken back, and the node started anew"),
        pytest.param(newer_runs, id="a newer version runs and is taken back"),
        pytest.param(core_alone, id="the front is gone"),
    ],
)
def test_front_and_core_are_of_one_build(changing: Changing, left: Callable[[Changing], None]) -> None:
    left(changing)
    loader = changing.loader
    bring = loader.exchange if loader.loaded() else loader.ensure

    assert bring({}) == "1.0.0"
    assert changing.front == "1.0.0"
    assert len(changing.made("make")) == 1


def test_a_front_of_another_version_is_not_loaded_beside_the_core(changing: Changing) -> None:
    front_alone(changing)

    with pytest.raises(UnavailableError, match=r"is of version 1.0.1 and 1.0.0 is wanted; run `cgpu module build`"):
        changing.loader.load()
    assert changing.made("insmod") == []


def test_a_front_that_has_to_be_built_anew_needs_the_headers(changing: Changing) -> None:
    without_headers(changing)
    changing.made_of("1.0.1", "cgpu_core_1_0_0")

    with pytest.raises(UnavailableError, match=f"linux-headers-{RELEASE}"):
        changing.loader.ensure({})
