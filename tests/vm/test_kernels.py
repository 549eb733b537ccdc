# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

from tests.vm.bench import processors
from tests.vm.errors import BenchError
from tests.vm.kernels import FLAVOURS, build_modules, fetch, relocate, synchronise, unit_sources

COMPLAIN = Path(__file__).parent / "data/complain"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(
            "include /usr/src/linux-headers-6.1-common/Makefile",
            "include /c/usr/src/linux-headers-6.1-common/Makefile",
            id="headers",
        ),
        pytest.param("X=/usr/lib/linux-kbuild-6.1/y", "X=/c/usr/lib/linux-kbuild-6.1/y", id="kbuild programs"),
        pytest.param("SHELL=/usr/bin/sh", "SHELL=/usr/bin/sh", id="the machine's own programs stay"),
        pytest.param("/c/usr/src/linux-headers-6.1/M", "/c/usr/src/linux-headers-6.1/M", id="a relocated path stays"),
    ],
)
def test_paths_of_the_headers_point_into_the_cache(text, want):
    assert want == relocate(text, Path("/c"))


def test_a_change_in_the_simulator_does_not_rebuild_the_product(tmp_path):
    for name in ("kmod/main.c", "kmod/Kbuild", "kmod/abi/rm.h", "kmod/nvsim/main.c", "kmod/nvsim/Kbuild"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    def names(folder):
        return [str(file.relative_to(tmp_path)) for file in unit_sources(tmp_path / folder)]

    assert names("kmod") == ["kmod/Kbuild", "kmod/abi/rm.h", "kmod/main.c"]
    assert names("kmod/nvsim") == ["kmod/abi/rm.h", "kmod/nvsim/Kbuild", "kmod/nvsim/main.c"]


def test_the_build_tree_follows_the_sources_and_keeps_the_dates_of_what_did_not_change(tmp_path):
    source, tree = tmp_path / "source", tmp_path / "tree"
    source.mkdir()
    for name in ("a.c", "b.c"):
        (source / name).write_text(name)
    synchronise(sorted(source.iterdir()), source, tree)
    before = (tree / "a.c").stat().st_mtime_ns
    (source / "b.c").unlink()
    (source / "c.c").write_text("new")

    synchronise(sorted(source.iterdir()), source, tree)

    assert sorted(path.name for path in tree.iterdir()) == ["a.c", "c.c"]
    assert before == (tree / "a.c").stat().st_mtime_ns


@pytest.mark.parametrize("flavour", [name for name in FLAVOURS if name != "debug"])
def test_a_module_compiles_for_every_kernel(flavour):
    kernel = fetch(flavour)

    module = build_modules(kernel, COMPLAIN) / "complain.ko"

    assert f"vermagic={kernel.release} ".encode() in module.read_bytes()


def test_a_module_that_does_not_compile_shows_the_compilers_words(tmp_path):
    (tmp_path / "broken.c").write_text("#error no such luck\n")
    (tmp_path / "Kbuild").write_text("obj-m := broken.o\n")

    with pytest.raises(BenchError, match="no such luck"):
        build_modules(fetch("6.1"), tmp_path)


def test_unknown_kernels_and_folders_are_refused(tmp_path):
    with pytest.raises(BenchError, match=r"kernel '4.19' is unknown; choose one of 5.10, 6.1, 6.12, debug"):
        fetch("4.19")
    with pytest.raises(BenchError, match="has no Kbuild file"):
        build_modules(fetch("6.1"), tmp_path)


@pytest.mark.parametrize("flavour", list(FLAVOURS))
def test_a_kernel_without_acpi_has_each_processor_in_a_socket(flavour: str) -> None:
    """The older tables name one processor a socket; with ACPI they sit as QEMU puts them."""
    words = " ".join(processors(FLAVOURS[flavour], 2))
    assert words == ("-smp sockets=2,cores=1,threads=1" if "acpi=off" in FLAVOURS[flavour].append else "")
