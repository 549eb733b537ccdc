# SPDX-License-Identifier: Apache-2.0
"""A machine with the project in it: chosen kernel, driver branch and cards; modules built from the working tree.

In the guest: `/opt/nvidia` (the branch's user space), `/opt/cuda` (CuPy and CUDA's runtime), `/opt/project` (the working
tree), `/opt/python` (what the project's commands need), `/opt/bench` (agent, commands, modules).
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.vm import packages, toolkit
from tests.vm.cache import cache_root, ensure, file_digest, say
from tests.vm.errors import BenchError
from tests.vm.hardware import Hardware
from tests.vm.image import GUEST, folder_disk, kernel_disks, project_disk, root_disk, squash
from tests.vm.kernels import Flavour, build_modules, fetch, flavour_of
from tests.vm.machine import Machine

PROJECT: Final = Path(__file__).resolve().parents[2]
NO_DRIVER: Final = "none"
KNOWN_CARDS: Final = ("T4", "V100", "A10", "A100", "P4", "P100", "H100")


@dataclass(frozen=True, slots=True)
class Choice:
    """What a machine is to be: driver branch (or `none`), comma list of cards, kernel, MiB a card (None = its own).

    `more` names branches whose user space (and CUDA, if wanted) is there too: the guest's `play` takes one of them.
    `hosts` adds NVIDIA's container toolkit in `/opt/toolkit` and a newer Docker in `/opt/docker`.
    `clock` is the host's, or counted: then the guest's time is that of its instructions and of its sleeps, which are skipped.
    """

    branch: str = "535"
    cards: str = "T4"
    kernel: str = "6.1"
    total_mib: str | None = None
    cgpu: bool = True
    cuda: bool = False
    memory_mib: int = 2048
    cpus: int = 2
    append: str = ""
    more: tuple[str, ...] = ()
    hosts: bool = False
    clock: str = "host"

    def checked(self) -> "Choice":
        """Itself; BenchError for a branch or card that nobody simulates."""
        if self.branch != NO_DRIVER:
            packages.branch_of(self.branch)
        for branch in self.more:
            packages.branch_of(branch)
        unknown = [card for card in self.cards.split(",") if card not in KNOWN_CARDS]
        if unknown:
            raise BenchError(f"card {unknown[0]!r} is unknown; cards are a comma list of {', '.join(KNOWN_CARDS)}")
        return self


def python_disk() -> Path:
    """The locked dependencies of the project's commands, for the guest's Python."""
    lock = PROJECT / "requirements.lock"

    def build(place: Path) -> None:
        packages.install_for_guest(place / "site", "-r", str(lock))

    recipe = ["python", 2, file_digest([lock])]
    site = ensure(cache_root() / "vm" / "python", recipe, build, "the guest's Python packages") / "site"
    return folder_disk("python", site, recipe)


def modules_of(choice: Choice) -> list[Path]:
    """The .ko files that this choice loads: the simulated driver, and the product's modules where they exist."""
    kernel = fetch(choice.kernel)
    if choice.branch == NO_DRIVER:
        return []
    folders = [PROJECT / "kmod/nvsim"]
    if choice.cgpu and (PROJECT / "kmod/Kbuild").is_file():
        folders.append(PROJECT / "kmod")
    return [module for folder in folders for module in sorted(build_modules(kernel, folder).glob("*.ko"))]


def driver_settings(choice: Choice) -> str:
    """What the guest's `load-driver` reads."""
    load_product = choice.cgpu and flavour_of(choice.kernel).product
    if choice.cgpu and not load_product:
        say(f"the product's module refuses Linux {choice.kernel}: it is there but not loaded (load-cgpu shows why)")
    settings = {
        "BRANCH": choice.branch,
        "CARDS": choice.cards,
        "TOTAL_MIB": choice.total_mib or "",
        "CGPU": str(int(load_product)),
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def bench_disk(choice: Choice, disk: Path) -> None:
    """Writes the disk with the agent, the guest's commands, the modules and the driver's settings."""
    staging = disk.with_suffix(".d")
    shutil.copytree(GUEST, staging, ignore=shutil.ignore_patterns("__pycache__", "initrd-init"))
    shutil.copy2(PROJECT / "cgpu/sandbox/wire.py", staging)
    (staging / "modules").mkdir()
    for module in modules_of(choice):
        shutil.copy2(module, staging / "modules")
    (staging / "driver.env").write_text(driver_settings(choice))
    squash(staging, disk)
    shutil.rmtree(staging)


def nvidia_disk(branch: str) -> Path:
    """NVIDIA's user space of a branch as a disk."""
    return folder_disk(f"nvidia-{branch}", packages.fetch(branch), [1, packages.version_of(branch)])


def cuda_disk(toolkit: str) -> Path:
    """CuPy and the CUDA runtime of a toolkit as a disk."""
    return folder_disk(f"cuda-{toolkit}", packages.fetch_cuda(toolkit), [2, packages.CUDA[toolkit]])


def user_space_disks(choice: Choice) -> dict[str, Path]:
    """The disks with NVIDIA's user space of the branches, and CUDA where it is asked for."""
    if choice.branch == NO_DRIVER:
        return {}
    disks = {"nvidia": nvidia_disk(choice.branch)}
    disks |= {f"nvidia-{branch}": nvidia_disk(branch) for branch in choice.more}
    if choice.cuda:
        disks["cuda"] = cuda_disk(packages.cuda_of(choice.branch))
        disks |= {f"cuda-{toolkit}": cuda_disk(toolkit) for toolkit in sorted(set(map(packages.cuda_of, choice.more)))}
    return disks


def processors(flavour: Flavour, cpus: int) -> tuple[str, ...]:
    """QEMU's words for where a kernel's processors sit, where that matters."""
    return ("-smp", f"sockets={cpus},cores=1,threads=1") if flavour.sockets else ()


def hardware(
    choice: Choice, folder: Path, extra: Mapping[str, Path] | None = None, devices: tuple[str, ...] = ()
) -> Hardware:
    """Builds or finds every disk of a choice; `extra` disks appear on /opt/<name>, `rw-` ones as plain block devices."""
    choice.checked()
    kernel = fetch(choice.kernel)
    boot = kernel_disks(kernel)
    bench_disk(choice, folder / "bench.img")
    project_disk(PROJECT, folder / "project.img")
    disks = {
        "root": root_disk(),
        "modules": boot / "modules.img",
        "bench": folder / "bench.img",
        "project": folder / "project.img",
        "python": python_disk(),
        **user_space_disks(choice),
        **(toolkit.disks() if choice.hosts else {}),
        **(extra or {}),
    }
    flavour = flavour_of(choice.kernel)
    append = f"{flavour.append} {choice.append}".strip()
    sizes = (choice.memory_mib, choice.cpus)
    devices = (*processors(flavour, choice.cpus), *devices)
    return Hardware(kernel, boot / "initrd.gz", disks, *sizes, append, devices, flavour.boot_seconds, choice.clock)


def boot(choice: Choice, folder: Path) -> Machine:
    """Boots a machine of that choice in `folder`, driver loaded; the caller ends it with `stop()`."""
    machine = Machine(hardware(choice, folder), folder)
    try:
        machine.start()
        if choice.branch != NO_DRIVER:
            loaded = machine.run("load-driver")
            if loaded.code:
                said = machine.run("dmesg | tail -n 10").stdout
                raise BenchError(
                    f"the driver of branch {choice.branch} does not load:\n{loaded.stdout}{loaded.stderr}{said}"
                )
    except BaseException:
        machine.stop()
        raise
    return machine
