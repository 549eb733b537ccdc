# SPDX-License-Identifier: Apache-2.0
"""`cgpu module` for real: built with a kernel's own headers, loaded into that kernel, refused where it must be."""

from pathlib import Path
from typing import Final

import pytest

from cgpu.loader import Loader
from tests.kmod.containers import output
from tests.vm.bench import Choice
from tests.vm.kernels import fetch
from tests.vm.machine import Machine

KERNEL: Final = "6.1"
SOURCE: Final = """// SPDX-License-Identifier: GPL-2.0-only
#include <linux/module.h>
MODULE_LICENSE("GPL");
"""
PREPARE: Final = """
cgpu() { python3 -m cgpu.cli.main "$@" 2>&1; }
modules=/lib/modules/$(uname -r)
if ! [ -d $modules/updates/dkms ]; then
	mkdir -p /tmp/upper /tmp/work; mount -t overlay -o lowerdir=$modules,upperdir=/tmp/upper,workdir=/tmp/work overlay $modules
	mkdir -p $modules/updates/dkms; cp /opt/bench/modules/cgpu_*.ko $modules/updates/dkms
fi
unload
"""
BACK: Final = "cgpu module unload > /dev/null; load-cgpu"
machine = pytest.mark.parametrize(
    "vm", [pytest.param(Choice("535", kernel=KERNEL), id="535")], indirect=True, scope="module"
)


def fake_root(tmp_path: Path, *sources: str) -> Loader:
    """A machine whose headers are a real kernel's, and sources that compile in a moment."""
    kernel = fetch(KERNEL)
    source = tmp_path / "source"
    source.mkdir()
    for name in sources:
        (source / name).write_text(SOURCE if name != "cgpu_bad.c" else SOURCE + "int bad(void) { return missing(); }\n")
    objects = " ".join(name.replace(".c", ".o") for name in sources)
    (source / "Kbuild").write_text(f"obj-m := {objects}\n")
    (source / "cgpu.h").write_text('#define CGPU_VERSION "1.0.0"\n')
    (tmp_path / "lib/modules" / kernel.release).mkdir(parents=True)
    (tmp_path / "usr/src").mkdir(parents=True)
    (tmp_path / "usr/src/linux-headers").symlink_to(kernel.headers)
    (tmp_path / "lib/modules" / kernel.release / "build").symlink_to("/usr/src/linux-headers")
    return Loader(source, tmp_path, kernel.release)


def test_it_builds_where_dkms_would(tmp_path: Path) -> None:
    """With the kernel's make and headers; the modules are the kernel's, and the build folder is gone."""
    loader = fake_root(tmp_path, "cgpu_km.c", "cgpu_core_1_0_0.c")

    assert loader.build() == ("cgpu_km.ko", "cgpu_core_1_0_0.ko")
    assert f"vermagic={loader.release} ".encode() in (loader.installed / "cgpu_km.ko").read_bytes()
    assert list((tmp_path / "var/tmp").iterdir()) == []


def test_what_does_not_compile_is_told_in_the_compilers_words(tmp_path: Path) -> None:
    """And nothing is installed."""
    loader = fake_root(tmp_path, "cgpu_km.c", "cgpu_bad.c")

    with pytest.raises(Exception, match=r"does not compile for Linux .*\n(.*\n)*.*missing"):
        loader.build()
    assert loader.built() == ()


@machine
def test_it_loads_shows_and_unloads(vm: Machine) -> None:
    """With a parameter, twice without harm, and out again."""
    shown = output(
        vm,
        f"""{PREPARE} cgpu module status; echo status $?; cgpu module load slice_ms=5; cgpu module load
cat /sys/module/cgpu_km/parameters/slice_ms; cgpu module status; echo status $?; cgpu module unload
ls /proc/cgpu_km 2>&1; {BACK}""",
    )

    assert "running:       not loaded\nstatus 1\n" in shown
    assert shown.count("version 1.0.0 runs\n") == 2
    assert "\n5\n" in shown
    assert "running:       1.0.0\nstatus 0\nnot loaded any more\n" in shown
    assert "No such file" in shown


@machine
@pytest.mark.parametrize(
    ("words", "status", "reasons"),
    [
        pytest.param(
            "load managed=perhaps",
            1,
            ["Invalid", "managed=perhaps: refuse or charge"],
            id="a value that the module refuses",
        ),
        pytest.param("load fast=1", 2, ["fast=1: must be one of slice_ms"], id="a parameter that does not exist"),
    ],
)
def test_a_refused_load_says_why_and_leaves_nothing(vm: Machine, words: str, status: int, reasons: list[str]) -> None:
    shown = output(vm, f"{PREPARE} cgpu module {words}; echo status $?; grep -c ^cgpu_ /proc/modules; {BACK}")

    assert [reason for reason in reasons if reason not in shown] == []
    assert f"status {status}\n0\n" in shown


@machine
def test_a_module_in_use_stays_and_its_instances_are_named(vm: Machine) -> None:
    shown = output(
        vm, f"{PREPARE} cgpu module load; share aaa 0:100; cgpu module unload; echo status $?; unshare_all; {BACK}"
    )

    assert "instances are there: aaa; end their containers first" in shown
    assert "status 1" in shown


@machine
def test_without_the_driver_nothing_is_loaded(vm: Machine) -> None:
    shown = output(vm, f"{PREPARE} rmmod nvsim; cgpu module load; echo status $?; load-driver")

    assert "the NVIDIA driver is not loaded" in shown
    assert "status 1" in shown
