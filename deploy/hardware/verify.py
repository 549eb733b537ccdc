# SPDX-License-Identifier: Apache-2.0
"""Tries the kernel module on this machine's first card and writes a report; verify-hardware.sh starts it as root.

verify.py [REPORT]      # default: cgpu-hardware-<host>-<time>.txt in the current folder
"""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCES))

from cgpu.cgpufs import mount_cgpufs, unmount  # noqa: E402 - the checkout is on the path from here on
from cgpu.core.errors import CgpuError, UnavailableError  # noqa: E402
from cgpu.loader import Loader  # noqa: E402
from cgpu.procfs import CgpuProc  # noqa: E402

PROGRAM = Path(__file__).with_name("program.py")
IDS = ("fedcba000001", "fedcba000002")
RUN = Path("/run/cgpu")
DRIVER = Path("/proc/driver/nvidia/version")
MIB = 1 << 20
SECONDS = 10
TRIES = 3
WEIGHTED = 2
# emulated processors hand a simulated card over late
TOLERANCE, SIMULATED_TOLERANCE = 0.10, 0.25
MEMORY = "memory.total,memory.used,memory.free"
# a /dev that holds an instance's nodes and no others, as a container has it
INSIDE = """
mount --make-private /dev; mount -t tmpfs dev /mnt; mount --make-private /mnt
for node in /dev/null /dev/zero /dev/random /dev/urandom "$0"/*; do
	: > "/mnt/${node##*/}"; mount --bind "$node" "/mnt/${node##*/}"
done
mkdir /mnt/shm; ln -s /proc/self/fd /mnt/fd
mount --move /mnt /dev; exec "$@"
"""


class Report:
    """The file, section by section; verdicts are shown on the terminal too."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failed = False
        self._file = path.open("w")

    def section(self, title: str) -> None:
        """A heading."""
        print(f"verify: {title}", flush=True)
        self.write(f"\n== {title}")

    def write(self, *lines: str) -> None:
        """Lines."""
        self._file.write("".join(f"{line}\n" for line in lines))
        self._file.flush()

    def judge(self, held: bool, sentence: str) -> None:
        """A verdict."""
        self.failed |= not held
        line = f"{'PASS' if held else 'FAIL'}: {sentence}"
        print(line, flush=True)
        self.write(line)


def said(*command: str) -> str:
    """What a command prints, or why it cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return f"{command[0]}: {error.strerror}"
    return (done.stdout + done.stderr).strip()


def is_simulated() -> bool:
    """Whether the driver is this project's simulated one."""
    return Path("/sys/module/nvsim").exists()


def machine(report: Report) -> None:
    """Kernel, driver, cards, and the card's memory as the driver gives it."""
    report.section("machine")
    if not DRIVER.exists():
        raise UnavailableError(f"NVIDIA's driver is not loaded (no {DRIVER}): install it, then `modprobe nvidia`")
    report.write(said("uname", "-a"), *Path("/etc/os-release").read_text().splitlines()[:2])
    for path in (DRIVER, *sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))):
        report.write(f"-- {path}", path.read_text().strip())
    report.section("frame buffer, before")
    report.write(
        said("nvidia-smi", f"--query-gpu=index,name,uuid,{MEMORY}", "--format=csv"),
        said("nvidia-smi", "-q", "-d", "MEMORY"),
    )


@contextmanager
def loaded(report: Report, loader: Loader, simulated: bool) -> Iterator[None]:
    """The module, built and loaded where it was not, and taken out again then."""
    report.section("kernel module")
    before = loader.loaded()
    if before is None:
        if not loader.built():
            print(f"verify: building for Linux {loader.release} ...", flush=True)
            loader.build()
        loader.load({"slice_ms": "20"} if simulated else {})
    report.write(f"core {loader.loaded()}, built: {', '.join(loader.built())}", said("modinfo", "cgpu_km"))
    try:
        yield
    finally:
        if before is None:
            loader.unload()
        report.section("kernel's log")
        report.write(*[line for line in said("dmesg").splitlines() if re.search(r"cgpu|NVRM|Xid", line)][-80:])


