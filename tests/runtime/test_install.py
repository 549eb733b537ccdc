# SPDX-License-Identifier: Apache-2.0
"""The scripts of deploy/docker on a host in a folder; in the virtual machine they run on a real one."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "deploy/docker"
TOOLS = "sh id find sed tr uname cut sort cat mkdir dirname rm cp mv ln chmod readlink kill grep echo env"
Sh = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A Debian 12 with Docker's configuration."""
    place = tmp_path / "root"
    for folder in ("etc/docker", "usr/local/bin", "opt", "run", "var/log", "proc"):
        (place / folder).mkdir(parents=True)
    (place / "etc/os-release").write_text('PRETTY_NAME="Debian GNU/Linux 12"\nVERSION_ID="12"\nID=debian\n')
    (place / "etc/docker/daemon.json").write_text('{"log-driver": "journald"}\n')
    return place


@pytest.fixture
def sh(root: Path, tmp_path: Path) -> Sh:
    """Runs a script with a PATH on which there are few tools, and `more` of them."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in TOOLS.split():
        if found := shutil.which(name):
            (tools / name).symlink_to(found)

    def run(
        script: str, *words: str, python: str = "3.11", more: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        if python == "3.11":
            stubs = {"python3": f'exec {Path(sys.executable).resolve()} "$@"', **(more or {})}
        else:
            stubs = {"python3": "exit 1", **(more or {})}
        for name, text in stubs.items():
            (tools / name).unlink(missing_ok=True)
            (tools / name).write_text(f"#!/bin/sh\n{text}\n")
            (tools / name).chmod(0o755)
        env = {"PATH": str(tools), "CGPU_ROOT": str(root), "HOME": os.environ.get("HOME", "/")}
        return subprocess.run(["/bin/sh", SCRIPTS / script, *words], capture_output=True, text=True, env=env)

    return run


def tree(root: Path) -> dict[str, str]:
    """Every file with its text, every link with its target; of what is compiled the name."""
    found = {}
    for path in sorted(root.rglob("*")):
        if (path.is_symlink() or path.is_file()) and path.suffix != ".pyc":
            compiled = path.suffix == ".bin"
            text = str(path.readlink()) if path.is_symlink() else "" if compiled else path.read_text()
            found[str(path.relative_to(root))] = text
    return found


def test_in_and_out_leaves_the_host_as_it_was(sh: Sh, root: Path) -> None:
    before = tree(root)
    installed = sh("install.sh", "--no-module")
    assert installed.returncode == 0, installed.stderr
    during = tree(root)
    removed = sh("uninstall.sh", "--no-module")

    assert removed.returncode == 0, removed.stderr
    assert json.loads(during["etc/docker/daemon.json"])["default-runtime"] == "cgpu"
    assert during["usr/local/bin/nvidia-container-runtime-hook"].endswith("/cgpu-gpus-hook")
    assert tree(root) == before


def test_the_installed_commands_work(sh: Sh, root: Path) -> None:
    sh("install.sh", "--no-module")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([root / "usr/local/bin" / words[0], *words[1:]], capture_output=True, text=True, cwd="/")

    assert run("cgpu", "--version").stdout.startswith("cgpu ")
    assert run("cgpu-smi", "--help").returncode == 0
    assert run("cgpu-runtime", "--version").stdout == subprocess.check_output(["runc", "--version"], text=True)
    assert (
        "cgpu: /nowhere/config.json cannot be read" in run("cgpu-runtime", "create", "--bundle", "/nowhere", "x").stderr
    )
    assert "--gpus needs cgpu-runtime" in run("nvidia-container-runtime-hook").stderr


def test_a_start_reads_one_file_if_it_is_of_this_python(sh: Sh, root: Path) -> None:
    """Without the folder's sources only that file can have answered; made by another Python it is passed over."""
    sh("install.sh", "--no-module")
    refusal = "cgpu: /nowhere/config.json cannot be read"
    [made] = (root / "opt/cgpu").rglob("modules.bin")
    for source in made.parents[1].rglob("*.py"):
        if source.name != "__main__.py":
            source.rename(source.with_suffix(".away"))
    asked = [str(root / "usr/local/bin/cgpu-runtime"), "create", "--bundle", "/nowhere", "x"]

    assert refusal in subprocess.run(asked, capture_output=True, text=True).stderr
    made.write_bytes(b"\0" + made.read_bytes()[1:])
    assert "light_json" in subprocess.run(asked, capture_output=True, text=True).stderr
    for source in made.parents[1].rglob("*.away"):
        source.rename(source.with_suffix(".py"))
    assert refusal in subprocess.run(asked, capture_output=True, text=True).stderr


