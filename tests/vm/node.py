# SPDX-License-Identifier: Apache-2.0
"""The machine of a Kubernetes node, for `cgpu sandbox`: every disk is built or found, and QEMU's command is printed.

    python -m tests.vm.node FOLDER --branch 535 --cards T4,T4 --programs kubelet ... --store DIR --files DIR

The sandbox starts that command itself and knows nothing of disks. FOLDER takes the files of this one machine. In the
guest: `/opt/node` (`--files`; its `boot` is run), `/opt/kubernetes` (`--programs`), the containerd folder `--store` on
a disk that forgets what is written, `/opt/dkms` (the product's module as DKMS would have built it), `/opt/headers`.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Final

from tests.vm.apt import need_programs, run
from tests.vm.bench import PROJECT, Choice, hardware
from tests.vm.cache import cache_root, digest, ensure, say
from tests.vm.errors import BenchError
from tests.vm.hardware import command_line
from tests.vm.image import folder_disk, squash
from tests.vm.kernels import Kernel, build_modules, fetch

STORE_GIB: Final = 6  # sparse: what pods write goes to a file of QEMU's own that is gone with it
TIED: Final = ["setpriv", "--pdeathsig", "KILL"]  # of a test's machine, which dies with the test


def programs_disk(programs: list[Path]) -> Path:
    """The node's programs, kept by their paths: these name the versions."""
    recipe = [1, sorted(map(str, programs))]

    def build(place: Path) -> None:
        (place / "bin").mkdir()
        run(["cp", "-L", *map(str, programs), str(place / "bin")])
        squash(place / "bin", place / "disk.img")
        run(["rm", "-r", str(place / "bin")])

    place = cache_root() / "vm" / f"disk-kubernetes-{digest(recipe)}"
    return ensure(place, recipe, build, "disk of the node's programs") / "disk.img"


def store_disk(store: Path) -> Path:
    """A containerd folder as a file system that its snapshots can live on; `store`'s name changes with its content."""
    need_programs({"mke2fs": "e2fsprogs"})

    def build(place: Path) -> None:
        command = ["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-m", "0", "-E", "root_owner=0:0"]
        run([*command, "-d", str(store), str(place / "disk.img"), f"{STORE_GIB}G"])

    return ensure(cache_root() / "vm" / "disk-containerd", [1, store.name], build, "disk of images") / "disk.img"


def headers_disk(kernel: Kernel) -> Path:
    """The kernel's headers; their files name the folder that they were unpacked to, so the guest binds them there."""
    return folder_disk(f"headers-{kernel.release}", kernel.root / "usr", [2, kernel.release])


def settings(kernel: Kernel) -> str:
    """What the guest's boot needs to put the headers where they believe to be."""
    return f"RELEASE={kernel.release}\nHEADERS={kernel.root / 'usr'}\n"


def node_command(options: argparse.Namespace) -> list[str]:
    """QEMU's command for this node; its disks are there afterwards."""
    choice = Choice(
        branch=options.branch,
        cards=options.cards,
        kernel=options.kernel,
        total_mib=options.total_mib or None,
        cgpu=False,
        cuda=False,
        memory_mib=options.memory,
        cpus=options.cpus,
        # a host that gives no time for half a minute is no fault of the node's kernel
        append=f"bench.name={options.name} softlockup_panic=0",
    )
    folder: Path = options.folder
    kernel = fetch(choice.kernel)
    (options.files / "kernel.env").write_text(settings(kernel))
    squash(options.files, folder / "node.img")
    squash(build_modules(kernel, PROJECT / "kmod"), folder / "dkms.img")
    extra = {
        "node": folder / "node.img",
        "dkms": folder / "dkms.img",
        "kubernetes": programs_disk(options.programs),
        "headers": headers_disk(kernel),
    }
    forgetful = (
        "-drive",
        f"file={store_disk(options.store)},format=raw,if=none,id=containerd,cache=unsafe,snapshot=on",
        "-device",
        "virtio-blk-pci,drive=containerd,serial=rw-containerd",
    )
    command = command_line(hardware(choice, folder, extra, (*forgetful, *options.qemu)), folder)
    return command[len(TIED) :] if command[: len(TIED)] == TIED else command


def main() -> int:
    """The command line; see the module's text."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.vm.node", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    for name, default in (("branch", "535"), ("cards", "T4"), ("kernel", "6.1"), ("total-mib", ""), ("name", "vm")):
        parser.add_argument(f"--{name}", default=default)
    parser.add_argument("--memory", type=int, default=2048, help="MiB")
    parser.add_argument("--cpus", type=int, default=2)
    parser.add_argument("--programs", type=Path, nargs="+", required=True)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--files", type=Path, required=True)
    parser.add_argument("--qemu", action="append", default=[], metavar="WORD", help="a word more for QEMU")
    try:
        print(json.dumps(node_command(parser.parse_args())))
    except BenchError as error:
        say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
