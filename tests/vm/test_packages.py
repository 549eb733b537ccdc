# SPDX-License-Identifier: Apache-2.0
import subprocess

import pytest

from tests.vm.errors import BenchError
from tests.vm.packages import BRANCHES, branch_of, collect_user_space, cuda_of, fetch, link_names, version_of


@pytest.mark.parametrize(
    ("library", "want"),
    [
        pytest.param("libcuda.so.535.261.03", ["libcuda.so.1", "libcuda.so"], id="soname and bare name"),
        pytest.param(
            "libnvidia-nvvm.so.4.0.0", ["libnvidia-nvvm.so.4", "libnvidia-nvvm.so"], id="the compiler library is at 4"
        ),
        pytest.param("libcuda.so", [], id="an unversioned file has no other names"),
    ],
)
def test_libraries_are_found_under_the_names_that_programs_use(library, want):
    assert want == link_names(library)


def test_an_unknown_branch_is_refused_with_those_there_are():
    with pytest.raises(BenchError, match=r"driver branch '440' is unknown; choose one of 418, 450, 460, 470, 535, 550"):
        branch_of("440")


def test_packages_without_nvidia_smi_are_refused(tmp_path):
    unpacked = tmp_path / "unpacked"
    unpacked.mkdir()
    (unpacked / "libcuda.so.1.2.3").touch()

    with pytest.raises(BenchError, match="nvidia-smi is missing"):
        collect_user_space(unpacked, tmp_path)


@pytest.mark.parametrize("branch", BRANCHES)
def test_every_branch_is_fetched_whole(branch):
    place = fetch(branch)

    assert version_of(branch).startswith(f"{branch}.")
    assert (place / "lib" / "libcuda.so.1").resolve().name == f"libcuda.so.{version_of(branch)}"
    assert (place / "lib" / "libnvidia-ml.so.1").resolve().name == f"libnvidia-ml.so.{version_of(branch)}"
    # the genuine program: without a driver it says so in its own words
    shown = subprocess.run(
        [place / "bin/nvidia-smi"], env={"LD_LIBRARY_PATH": str(place / "lib")}, capture_output=True, text=True
    )
    assert shown.returncode == 9
    assert "couldn't communicate with the NVIDIA driver" in shown.stdout


def test_old_branches_run_the_cuda_that_they_accept():
    assert [cuda_of(branch) for branch in BRANCHES] == ["11", "11", "11", "11", "12", "12"]
