# SPDX-License-Identifier: Apache-2.0
"""`cgpu-smi`: which container uses how much of which GPU, and changes while it runs.

Everything but `set` works for any user; names of other users' processes need root where /proc hides them.
"""

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from cgpu.cli.status import ended
from cgpu.core.errors import InputError, UnavailableError
from cgpu.core.quantity import parse_bytes
from cgpu.core.smi import Look, Owner, Process, Row, Sample, Settings, as_json, process_table, rows_of, table
from cgpu.procfs import CgpuProc, Instance

_NOT_LOADED: Final = "the kernel module cgpu_km is not loaded: there is no /proc/cgpu_km; `cgpu module load` loads it"
_MEMINFO: Final = re.compile(r"PID: (\d+) Mem: (\d+)", re.ASCII)
_CLEAR: Final = "\x1b[H\x1b[2J"
_BOLD: Final = ("\x1b[1m", "\x1b[0m")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="cgpu-smi", description="Show which container uses how much of which GPU, or change an instance."
    )
    made.add_argument("--json", action="store_true", help="JSON: bytes and percent")
    made.add_argument("--processes", action="store_true", help="also a row for each process that holds memory")
    made.add_argument(
        "--watch", nargs="?", const=1.0, type=_seconds, metavar="SECONDS", help="again every SECONDS (default 1)"
    )
    _folders(made, Path("/proc"), Path("/run/cgpu"))
    verbs = made.add_subparsers(dest="verb", metavar="{set}")
    change = verbs.add_parser("set", help="change a running instance", description="Change a running instance.")
    change.add_argument("id", metavar="ID", help="instance, or the beginning of its name")
    change.add_argument("--gpu", type=_whole(0, 255), help="only its share of this GPU (default: of all its GPUs)")
    change.add_argument("--mem", type=_size, help="memory, such as 4GiB; never below what is in use")
    change.add_argument("--weight", type=_whole(1, 25), help="slices a round, within free_weight of the GPU")
    change.add_argument("--highprio", type=_whole(0, 1), help="1: goes before the others; 0: like the others")
    _folders(change, argparse.SUPPRESS, argparse.SUPPRESS)
    return made


def _folders(made: argparse.ArgumentParser, proc: Any, run: Any) -> None:
    made.add_argument("--proc-root", type=Path, default=proc, help="folder of the proc file system (/proc)")
    made.add_argument(
        "--run-folder", type=Path, default=run, help="where it is written whose instances are (/run/cgpu)"
    )


def _seconds(written: str) -> float:
    with suppress(ValueError):
        if 0.1 <= float(written) <= 3600:
            return float(written)
    raise argparse.ArgumentTypeError(f"{written!r} is no number of seconds from 0.1 to 3600")


def _whole(low: int, high: int) -> Callable[[str], int]:
    def parse(written: str) -> int:
        if not (written.isascii() and written.isdigit() and low <= int(written) <= high):
            raise argparse.ArgumentTypeError(f"{written!r} is no whole number from {low} to {high}")
        return int(written)

    return parse


def _size(written: str) -> int:
    try:
        return parse_bytes(written)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


# ---- show ----


def show(options: argparse.Namespace) -> None:
    """Print once, or again and again. Raises UnavailableError."""
    proc = CgpuProc(options.proc_root)
    version = proc.version()
    if version is None:
        raise UnavailableError(_NOT_LOADED)
    interval = options.watch or 1.0
    began, before = time.monotonic_ns(), _looks(proc)
    while True:
        time.sleep(interval)
        now, after = time.monotonic_ns(), _looks(proc)
        text = _rendered(proc, version, options, Sample(before, after, now - began))
        sys.stdout.write((_CLEAR if options.watch and sys.stdout.isatty() else "") + text + "\n")
        sys.stdout.flush()
        if options.watch is None:
            return
        began, before = now, after


def _looks(proc: CgpuProc) -> tuple[Look, ...]:
    return tuple(
        Look(row.gpu, row.id, row.mem, row.used, row.weight, row.highprio, row.busy_ns, row.oom)
        for row in proc.instances()
    )