@contextmanager
def instance(proc: CgpuProc, id_: str, mib: int, weight: int | None = None) -> Iterator[Path]:
    """A share of the first card; its nodes are in the folder."""
    folder = RUN / id_
    proc.create(id_, 0, mib * MIB, weight)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        mount_cgpufs(id_, folder)
        yield folder
    finally:
        unmount(folder)
        with suppress(OSError):
            folder.rmdir()
        end(proc, id_)


def end(proc: CgpuProc, id_: str) -> None:
    """Ends an instance as soon as its last process is gone. Raises UnavailableError after ten seconds."""
    last = time.monotonic() + 10
    while True:
        try:
            return proc.destroy(id_)
        except UnavailableError:
            if time.monotonic() > last:
                raise
            time.sleep(0.1)


def inside(folder: Path, *command: str) -> list[str]:
    """A command that sees an instance's nodes only."""
    spaces = ["unshare", "--mount", "--propagation", "slave", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return [*spaces, "sh", "-c", INSIDE, str(folder), *command]


def cuda(*what: str) -> list[str]:
    """program.py as a command."""
    return [sys.executable, "-I", str(PROGRAM), *what]


@contextmanager
def running(command: Sequence[str]) -> Iterator["subprocess.Popen[str]"]:
    """A program whose end is the end of its input."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.communicate()


def trace(report: Report, proc: CgpuProc) -> None:
    """Which calls a CUDA program makes, without the module and in an instance."""
    if shutil.which("strace") is None:
        report.section("calls of a CUDA program")
        report.write("strace is not installed: nothing was recorded")
        return
    with instance(proc, IDS[0], 1024) as folder, tempfile.TemporaryDirectory() as work:
        file = Path(work) / "trace"
        record = ["strace", "-f", "-qq", "--seccomp-bpf", "-e", "trace=ioctl", "-o", str(file), *cuda("touch")]
        for title, command in (("on the card", record), ("in an instance", inside(folder, *record))):
            report.section(f"calls of a CUDA program {title}")
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            calls = [line.split(maxsplit=1)[1] for line in file.read_text().splitlines() if "ioctl(" in line]
            words = f"a CUDA program runs {title}; {len(calls)} calls {done.stderr.strip()[-300:]}"
            report.judge(done.returncode == 0, words.strip())
            report.write(*calls)


def limit(report: Report, proc: CgpuProc, card_mib: int) -> None:
    """A quarter of the card: what a program sees, gets, and is refused, beside the driver's own ledger."""
    share = card_mib // 4
    with instance(proc, IDS[0], share) as folder, running(inside(folder, *cuda("fill"))) as program:
        assert program.stdout
        line = program.stdout.readline()
        report.section(f"memory limit: {share} of {card_mib} MiB")
        if not line:
            report.judge(False, "the program ended without an answer")
            return
        got = json.loads(line)
        used = sum(row.used for row in proc.instances_of(IDS[0]))
        report.write(
            f"program: {got}",
            f"cgpu_km: used={used}",
            said("nvidia-smi", f"--query-gpu=index,{MEMORY}", "--format=csv"),
        )
        report.judge(got["total"] == share * MIB, f"the card has {got['total'] // MIB} MiB in the instance")
        report.judge(got["code"] == 2, f"an allocation beyond it gets CUDA error {got['code']} (2 = out of memory)")
        report.judge(
            got["taken"] <= used <= share * MIB, f"{got['taken'] // MIB} MiB were had, {used // MIB} are charged"
        )
    report.section("frame buffer, after")
    report.write(said("nvidia-smi", f"--query-gpu=index,{MEMORY}", "--format=csv"))


def shares(report: Report, proc: CgpuProc, card_mib: int, tolerance: float) -> None:
    """Weights 1 and 2, both always at work: busy time by the module, and kernels that the programs have finished."""
    report.section("compute: weights 1 and 2")
    policy = proc.get_gpu(0, "policy")
    proc.set_gpu(0, "policy", WEIGHTED)
    try:
        with (
            tempfile.TemporaryDirectory() as work,
            instance(proc, IDS[0], card_mib // 4, 1) as one,
            instance(proc, IDS[1], card_mib // 4, 2) as two,
            running(inside(one, *cuda("work", f"{work}/{IDS[0]}"))) as first,
            running(inside(two, *cuda("work", f"{work}/{IDS[1]}"))) as second,
        ):
            started = _wait(Path(work), (first, second))
            found = started and any(_is_double(report, proc, Path(work), tolerance) for _ in range(TRIES))
            report.judge(found, f"the second got twice the first, within {tolerance:.0%}")
    finally:
        proc.set_gpu(0, "policy", policy)


def _wait(work: Path, programs: Sequence["subprocess.Popen[str]"]) -> bool:
    """Until both have finished their first kernels; False when one has ended instead."""
    while not all((work / id_).exists() and (work / id_).stat().st_size for id_ in IDS):
        if any(program.poll() is not None for program in programs):
            return False
        time.sleep(0.1)
    return True


def _looks(proc: CgpuProc, work: Path) -> list[tuple[int, int]]:
    """Of each instance: ns that it was busy, and kernels that its program has finished."""
    return [(proc.instances_of(id_)[0].busy_ns, int((work / id_).read_text())) for id_ in IDS]


def _is_double(report: Report, proc: CgpuProc, work: Path, tolerance: float) -> bool:
    before = _looks(proc, work)
    time.sleep(SECONDS)
    rows = [(busy - was, kernels - had) for (busy, kernels), (was, had) in zip(_looks(proc, work), before, strict=True)]
    (busy, kernels), (more_busy, more_kernels) = rows
    ratios = more_busy / max(1, busy), more_kernels / max(1, kernels)
    report.write(
        f"{SECONDS} s: busy {busy / 1e9:.3f} s and {more_busy / 1e9:.3f} s, 1 : {ratios[0]:.3f};"
        f" kernels {kernels} and {more_kernels}, 1 : {ratios[1]:.3f}"
    )
    return all(abs(ratio / 2 - 1) <= tolerance for ratio in ratios)


def verify(report: Report) -> None:
    """Everything. Raises CgpuError, OSError when it cannot be tried."""
    simulated = is_simulated()
    mark = (
        "SIMULATED: the driver is a simulator, nothing here is about silicon" if simulated else "driver: NVIDIA's own"
    )
    report.write("cgpu hardware report", mark, time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()))
    print(f"verify: {mark}", flush=True)
    machine(report)
    with loaded(report, Loader(SOURCES / "kmod"), simulated):
        proc = CgpuProc()
        if proc.instances():
            raise UnavailableError("containers have shares of the card: end them first (cgpu-smi lists them)")
        card_mib = int(said("nvidia-smi", "-i", "0", "--query-gpu=memory.total", "--format=csv,noheader,nounits"))
        checks: tuple[Callable[[], None], ...] = (
            lambda: trace(report, proc),
            lambda: limit(report, proc, card_mib),
            lambda: shares(report, proc, card_mib, SIMULATED_TOLERANCE if simulated else TOLERANCE),
        )
        for check in checks:
            check()


def main() -> int:
    """Exit 0 all held, 1 something did not, 2 it could not be tried."""
    name = f"cgpu-hardware-{platform.node()}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}.txt"
    report = Report(Path(sys.argv[1] if len(sys.argv) > 1 else name))
    try:
        verify(report)
    except (CgpuError, OSError, ValueError) as error:
        report.write(f"NOT TRIED: {error}")
        print(f"verify: it could not be tried: {error}", file=sys.stderr)
        return 2
    report.write("", "RESULT: " + ("something did not hold" if report.failed else "everything held"))
    print(
        f"verify: {'something did not hold' if report.failed else 'everything held'}; the report is {report.path.resolve()}"
    )
    return int(report.failed)


if __name__ == "__main__":
    os.environ["PATH"] += ":/usr/local/sbin:/usr/sbin:/sbin"
    sys.exit(main())
