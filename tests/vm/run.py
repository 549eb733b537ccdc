# SPDX-License-Identifier: Apache-2.0
"""Runs a script in a virtual machine with the simulated driver, or opens a shell there.

    python -m tests.vm.run SCRIPT          # what `make vm-run SCRIPT=...` calls
    python -m tests.vm.run shell           # what `make vm-shell` calls; leave with Ctrl-]

BRANCH (418 450 460 470 535 550, or none), CARDS (a comma list), TOTAL_MIB, KERNEL, CGPU=0, CUDA=1, MEMORY (MiB) and TIMEOUT
(seconds) choose, as environment variables or options. The script's output is ours; its exit code too.
"""

import argparse
import os
import select
import sys
import tempfile
import termios
import time
import tty
from pathlib import Path

from tests.vm.bench import Choice, boot
from tests.vm.cache import say
from tests.vm.errors import BenchError
from tests.vm.machine import Machine, Sink

LEAVE = b"\x1d"


def parse_choice(arguments: argparse.Namespace) -> Choice:
    """The machine that the command line and the environment ask for."""
    return Choice(
        branch=arguments.branch,
        cards=arguments.cards,
        kernel=arguments.kernel,
        total_mib=arguments.total_mib or None,
        cgpu=arguments.cgpu != "0",
        cuda=arguments.cuda not in ("", "0"),
        memory_mib=arguments.memory,
    )


def run_script(machine: Machine, script: Path, timeout: float) -> int:
    """Runs a script with its output passed through; returns its exit code and says it."""
    result = machine.run(script.read_bytes(), timeout=timeout, sinks=(to(sys.stdout.fileno()), to(sys.stderr.fileno())))
    print(f"vm-run: script exit {result.code}", file=sys.stderr, flush=True)
    return result.code


def to(descriptor: int) -> Sink:
    """A sink that writes everything to a file descriptor at once."""

    def write(data: bytes) -> None:
        while data:
            data = data[os.write(descriptor, data) :]

    return write


def shell(machine: Machine) -> int:
    """Joins the terminal and the guest's console until Ctrl-] or the guest's end."""
    say("the guest's shell; Ctrl-] leaves and ends the machine")
    console = machine.console_socket()
    saved = termios.tcgetattr(0) if sys.stdin.isatty() else None
    if saved is not None:
        size = os.get_terminal_size(0)
        machine.run(f"stty -F /dev/ttyS0 rows {size.lines} cols {size.columns}")
    try:
        if saved is not None:
            tty.setraw(0)
        console.sendall(b"\n")
        while machine.alive:
            ready, _, _ = select.select([0, console.fileno()], [], [], 1.0)
            if console.fileno() in ready:
                data = console.recv(65536)
                if not data:
                    return 0
                os.write(1, data)
            if 0 in ready:
                typed = os.read(0, 4096)
                if not typed or LEAVE in typed:
                    return 0
                console.sendall(typed)
    finally:
        if saved is not None:
            termios.tcsetattr(0, termios.TCSADRAIN, saved)
        console.close()
    return 0


def main(argv: list[str] | None = None) -> int:
    """The command line; see the module's text."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.vm.run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("script", nargs="?", help="a script for bash (or what its first line names), or `shell`")
    parser.add_argument("--shell", action="store_true", help="the same as the word shell")
    for name, default in (
        ("branch", "535"),
        ("cards", "T4"),
        ("kernel", "6.1"),
        ("total-mib", ""),
        ("cgpu", "1"),
        ("cuda", ""),
        ("memory", "2048"),
        ("timeout", "900"),
    ):
        kind = {"memory": int, "timeout": float}.get(name, str)
        value = os.environ.get(name.replace("-", "_").upper()) or default
        parser.add_argument(f"--{name}", type=kind, default=value)
    arguments = parser.parse_args(argv)
    wants_shell = arguments.shell or arguments.script == "shell"
    if not wants_shell and not (arguments.script and Path(arguments.script).is_file()):
        parser.error(f"SCRIPT={arguments.script or ''} names no file; make vm-run SCRIPT=path/to/script")
    started = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="cgpu-vm-") as folder:
            machine = boot(parse_choice(arguments), Path(folder))
            try:
                say(f"ready after {time.monotonic() - started:.1f} s (QEMU {machine.boot_seconds:.1f} s)")
                return shell(machine) if wants_shell else run_script(machine, Path(arguments.script), arguments.timeout)
            finally:
                machine.stop()
    except BenchError as error:
        say(str(error))
        return 125


if __name__ == "__main__":
    sys.exit(main())
