# SPDX-License-Identifier: Apache-2.0
"""A small kernel with every check on (KASAN, lockdep, kmemleak, KUnit), compiled from Debian's own sources.

It is compiled once, at the lowest priority, and takes many minutes; `make soak` uses it.
"""

import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Final

from tests.vm.apt import Suite, need_programs, run
from tests.vm.cache import say
from tests.vm.errors import BenchError

SOURCE: Final = "linux-source-6.1"
CONFIG: Final = Path(__file__).parent / "data/debug.config"
PROGRAMS: Final = {
    "make": "make",
    "gcc-12": "gcc-12",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "/usr/include/libelf.h": "libelf-dev",
    "/usr/include/openssl/opensslv.h": "libssl-dev",
}
PROGRESS_LINES: Final = 200


def missing_settings(wanted: str, config: str) -> list[str]:
    """The settings of a fragment that a finished configuration does not have."""
    lines = set(config.splitlines())
    settings = [line for line in wanted.splitlines() if re.match(r"CONFIG_\w+=|# CONFIG_\w+ is not set", line)]
    return [
        line for line in settings if line not in lines and not (line.startswith("# ") and line.split()[1] not in config)
    ]


def configure(source: Path) -> None:
    """Writes the configuration; BenchError when the kernel does not take a setting."""
    run(["make", "-s", "CC=gcc-12", "tinyconfig"], cwd=source)
    with (source / ".config").open("a") as config:
        config.write(CONFIG.read_text())
    run(["make", "-s", "CC=gcc-12", "olddefconfig"], cwd=source)
    missing = missing_settings(CONFIG.read_text(), (source / ".config").read_text())
    if missing:
        raise BenchError(
            f"the kernel's configuration refuses {', '.join(missing)}; see what they depend on in {CONFIG}"
        )


def compile_kernel(source: Path) -> None:
    """Runs make at the lowest priority and says how far it is."""
    command = ["nice", "-n", "19", "make", f"-j{os.cpu_count() or 1}", "CC=gcc-12", "bzImage", "modules"]
    last: list[str] = []
    with subprocess.Popen(command, cwd=source, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as making:
        assert making.stdout is not None
        for number, line in enumerate(making.stdout, 1):
            last = [*last[-19:], line]
            if number % PROGRESS_LINES == 0:
                say(f"compiling the debug kernel, {number} steps: {line.strip()}")
    if making.returncode:
        raise BenchError(f"the debug kernel does not compile:\n{''.join(last)}")


def build(scratch: Path) -> str:
    """Compiles the kernel below `scratch` as `kernels.Kernel` wants it; returns its release."""
    need_programs(PROGRAMS)
    Suite("bookworm").unpack([SOURCE], scratch / "package")
    say(f"unpacking {SOURCE}")
    with tarfile.open(next((scratch / "package/usr/src").glob("linux-source-*.tar.xz"))) as archive:
        archive.extractall(scratch / "source", filter="tar")
    shutil.rmtree(scratch / "package")
    source = next((scratch / "source").iterdir())
    source.rename(scratch / "headers")
    configure(scratch / "headers")
    compile_kernel(scratch / "headers")
    run(["make", "-s", f"INSTALL_MOD_PATH={scratch}", "modules_install"], cwd=scratch / "headers")
    shutil.copy2(scratch / "headers/arch/x86/boot/bzImage", scratch / "vmlinuz")
    for objects in (scratch / "headers").rglob("*.o"):
        if "scripts" not in objects.parts and "tools" not in objects.parts:
            objects.unlink()
    release = run(["make", "-s", "kernelrelease"], cwd=scratch / "headers").strip()
    for link in ("build", "source"):
        (scratch / "lib/modules" / release / link).unlink(missing_ok=True)
    return release