def _rendered(proc: CgpuProc, version: str, options: argparse.Namespace, sample: Sample) -> str:
    settings = {gpu: Settings(proc.get_gpu(gpu, "policy"), proc.get_gpu(gpu, "max_inst")) for gpu in proc.gpus()}
    wants_processes = options.processes or options.json
    processes = {(each.gpu, each.id): _processes(options, each) for each in sample.after} if wants_processes else {}
    rows = rows_of(sample, settings, read_owners(options.run_folder), processes)
    if options.json:
        return json.dumps(as_json(version, rows, settings), indent=None if options.watch else 2)
    return _text(version, rows, options.processes)


def _text(version: str, rows: Sequence[Row], processes: bool) -> str:
    head, _, rest = table(version, rows).partition("\n")
    if sys.stdout.isatty():
        head = head.join(_BOLD)
    return "\n".join([head, rest, *([process_table(rows)] if processes else [])])


def read_owners(run: Path) -> dict[str, Owner]:
    """Whose each instance is, from the notes of the runtime wrapper and the device plugin; unreadable ones left out."""
    found = {}
    for note in run.glob("*.json"):
        with suppress(OSError, ValueError, TypeError, AttributeError):
            found[note.stem] = _owner(json.loads(note.read_bytes()))
    return found


def _owner(note: Mapping[str, Any]) -> Owner:
    runtime, namespace, pod = (str(note.get(key) or "") for key in ("runtime", "namespace", "pod"))
    return Owner(runtime, namespace, pod, tuple(map(str, note.get("containers") or ())))


def _processes(options: argparse.Namespace, look: Look) -> list[Process]:
    try:
        text = (options.proc_root / "cgpu_km" / str(look.gpu) / look.id / "meminfo").read_text()
    except OSError:  # it ended since the last look
        return []
    return [Process(int(pid), int(used), _name(options.proc_root, pid)) for pid, used in _MEMINFO.findall(text)]


def _name(proc: Path, pid: str) -> str:
    try:
        return (proc / pid / "comm").read_text().strip()
    except OSError:
        return ""


# ---- set ----


def change(options: argparse.Namespace) -> None:
    """Write the values, or leave everything as it was. Raises InputError, UnavailableError."""
    wanted = {"memsize": options.mem, "weight": options.weight, "highprio": options.highprio}
    values = {name: value for name, value in wanted.items() if value is not None}
    if not values:
        raise InputError("set: say what: --mem, --weight or --highprio")
    proc = CgpuProc(options.proc_root)
    if proc.version() is None:
        raise UnavailableError(_NOT_LOADED)
    shares = chosen(proc.instances(), options.id, options.gpu)
    done: list[tuple[Instance, str]] = []
    try:
        for share in shares:
            for name, value in values.items():
                proc.set_instance(share.gpu, share.id, name, value)
                done.append((share, name))
    except UnavailableError as error:
        lost = _restore(proc, done)
        raise UnavailableError(f"{error}; {lost or 'nothing was changed'}; dmesg has the kernel's words") from error


def _restore(proc: CgpuProc, done: Sequence[tuple[Instance, str]]) -> str:
    for share, name in reversed(done):
        old = {"memsize": share.mem, "weight": share.weight, "highprio": share.highprio}[name]
        try:
            proc.set_instance(share.gpu, share.id, name, old)
        except UnavailableError as error:
            return f"and {name} of GPU {share.gpu} could not be put back to {old}: {error}"
    return ""


def chosen(instances: Sequence[Instance], id_: str, gpu: int | None) -> list[Instance]:
    """The shares that a name and a GPU mean. Raises InputError when that is none or several instances."""
    exact = [each for each in instances if each.id == id_]
    found = exact or [each for each in instances if id_ and each.id.startswith(id_)]
    names = sorted({each.id for each in found})
    if len(names) != 1:
        known = ", ".join(sorted({each.id for each in instances})) or "none"
        raise InputError(f"set: ID {id_!r} means {len(names)} instances; there are: {known}")
    shares = [each for each in found if gpu in (None, each.gpu)]
    if not shares:
        raise InputError(f"set: {names[0]} has no share of GPU {gpu}; it has of {', '.join(str(e.gpu) for e in found)}")
    return shares


def main(argv: Sequence[str] | None = None) -> int:
    """Exit 0 ok, 1 the module cannot be reached or refuses, 2 usage."""
    options = parser().parse_args(argv)
    return ended("cgpu-smi", lambda: (change if options.verb == "set" else show)(options))


if __name__ == "__main__":
    sys.exit(main())
