# SPDX-License-Identifier: Apache-2.0
"""The guest's disks: a Debian 12 root, a kernel's modules, and folders of the host, all read-only and shared.

    python -m tests.vm.image          # build what a boot with the default kernel needs

The root serves any kernel of `kernels.py` and both uses: the test bench and a Kubernetes node (containerd, runc and
crun, cgroup v2). Each boot lays a tmpfs over it. Disks are squashfs without compression: what costs time under TCG is
the guest's own work, not bytes read by the host.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.vm.apt import find_mirror, need_programs, run
from tests.vm.cache import cache_root, ensure, file_digest, say
from tests.vm.containers import BUSYBOX_VERSION, write_busybox
from tests.vm.errors import BenchError
from tests.vm.kernels import Kernel, fetch

SUITE: Final = "bookworm"
PACKAGES: Final = (
    "busybox-static",
    "ca-certificates",
    "containerd",
    "containernetworking-plugins",
    "crun",
    "docker.io",
    "dropbear-bin",
    "gcc",
    "iproute2",
    "iptables",
    "kmod",
    "libc6-dev",
    "libelf1",
    "make",
    "podman",
    "procps",
    "python3",
    "runc",
    "strace",
    "systemd-sysv",
    "util-linux",
)
PROGRAMS: Final = {
    "debootstrap": "debootstrap",
    "mksquashfs": "squashfs-tools",
    "cpio": "cpio",
    "busybox": "busybox-static",
    "modprobe": "kmod",
}
USELESS: Final = (
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "usr/share/info",
    "var/lib/apt/lists",
    "var/cache/apt",
)
GUEST: Final = Path(__file__).parent / "guest"
BOOT_MODULES: Final = ("virtio_pci", "virtio_blk", "virtio_console", "virtio_net", "virtio_rng", "squashfs", "overlay")
MODULE_FOLDERS: Final = (
    "arch",
    "block",
    "crypto",
    "fs",
    "lib",
    "mm",
    "net",
    "drivers/block",
    "drivers/char",
    "drivers/net",
    "drivers/virtio",
    "drivers/md",
)


def squash(source: Path, disk: Path, *more: str) -> None:
    """Writes a folder as an uncompressed squashfs, owned by root."""
    plain = ("-noI", "-noD", "-noF", "-noX", "-no-progress", "-quiet", "-all-root", "-no-exports", "-noappend")
    run(["mksquashfs", str(source), str(disk), *plain, *more])


def build_root(place: Path) -> None:
    """Makes the Debian root with every package of the bench, and the container image inside it."""
    need_programs(PROGRAMS)
    root = place / "root"
    command = ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE, str(root), find_mirror()]
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as running:
        assert running.stdout is not None
        lines = []
        for line in running.stdout:
            lines.append(line)
            if len(lines) % 100 == 0:
                say(f"debootstrap, {len(lines)} lines: {line.strip()}")
    if running.returncode:
        raise BenchError(f"debootstrap ended with {running.returncode}:\n" + "".join(lines[-20:]))
    for folder in USELESS:
        shutil.rmtree(root / folder, ignore_errors=True)
    for name in ("lower", "upper", "new", "opt/images"):
        (root / name).mkdir(parents=True, exist_ok=True)
    write_busybox(root / "opt/images/busybox.tar", root)
    (root / "etc/hostname").write_text("vm\n")
    (root / "etc/resolv.conf").unlink(missing_ok=True)
    say("writing the root disk")
    squash(root, place / "root.img")
    shutil.rmtree(root)


def root_disk() -> Path:
    """The root disk, built once for a list of packages."""
    recipe = [1, SUITE, PACKAGES, BUSYBOX_VERSION]
    place = cache_root() / "vm" / "root"
    return ensure(place, recipe, build_root, "the Debian root (about three minutes)") / "root.img"


def boot_modules(kernel: Kernel) -> list[Path]:
    """The modules that the first program must load to reach the disks, dependencies first."""
    files: dict[str, None] = {}
    for name in BOOT_MODULES:
        shown = run(["modprobe", "-d", str(kernel.root), "-S", kernel.release, "--show-depends", name])
        files.update(dict.fromkeys(re.findall(r"^insmod (\S+)", shown, re.MULTILINE)))
    return [Path(file) for file in files if "crc32c-intel" not in file]


def build_kernel_disks(kernel: Kernel, place: Path) -> None:
    """Writes the initial RAM disk and the disk of modules of a kernel."""
    start = place / "start"
    for name in ("bin", "modules", "proc", "sys", "dev", "lower", "upper", "new"):
        (start / name).mkdir(parents=True)
    shutil.copy2(shutil.which("busybox") or "/bin/busybox", start / "bin/busybox")
    for number, module in enumerate(boot_modules(kernel)):
        shutil.copy2(module, start / "modules" / f"{number:02}-{module.name}")
    shutil.copy2(GUEST / "initrd-init", start / "init")
    run(["sh", "-c", f"cd '{start}' && find . | cpio -o -H newc --quiet -R 0:0 | gzip -1 > '{place}/initrd.gz'"])
    shutil.rmtree(start)
    chosen = place / "modules"
    (chosen / "lib/modules" / kernel.release).mkdir(parents=True)
    for folder in MODULE_FOLDERS:
        if (kernel.modules / "kernel" / folder).is_dir():
            shutil.copytree(
                kernel.modules / "kernel" / folder, chosen / f"lib/modules/{kernel.release}/kernel" / folder
            )
    for name in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
        shutil.copy2(kernel.modules / name, chosen / "lib/modules" / kernel.release / name)
    run(["depmod", "-b", str(chosen), kernel.release])
    squash(chosen / "lib/modules" / kernel.release, place / "modules.img")
    shutil.rmtree(chosen)


def kernel_disks(kernel: Kernel) -> Path:
    """The folder with `initrd.gz` and `modules.img` of a kernel."""
    need_programs(PROGRAMS)
    recipe = [2, kernel.release, BOOT_MODULES, MODULE_FOLDERS, file_digest([GUEST / "initrd-init"])]
    place = cache_root() / "vm" / f"kernel-{kernel.release}"
    return ensure(
        place, recipe, lambda scratch: build_kernel_disks(kernel, scratch), f"boot disks of Linux {kernel.release}"
    )


def folder_disk(name: str, folder: Path, recipe: object) -> Path:
    """A folder of the cache as a disk, kept by the recipe that the folder was built by."""
    place = cache_root() / "vm" / f"disk-{name}"
    return ensure(place, recipe, lambda scratch: squash(folder, scratch / "disk.img"), f"disk {name}") / "disk.img"


def project_files(project: Path) -> list[Path]:
    """The files of the project tree, as git sees them: tracked and new ones, ignored ones left out."""
    shown = run(["git", "-C", str(project), "ls-files", "-co", "--exclude-standard", "-z"])
    return sorted({Path(name) for name in shown.split("\0") if name and (project / name).is_file()})


def project_disk(project: Path, disk: Path) -> None:
    """Writes the project tree as it stands now, with the byte code that the host's Python left beside it."""
    with tempfile.TemporaryDirectory(dir=disk.parent) as staging:
        sources = project_files(project)
        compiled = [
            file.parent / "__pycache__" / f"{file.stem}.cpython-311.pyc" for file in sources if file.suffix == ".py"
        ]
        for file in [*sources, *(file for file in compiled if (project / file).is_file())]:
            target = Path(staging) / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(project / file, target)
        squash(Path(staging), disk)


def main() -> int:
    """Builds what a boot with the default kernel needs."""
    try:
        root_disk()
        kernel_disks(fetch("6.1"))
    except BenchError as error:
        say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
