# SPDX-License-Identifier: Apache-2.0
"""The driver's files on hosts of several layouts, seen from a pod that has the host's root below a folder."""

from pathlib import Path

import pytest

from cgpu.core.errors import UnavailableError
from cgpu.driver import DriverFile, driver_files, load_management_library, resolve
from cgpu.procfs import driver_version

VERSION = "535.261.03"
DEBIAN = "usr/lib/x86_64-linux-gnu"


def put(root: Path, path: str, link: str = "") -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    if link:
        file.symlink_to(link)
    else:
        file.touch()


def test_every_name_of_a_library_leads_to_the_hosts_own_file(tmp_path: Path) -> None:
    put(tmp_path, f"usr/lib/nvidia/current/libcuda.so.{VERSION}")
    put(tmp_path, "etc/alternatives/libcuda", f"/usr/lib/nvidia/current/libcuda.so.{VERSION}")
    put(tmp_path, f"{DEBIAN}/libcuda.so.1", "/etc/alternatives/libcuda")
    put(tmp_path, f"{DEBIAN}/libcuda.so", "libcuda.so.1")
    put(tmp_path, f"{DEBIAN}/libcuda.so.470.1")
    put(tmp_path, f"{DEBIAN}/libz.so.1")
    put(tmp_path, "usr/bin/nvidia-smi")

    source = f"/usr/lib/nvidia/current/libcuda.so.{VERSION}"
    assert driver_files(tmp_path, VERSION) == (
        DriverFile(source, f"/{DEBIAN}/libcuda.so"),
        DriverFile(source, f"/{DEBIAN}/libcuda.so.1"),
        DriverFile("/usr/bin/nvidia-smi", "/usr/bin/nvidia-smi"),
    )


def test_other_distributions_have_other_folders(tmp_path: Path) -> None:
    put(tmp_path, f"usr/lib64/libnvidia-ml.so.{VERSION}")

    [file] = driver_files(tmp_path, VERSION)
    assert file.path == f"/usr/lib64/libnvidia-ml.so.{VERSION}"


def test_a_host_without_a_driver_has_no_files(tmp_path: Path) -> None:
    assert driver_files(tmp_path, "") == ()
    assert driver_version(tmp_path) == ""


@pytest.mark.parametrize(
    ("links", "want"),
    [
        pytest.param({"a": "b", "b": "c"}, "/c", id="from one to the next"),
        pytest.param({"a": "/x/b", "x/b": "../c"}, "/c", id="upwards, from where it lies"),
        pytest.param({"a": "../../../c"}, "/c", id="never above the root"),
        pytest.param({"d": "/x"}, "/a", id="a name that is no link"),
    ],
)
def test_links_mean_what_they_mean_to_the_host(tmp_path: Path, links: dict[str, str], want: str) -> None:
    for name, target in links.items():
        put(tmp_path, name, target)

    assert str(resolve(tmp_path, "a")) == want


def test_a_ring_of_links_ends(tmp_path: Path) -> None:
    put(tmp_path, "a", "b")
    put(tmp_path, "b", "a")

    assert str(resolve(tmp_path, "a")) in {"/a", "/b"}


def test_a_node_without_nvml_is_told_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="there is no libnvidia-ml.so.1: install NVIDIA's driver"):
        load_management_library(tmp_path)


def test_a_library_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    put(tmp_path, f"{DEBIAN}/libnvidia-ml.so.{VERSION}")
    put(tmp_path, f"{DEBIAN}/libnvidia-ml.so.1", f"libnvidia-ml.so.{VERSION}")

    with pytest.raises(UnavailableError, match=rf"libnvidia-ml.so.{VERSION} cannot be loaded"):
        load_management_library(tmp_path)
