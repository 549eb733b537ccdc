# SPDX-License-Identifier: Apache-2.0
"""The computer that QEMU plays: processors, clock, memory, disks, and the command that starts it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.vm.emulator import emulator
from tests.vm.kernels import Kernel

# cmpxchg16b of older emulators leaves wrong flags and no program needs it. Five-level page tables only make each miss
# of the emulated TLB dearer.
CPU: Final = "max,cx16=off,la57=off"
APPEND: Final = (
    "console=ttyS0 loglevel=5 panic_on_warn=1 oops=panic panic=-1 softlockup_panic=1 mitigations=off nokaslr "
    "net.ifnames=0 tsc=reliable clocksource=tsc random.trust_cpu=on"
)
# By the host's clock the guest is as late as the host is loaded. By counted time an instruction takes a nanosecond and
# nothing else takes any, sleep included: the guest is on time however slow its emulation, but has one processor, since
# waiting for another would last until the next timer.
CLOCKS: Final[Mapping[str, tuple[str, ...]]] = {
    "host": ("-accel", "tcg,thread=multi,tb-size=256"),
    "counted": ("-accel", "tcg,thread=single,tb-size=256", "-icount", "shift=0,sleep=off", "-rtc", "clock=vm"),
}


@dataclass(frozen=True, slots=True)
class Hardware:
    """What QEMU is to provide: kernel, disks by serial name (`root`, `modules`, else mounted on /opt/<name>), sizes.

    `clock` is one of CLOCKS; `boot_seconds` are always the host's.
    """

    kernel: Kernel
    initrd: Path
    disks: Mapping[str, Path]
    memory_mib: int = 2048
    cpus: int = 2
    append: str = ""
    devices: tuple[str, ...] = ()
    boot_seconds: float = 240.0
    clock: str = "host"


def command_line(hardware: Hardware, folder: Path) -> list[str]:
    """The QEMU command of a machine whose sockets lie in `folder`; it dies with the thread that starts it."""
    command = [
        "setpriv",
        "--pdeathsig",
        "KILL",
        *emulator(),
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
        "-no-reboot",
        *CLOCKS[hardware.clock],
        "-cpu",
        CPU,
        "-smp",
        str(hardware.cpus),
        "-m",
        str(hardware.memory_mib),
        "-kernel",
        str(hardware.kernel.image),
        "-initrd",
        str(hardware.initrd),
        "-append",
        f"{APPEND} bench.disks={len(hardware.disks)} {hardware.append}".strip(),
        "-object",
        "rng-random,filename=/dev/urandom,id=random",
        "-device",
        "virtio-rng-pci,rng=random",
        "-chardev",
        f"socket,id=console,path={folder}/console,server=on,wait=off,logfile={folder}/console.log",
        "-serial",
        "chardev:console",
        "-chardev",
        f"socket,id=agent,path={folder}/agent,server=on,wait=off",
        "-device",
        "virtio-serial-pci",
        "-device",
        "virtserialport,chardev=agent,name=bench",
    ]
    for name, disk in hardware.disks.items():
        writable = name.startswith("rw-")
        command += [
            "-drive",
            f"file={disk},format=raw,if=none,id={name},cache=unsafe,{'' if writable else 'readonly=on'}".rstrip(","),
            "-device",
            f"virtio-blk-pci,drive={name},serial={name}",
        ]
    return [*command, *hardware.devices]