def test_a_second_installation_changes_nothing(sh: Sh, root: Path) -> None:
    sh("install.sh", "--no-module")
    (root / "etc/cgpu/config.toml").write_text('runtime = "crun"\n')
    first = tree(root)
    assert sh("install.sh", "--no-module").returncode == 0

    assert tree(root) == first


@pytest.mark.parametrize("script", ["install.sh", "upgrade.sh", "uninstall.sh"])
def test_a_dry_run_says_everything_and_does_nothing(sh: Sh, root: Path, script: str) -> None:
    if script != "install.sh":
        sh("install.sh", "--no-module")
    before = tree(root)
    done = sh(script, "--dry-run", more={"dkms": "echo dkms must not run; exit 1"})

    assert done.returncode == 0, done.stderr
    assert "would run: " in done.stdout
    assert ("dkms install" in done.stdout) == (script != "uninstall.sh")
    assert tree(root) == before


@pytest.mark.parametrize(
    ("id_", "release", "packages"),
    [
        pytest.param("debian", "12", "apt-get install", id="Debian"),
        pytest.param("ubuntu", "22.04", "apt-get install", id="Ubuntu"),
        pytest.param("centos", "7", "dnf install python3.11", id="CentOS"),
        pytest.param("almalinux", "9.4", "dnf install python3.11", id="AlmaLinux"),
        pytest.param("alinux", "3", "dnf install python3.11", id="Alibaba Cloud Linux"),
    ],
)
def test_a_python_that_is_too_old_is_refused_with_the_systems_own_remedy(
    sh: Sh, root: Path, id_: str, release: str, packages: str
) -> None:
    (root / "etc/os-release").write_text(f'ID="{id_}"\nVERSION_ID="{release}"\n')
    done = sh("install.sh", "--no-module", python="3.9")

    assert done.returncode == 1
    assert f"cgpu: {id_} {release}, Linux " in done.stdout
    assert f"install.sh: Python 3.11 or newer is needed: {packages}" in done.stderr


SYSTEMS = [
    pytest.param("ubuntu", "22.04", id="Ubuntu"),
    pytest.param("centos", "8", id="CentOS"),
    pytest.param("almalinux", "9.4", id="AlmaLinux"),
    pytest.param("alinux", "3", id="Alibaba Cloud Linux"),
]


@pytest.mark.parametrize(("id_", "release"), SYSTEMS)
def test_every_system_gets_module_unit_and_signing_steps(
    sh: Sh, root: Path, tmp_path: Path, id_: str, release: str
) -> None:
    """DKMS builds and installs, the unit goes before dockerd; where Secure Boot keeps the module out, it says what to enrol.

    The same at an upgrade; and the host is left as it was found.
    """
    (root / "etc/os-release").write_text(f'ID="{id_}"\nVERSION_ID="{release}"\n')
    (root / "run/systemd/system").mkdir(parents=True)
    called, before = tmp_path / "called", tree(root)
    tools = {name: f'echo "{name} $*" >> {called}' for name in ("dkms", "systemctl")}
    tools["mokutil"] = "echo SecureBoot enabled"
    built = [
        "dkms add -m cgpu_km -v 1.0.0 --force", "dkms install -m cgpu_km -v 1.0.0 --force",
        "systemctl daemon-reload", "systemctl enable cgpu.service",
    ]  # fmt: skip
    done = sh("install.sh", more=tools)

    assert called.read_text().splitlines() == built
    assert "Before=docker.service containerd.service" in (root / "etc/systemd/system/cgpu.service").read_text()
    assert done.returncode == 1, "there is no driver here, so the module cannot be loaded"
    assert "mokutil --import /var/lib/dkms/mok.pub" in done.stdout
    assert "install.sh: the module does not load: " in done.stderr
    assert json.loads((root / "etc/docker/daemon.json").read_text()) == {"log-driver": "journald"}

    assert "upgrade.sh: the module does not load: " in sh("upgrade.sh", more=tools).stderr
    assert called.read_text().splitlines() == built * 2
    assert sh("uninstall.sh", more=tools).returncode == 0
    assert called.read_text().splitlines()[len(built) * 2 :] == [
        "systemctl disable cgpu.service", "systemctl daemon-reload", "dkms remove -m cgpu_km -v 1.0.0 --all",
    ]  # fmt: skip
    assert tree(root) == before


