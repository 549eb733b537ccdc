# SPDX-License-Identifier: Apache-2.0
"""Other people's parts of a GPU host, for tests only: NVIDIA's container toolkit, and a Docker with CDI names.

    python -m tests.vm.toolkit        # prints the two folders

The toolkit is built from its Go module against the guest's C library. The Docker is that of the Debian after the guest's;
its programs need nothing that the guest's C library lacks, so they run there, over the guest's own runc and crun.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from cgpu.sandbox.binaries import go_environment, imports_text, module_text
from cgpu.sandbox.golang import find_go
from cgpu.sandbox.versions import Source
from tests.vm.apt import Suite, need_programs
from tests.vm.cache import cache_root, ensure, say
from tests.vm.errors import BenchError
from tests.vm.image import folder_disk
from tests.vm.programs import sysroot

_MODULE: Final = "github.com/NVIDIA/nvidia-container-toolkit"
_PROGRAMS: Final = ("nvidia-container-runtime", "nvidia-container-runtime-hook", "nvidia-ctk", "nvidia-cdi-hook")
TOOLKIT: Final = Source(
    name="nvidia-container-toolkit",
    version="1.20.2",
    module=_MODULE,
    mains={name: f"{_MODULE}/cmd/{name}" for name in _PROGRAMS},
)
# The driver's libraries are loaded when a program calls them, so their functions stay open until then.
_LINKER: Final = "-Wl,--export-dynamic -Wl,--unresolved-symbols=ignore-in-object-files -Wl,-z,lazy"
DOCKER_SUITE: Final = "trixie"
DOCKER: Final = ("docker.io", "docker-cli", "containerd")
DOCKER_PROGRAMS: Final = (
    "usr/sbin/dockerd",
    "usr/bin/docker",
    "usr/bin/containerd",
    "usr/bin/containerd-shim-runc-v2",
    "usr/bin/ctr",
)


def fetch_toolkit() -> Path:
    """The folder with the toolkit's programs. BenchError with the compiler's last words."""

    def build(place: Path) -> None:
        need_programs({"gcc-12": "gcc-12"})
        go = find_go(cache_root(), say)
        environment = go_environment(go) | {
            "CGO_ENABLED": "1",
            "CC": f"gcc-12 --sysroot={sysroot()} -B{sysroot()}/usr/lib/x86_64-linux-gnu",
        }
        with tempfile.TemporaryDirectory(prefix="cgpu-go-") as folder:
            Path(folder, "go.mod").write_text(module_text(TOOLKIT, go))
            Path(folder, "programs.go").write_text(imports_text(TOOLKIT))
            for name, package in TOOLKIT.mains.items():
                say(f"{TOOLKIT.key}: building {name}")
                flags = ["-trimpath", "-ldflags", f"-s -w '-extldflags={_LINKER}'", "-o", str(place / name)]
                _go([str(go.program), "build", *flags, package], Path(folder), environment)

    recipe = [1, TOOLKIT.version, _LINKER]
    return ensure(cache_root() / "bin" / TOOLKIT.key, recipe, build, f"{TOOLKIT.key} (about two minutes)")


def _go(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(["nice", *command], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise BenchError(f"`{' '.join(command)}` ended with {done.returncode}:\n{done.stderr[-2000:]}")


def fetch_docker() -> Path:
    """The folder with the programs of the newer Docker, and its containerd."""

    def build(place: Path) -> None:
        unpacked = place / "unpacked"
        Suite(DOCKER_SUITE).unpack(DOCKER, unpacked)
        for name in DOCKER_PROGRAMS:
            (unpacked / name).rename(place / Path(name).name)
        shutil.rmtree(unpacked)

    return ensure(cache_root() / "docker" / DOCKER_SUITE, [1, DOCKER, DOCKER_PROGRAMS], build, "a Docker with CDI")


def disks() -> dict[str, Path]:
    """Both as disks of a machine: /opt/toolkit and /opt/docker."""
    return {
        "toolkit": folder_disk("toolkit", fetch_toolkit(), [1, TOOLKIT.version, _LINKER]),
        "docker": folder_disk("docker", fetch_docker(), [1, DOCKER, DOCKER_PROGRAMS, os.fspath(DOCKER_SUITE)]),
    }


if __name__ == "__main__":
    print(fetch_toolkit(), fetch_docker(), sep="\n", file=sys.stdout)
