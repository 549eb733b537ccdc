# SPDX-License-Identifier: Apache-2.0
"""The loader on made-up machines; what it says when something is in the way. tests/kmod/test_load.py has a real kernel."""

import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from cgpu.cli import module as command
from cgpu.core.errors import CgpuError, SettingError, UnavailableError
from cgpu.loader import PARAMETERS, Loader, chrooted

RELEASE = "6.1.0-9-amd64"
KMOD = Path(__file__).parents[1] / "kmod"
SIGNED = b"code~Module signature appended~\n"
SECURE_BOOT = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"


class Host:
    """A machine in a folder: insmod, rmmod and the module's own files behave as a kernel's would."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.calls: list[list[str]] = []
        self.answers: dict[str, tuple[int, str, str]] = {}
        self.write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.261.03  Mon")
        self.write(f"lib/modules/{RELEASE}/build/Makefile", "")
        self.write("proc/modules", "nvidia 1 0 - Live 0x0\n")
        self.write("source/Kbuild", "obj-m := cgpu_km.o cgpu_core_1_0_0.o\n")
        self.write("source/cgpu.h", '#define CGPU_VERSION\t\t"1.0.0"\n')
        self.build("cgpu_core_0_9_0.ko", "cgpu_core_1_0_0.ko", "cgpu_km.ko")
        self.loader = Loader(root / "source", root, RELEASE, self.run)

    def write(self, path: str, text: str | bytes) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)

    def build(self, *names: str) -> None:
        for name in names:
            self.write(f"lib/modules/{RELEASE}/updates/dkms/{name}", SIGNED)

    def run(self, argv: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        words = [Path(word).name if "/" in word else word for word in argv]
        self.calls.append(words)
        code, out, err = self.answers.get(" ".join(words[:2]), self.answers.get(words[0], (0, "", "")))
        if not code and words[0] in {"insmod", "rmmod"}:
            self.change(words[0], words[1].split(".")[0])
        return subprocess.CompletedProcess(list(argv), code, out, err)

    def change(self, verb: str, name: str) -> None:
        """The kernel's list of modules and the running core's version after a success."""
        rows = (self.root / "proc/modules").read_text().splitlines()
        rows = (
            [f"{name} 1 0 - Live 0x0", *rows] if verb == "insmod" else [row for row in rows if row.split()[0] != name]
        )
        self.write("proc/modules", "\n".join(rows))
        if verb == "insmod":
            self.write("proc/cgpu_km/version", "none\n" if name == "cgpu_km" else name[10:].replace("_", ".") + "\n")
        if verb == "rmmod" and name == "cgpu_km":
            (self.root / "proc/cgpu_km/version").unlink()

    def made(self, verb: str) -> list[str]:
        """What was done by that program, without its name."""
        return [" ".join(words[1:]) for words in self.calls if words[0] == verb]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def without_modules(host: Host) -> None:
    for file in (host.root / f"lib/modules/{RELEASE}/updates/dkms").iterdir():
        file.unlink()


def without_headers(host: Host) -> None:
    without_modules(host)
    (host.root / f"lib/modules/{RELEASE}/build/Makefile").unlink()


def with_secure_boot(host: Host) -> None:
    host.write(SECURE_BOOT, b"\x06\0\0\0\x01")
    host.write(f"lib/modules/{RELEASE}/updates/dkms/cgpu_km.ko", b"code")


def driver(version: str) -> Callable[[Host], None]:
    return lambda host: host.write(
        "proc/driver/nvidia/version", f"NVRM version: NVIDIA UNIX Kernel Module  {version}  x"
    )


OBSTACLES = [
    pytest.param(
        lambda host: (host.root / "proc/driver/nvidia/version").unlink(),
        ["the NVIDIA driver is not loaded", "modprobe nvidia"],
        id="no driver",
    ),
    pytest.param(driver("410.129"), ["driver 410.129 is not supported", "418 to 580"], id="a driver before 418"),
    pytest.param(driver("595.10"), ["driver 595.10 is unknown", "allow_unknown_driver=1"], id="a driver from later"),
    pytest.param(
        without_headers,
        [f"headers of Linux {RELEASE} are missing", f"linux-headers-{RELEASE}", f"kernel-devel-{RELEASE}"],
        id="no headers",
    ),
    pytest.param(with_secure_boot, ["Secure Boot is on", "not signed", "mokutil"], id="Secure Boot, not signed"),
    pytest.param(
        lambda host: host.write("proc/cgpu_km/version", "0.9.0\n"),
        ["version 0.9.0 is loaded, 1.0.0 is wanted", "cgpu module upgrade"],
        id="another version runs",
    ),
]


@pytest.mark.parametrize(("damage", "words"), OBSTACLES)
def test_what_is_in_the_way_is_told_with_its_remedy(
    host: Host, damage: Callable[[Host], None], words: list[str]
) -> None:
    """In the status, and by a load that then loads nothing."""
    damage(host)

    assert [word for word in words if word not in " ".join(host.loader.status().obstacles)] == []
    with pytest.raises(UnavailableError, match=re.escape(words[0])):
        host.loader.load()
    assert host.made("insmod") == []


def test_a_signed_module_passes_secure_boot(host: Host) -> None:
    host.write(SECURE_BOOT, b"\x06\0\0\0\x01")

    assert host.loader.status().obstacles == ()


@pytest.mark.parametrize(
    "version", [pytest.param(v, id=v) for v in ("418.226.00", "470.256.02", "535.261.03", "580.95.05")]
)
def test_known_drivers_are_no_obstacle(host: Host, version: str) -> None:
    driver(version)(host)

    assert host.loader.status().obstacles == ()


def test_loading_gives_the_front_its_parameters_and_then_loads_the_core(host: Host) -> None:
    assert host.loader.load({"slice_ms": "5", "managed": "charge"}) == "1.0.0"
    assert host.made("insmod") == ["cgpu_km.ko slice_ms=5 managed=charge", "cgpu_core_1_0_0.ko"]
    assert host.loader.status().ready


def test_loading_twice_does_nothing(host: Host) -> None:
    host.loader.load()
    host.calls.clear()

    assert host.loader.load() == "1.0.0"
    assert host.calls == []


def test_an_unknown_driver_is_tried_when_that_is_asked_for(host: Host) -> None:
    driver("595.10")(host)

    assert host.loader.load({"allow_unknown_driver": "1"}) == "1.0.0"


def test_an_unknown_parameter_is_refused_with_the_known_ones(host: Host) -> None:
    with pytest.raises(SettingError, match="slices=5: must be one of slice_ms"):
        host.loader.load({"slices": "5"})


def test_the_parameters_are_those_of_the_module() -> None:
    sources = "".join(file.read_text() for file in KMOD.glob("*.c"))

    assert set(PARAMETERS) == set(re.findall(r"module_param(?:_named)?\((\w+),", sources))


def test_what_was_never_built_is_not_loaded(host: Host) -> None:
    without_modules(host)

    with pytest.raises(UnavailableError, match=f"not built for Linux {RELEASE}; run `cgpu module build`"):
        host.loader.load()


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        pytest.param("Invalid module format", "another kernel", id="built for another kernel"),
        pytest.param("Key was rejected by service", "enrolled", id="a key that nobody enrolled"),
        pytest.param("Operation not permitted", "root is needed", id="not root"),
        pytest.param("No such device", "driver branch 600 is unknown", id="the module's own reason"),
    ],
)
def test_a_refusal_of_the_kernel_is_explained(host: Host, said: str, remedy: str) -> None:
    host.answers["insmod"] = (1, "", f"insmod: ERROR: could not insert module: {said}")
    host.answers["dmesg"] = (0, "[ 1.0] usb: x\n[ 2.0] cgpu_km: driver branch 600 is unknown\n", "")

    with pytest.raises(UnavailableError, match=re.escape(said)) as caught:
        host.loader.load()
    assert remedy in str(caught.value)


def test_a_core_that_fails_takes_the_front_out_again(host: Host) -> None:
    host.answers["insmod cgpu_core_1_0_0.ko"] = (1, "", "insmod: ERROR: Unknown symbol in module")

    with pytest.raises(UnavailableError, match="another version"):
        host.loader.load()
    assert host.made("rmmod") == ["cgpu_km"]
    assert host.loader.loaded() is None


def test_unloading_takes_the_core_before_the_front(host: Host) -> None:
    host.loader.load()
    host.loader.unload()

    assert host.made("rmmod") == ["cgpu_core_1_0_0", "cgpu_km"]


def test_unloading_names_the_instances_that_hold_it(host: Host) -> None:
    host.loader.load()
    host.write("proc/cgpu_km/inst_ctl", "bbb gpu=0 mem=1\naaa gpu=0 mem=1\naaa gpu=1 mem=1\n")
    host.answers["rmmod"] = (1, "", "rmmod: ERROR: Module cgpu_core_1_0_0 is in use")

    with pytest.raises(UnavailableError, match="in use; instances are there: aaa, bbb; end their containers first"):
        host.loader.unload()


def test_without_sources_the_newest_core_is_meant(host: Host) -> None:
    host.build("cgpu_core_0_10_0.ko", "cgpu_core_1_0_10.ko", "cgpu_core_1_0_9.ko")
    loader = Loader(host.root / "empty", host.root, RELEASE, host.run)

    assert loader.core() == "cgpu_core_1_0_10"
    assert loader.load() == "1.0.10"


@pytest.mark.parametrize("place", ["updates/dkms", "extra", "updates"])
def test_modules_are_found_where_each_systems_dkms_puts_them(host: Host, place: str) -> None:
    without_modules(host)
    for name in ("cgpu_core_1_0_0.ko.xz", "cgpu_km.ko.xz"):
        host.write(f"lib/modules/{RELEASE}/{place}/{name}", SIGNED)

    assert host.loader.built() == ("cgpu_km.ko.xz", "cgpu_core_1_0_0.ko.xz")
    assert host.loader.load() == "1.0.0"
    assert host.made("insmod") == ["cgpu_km.ko.xz", "cgpu_core_1_0_0.ko.xz"]


def test_a_failed_build_shows_the_compiler_and_changes_nothing(host: Host) -> None:
    host.answers["make"] = (2, "", "fs.c:1: error: no such thing")

    with pytest.raises(UnavailableError, match=f"does not compile for Linux {RELEASE}:\nfs.c:1: error"):
        host.loader.build()
    assert host.loader.built() == ("cgpu_km.ko", "cgpu_core_0_9_0.ko", "cgpu_core_1_0_0.ko")
    assert list((host.root / "var/tmp").iterdir()) == []


def test_a_build_without_headers_says_which_to_install(host: Host) -> None:
    without_headers(host)

    with pytest.raises(UnavailableError, match=f"linux-headers-{RELEASE}"):
        host.loader.build()


def test_dkms_builds_what_is_loaded_in_the_version_of_the_sources() -> None:
    """dkms.conf repeats the version and the names, and must not lag behind."""
    conf = (KMOD / "dkms.conf").read_text()
    loader = Loader(KMOD)

    assert re.findall(r'BUILT_MODULE_NAME\[\d\]="(\w+)"', conf) == ["cgpu_km", loader.core()]
    assert f'PACKAGE_VERSION="{loader.wanted()}"' in conf


def test_the_command_shows_everything_and_fails_while_it_does_not_run(
    host: Host, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "Loader", lambda _: host.loader)

    assert command.main(["status"]) == 1
    assert command.main(["load", "slice_ms=5"]) == 0
    assert command.main(["status"]) == 0
    shown = capsys.readouterr().out
    assert "NVIDIA driver: 535.261.03" in shown
    assert "running:       not loaded" in shown
    assert "running:       1.0.0" in shown


def test_the_command_refuses_a_parameter_without_a_value(host: Host) -> None:
    with pytest.raises(CgpuError, match="'slice_ms': a parameter is NAME=VALUE"):
        command.main(["load", "slice_ms"])


def test_what_is_built_already_is_only_loaded(host: Host) -> None:
    assert host.loader.ensure({"slice_ms": "2"}) == "1.0.0"

    assert host.made("make") == []
    assert host.made("insmod") == ["cgpu_km.ko slice_ms=2", "cgpu_core_1_0_0.ko"]
    assert host.loader.ensure({}) == "1.0.0"
    assert len(host.made("insmod")) == 2


def test_what_is_not_built_is_built_first(host: Host) -> None:
    without_modules(host)
    host.answers["make"] = (2, "", "error: no such thing")

    with pytest.raises(UnavailableError, match="does not compile.*\n.*no such thing"):
        host.loader.ensure({})


def test_headers_are_where_the_hosts_own_link_leads(host: Host) -> None:
    without_headers(host)
    build = host.root / f"lib/modules/{RELEASE}/build"
    build.rmdir()
    build.symlink_to("/usr/src/headers")
    host.write("usr/src/headers/Makefile", "")
    host.answers["make"] = (2, "", "seen")

    with pytest.raises(UnavailableError, match="seen"):
        host.loader.build()
    [words] = [call for call in host.calls if call[0] == "make"]
    assert "headers" in words


def test_a_program_that_the_host_lacks_is_named(host: Host) -> None:
    host.answers["sh -c"] = (127, "", "")

    with pytest.raises(UnavailableError, match="make is missing; install it; gcc is missing; install it"):
        host.loader.build()


def test_in_a_container_the_hosts_programs_run_on_the_hosts_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[str]] = []

    def run(argv: Sequence[str], **_: object) -> "subprocess.CompletedProcess[str]":
        calls.append(list(argv))
        return subprocess.CompletedProcess(list(argv), 0, "", "")

    monkeypatch.setattr("cgpu.loader.subprocess.run", run)
    chrooted(Path("/host"))(["make", "-C", "/host/usr/src/h", "M=/host/var/tmp/b", "-b", "/host", "modules"])

    assert calls == [["chroot", "/host", "make", "-C", "/usr/src/h", "M=/var/tmp/b", "-b", "/", "modules"]]
