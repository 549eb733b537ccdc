# SPDX-License-Identifier: Apache-2.0
"""What the wheel brings: the commands of the contract, each of which starts and explains itself."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
KERNEL = ("kmod/", "tests/vm/data/complain/", "tests/kmod/data/careless/")  # linked into Linux, whose licence they take
SCRIPTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel as the image installs it, built from the tree."""
    out = tmp_path_factory.mktemp("dist")
    backend = f"import hatchling.build as b; print(b.build_wheel({str(out)!r}))"
    name = subprocess.run([sys.executable, "-c", backend], cwd=ROOT, check=True, capture_output=True, text=True)
    return zipfile.ZipFile(out / name.stdout.strip().splitlines()[-1])


@pytest.mark.parametrize("command", sorted(SCRIPTS))
def test_every_command_explains_itself(command: str) -> None:
    done = subprocess.run([Path(sys.executable).parent / command, "--help"], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert "usage" in done.stdout.lower()


@pytest.mark.parametrize("command", sorted(SCRIPTS))
def test_an_unknown_flag_is_a_usage_error(command: str) -> None:
    done = subprocess.run([Path(sys.executable).parent / command, "--no-such-flag"], capture_output=True, text=True)

    assert done.returncode == 2
    assert "--no-such-flag" in done.stderr


def test_the_wheel_holds_our_three_packages_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}

    assert {"cgpu", "deviceplugin", "extender"} == {top for top in tops if not top.endswith((".dist-info", ".data"))}


def test_every_source_file_says_its_licence() -> None:
    listed = subprocess.run(["git", "ls-files", "*.py", "*.c", "*.h", "*.sh"], cwd=ROOT, capture_output=True, text=True)
    generated = ("cgpu/kubelet/",)
    sources = [name for name in listed.stdout.split() if not name.startswith(generated)]
    want = {name: "GPL-2.0" if name.startswith(KERNEL) else "Apache-2.0" for name in sources}

    bare = [name for name in sources if f"SPDX-License-Identifier: {want[name]}" not in _head(ROOT / name)]
    assert sources
    assert bare == []


def _is_kernel_code(path: Path) -> bool:
    """All of kmod/, and the modules that tests load."""
    return path.is_relative_to(ROOT / "kmod") or "MODULE_LICENSE" in path.read_text()


def _head(path: Path) -> str:
    return "\n".join(path.read_text().splitlines()[:3])


def test_the_wheel_brings_the_front_of_the_runtime_as_it_is(wheel: zipfile.ZipFile) -> None:
    (script,) = [name for name in wheel.namelist() if name.endswith(".data/scripts/cgpu-runtime")]

    assert wheel.read(script) == (ROOT / "cgpu/runtime/front.sh").read_bytes()