def test_old_sources_go_when_new_ones_are_there(sh: Sh, root: Path, tmp_path: Path) -> None:
    (root / "usr/src/cgpu_km-0.9.0").mkdir(parents=True)
    called = tmp_path / "called"
    sh("install.sh", more={"dkms": f'echo "$*" >> {called}'})

    assert called.read_text().splitlines()[-1] == "remove -m cgpu_km -v 0.9.0 --all"
    assert [path.name for path in (root / "usr/src").iterdir()] == ["cgpu_km-1.0.0"]


@pytest.mark.parametrize("id_", ["arch", "opensuse-leap", "fedora", "alpine"])
def test_another_system_is_refused_by_name(sh: Sh, root: Path, id_: str) -> None:
    (root / "etc/os-release").write_text(f"ID={id_}\nVERSION_ID=1\n")
    done = sh("install.sh")

    assert done.returncode == 1
    assert f"{id_} 1 is not supported: Debian, Ubuntu, CentOS" in done.stderr


def test_nvidias_own_hook_stays(sh: Sh, root: Path) -> None:
    assert sh("install.sh", "--no-module", more={"nvidia-container-runtime-hook": ":"}).returncode == 0
    assert not (root / "usr/local/bin/nvidia-container-runtime-hook").is_symlink()


@pytest.mark.parametrize(
    ("words", "done"),
    [
        pytest.param(["upgrade.sh"], "containers have shares: 0123456789ab ; stop them", id="cold upgrade"),
        pytest.param(["uninstall.sh"], "containers have shares: 0123456789ab ; end them", id="uninstall"),
    ],
)
def test_nothing_is_taken_from_below_running_containers(sh: Sh, root: Path, words: list[str], done: str) -> None:
    sh("install.sh", "--no-module")
    (root / "proc/cgpu_km").mkdir()
    (root / "proc/cgpu_km/inst_ctl").write_text("0123456789ab gpu=0 inst=0\n0123456789ab gpu=1 inst=0\n")
    refused = sh(*words)

    assert refused.returncode == 1
    assert done in refused.stderr
    assert json.loads((root / "etc/docker/daemon.json").read_text())["default-runtime"] == "cgpu"


@pytest.mark.parametrize("script", ["upgrade.sh", "uninstall.sh"])
def test_without_an_installation(sh: Sh, script: str) -> None:
    done = sh(script)

    assert (done.returncode, "cgpu is not installed" in done.stderr) == (1, True)


@pytest.mark.parametrize("script", ["install.sh", "upgrade.sh", "uninstall.sh"])
def test_usage(sh: Sh, script: str) -> None:
    done = sh(script, "--sideways")

    assert (done.returncode, done.stderr.startswith(f"usage: sh {script} [--dry-run]")) == (2, True)


def test_the_shipped_example_is_every_key_with_its_default() -> None:
    from cgpu.runtime.config import Config, parse_config  # noqa: PLC0415

    text = (SCRIPTS / "config.toml.example").read_text()
    settings = [line.removeprefix("# ") for line in text.splitlines() if re.match("# [a-z_]+ = ", line)]

    assert parse_config("\n".join(settings).encode(), "f") == Config()
    assert len(settings) == len(Config._fields)
