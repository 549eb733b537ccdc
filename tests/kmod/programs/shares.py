# SPDX-License-Identifier: Apache-2.0
"""Measures shares in the guest: instances with a load program each, cases from a file, one JSON line a case.

shares.py LOAD CASES    # the load program with its argument, and a file with a JSON list of cases

A case: `{"policy": 1, "seconds": 5, "loads": [{"weight": 1, "highprio": 0, "work": "work 1000 queued 1"}, ...]}`; a load
without `work` exists and rests. With `before`, the loads work under those settings first, and are measured under their own.
The answer: `{"busy": [ns, ...], "told": [ns, ...], "wall": ns, "waits": [ns, ...], "turns": n, "free": weight}` where
`busy` is what the simulated engine counted, `told` what the module says, and `turns` how often the GPU changed hands.
"""

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PROC = Path("/proc/cgpu_km")
TRACING = Path("/sys/kernel/debug/tracing")
MIB = 1 << 20


def instance(number: int) -> str:
    """The name of the instance with that number."""
    return f"share{number:02d}"


class Loads:
    """Load programs, each in an instance of its own."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.running: list[subprocess.Popen[str]] = []

    def need(self, count: int) -> None:
        """Ends what is too much, starts what is missing; all start at once."""
        self.stop(count)
        fresh = range(len(self.running), count)
        for number in fresh:
            self.running.append(self.start(instance(number)))
        for number in fresh:
            self.hear(number, "ready")

    def start(self, name: str) -> subprocess.Popen[str]:
        """One program, whose nodes are those of the instance."""
        (PROC / "inst_ctl").write_text(f"create {name} gpu=0 mem={256 * MIB} weight=1\n")
        folder = Path("/run/cgpu") / name
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-t", "cgpufs", "-o", f"id={name}", "cgpu", str(folder)], check=True)
        bind = f"for f in {folder}/nvidia*; do mount --bind $f /dev/$(basename $f); done; exec {self.program}"
        return subprocess.Popen(
            ["unshare", "-m", "bash", "-c", bind], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def hear(self, number: int, want: str = "ok") -> str:
        """The next line of a program."""
        stream = self.running[number].stdout
        assert stream is not None
        line = stream.readline().strip()
        if want and line != want:
            raise SystemExit(f"{instance(number)} said {line!r} instead of {want!r}")
        return line

    def say(self, number: int, words: str) -> None:
        """A command for a program."""
        stream = self.running[number].stdin
        assert stream is not None
        stream.write(words + "\n")
        stream.flush()

    def tell(self, words: list[str]) -> None:
        """A command for each program, all at once; the others rest."""
        for number in range(len(self.running)):
            self.say(number, words[number] if number < len(words) else "rest")
        for number in range(len(self.running)):
            self.hear(number)

    def stop(self, keep: int = 0) -> None:
        """Ends all but the first and removes their instances."""
        for process in self.running[keep:]:
            with contextlib.suppress(OSError):
                process.kill()
            process.wait()
        last = len(self.running)
        del self.running[keep:]
        for number in range(keep, last):
            subprocess.run(["umount", f"/run/cgpu/{instance(number)}"], check=True)
            (PROC / "inst_ctl").write_text(f"destroy {instance(number)}\n")

    def busy(self) -> list[int]:
        """Nanoseconds that the engine worked for each."""
        by_pid = dict.fromkeys((process.pid for process in self.running), 0)
        for line in Path("/proc/nvsim").read_text().splitlines():
            words = line.split()
            if words[0] == "tsg":
                facts = dict(zip(words[2::2], words[3::2], strict=False))
                pid = int(facts["pid"])
                by_pid[pid] = by_pid.get(pid, 0) + int(facts["busy_ns"])
        return [by_pid[process.pid] for process in self.running]

    def told(self) -> list[int]:
        """The same as the module tells it."""
        words = {}
        for line in (PROC / "inst_ctl").read_text().splitlines():
            name, *pairs = line.split()
            words[name] = int(dict(pair.split("=", 1) for pair in pairs)["busy_ns"])
        return [words[instance(number)] for number in range(len(self.running))]


def configure(loads: Loads, settings: dict[str, Any]) -> None:
    """Policy, ratio, weights and classes; weights shrink before others grow."""
    (PROC / "0/policy").write_text(f"{settings['policy']}\n")
    (PROC / "0/prio_ratio").write_text(f"{settings.get('prio_ratio', 80)}\n")
    wanted = [load.get("weight", 1) for load in settings["loads"]]
    for _ in range(2):
        for number, weight in enumerate(wanted):
            with contextlib.suppress(OSError):
                (PROC / "0" / instance(number) / "weight").write_text(f"{weight}\n")
    for number, load in enumerate(settings["loads"]):
        (PROC / "0" / instance(number) / "highprio").write_text(f"{load.get('highprio', 0)}\n")
    for number, weight in enumerate(wanted):
        found = int((PROC / "0" / instance(number) / "weight").read_text())
        if found != weight:
            raise SystemExit(f"{instance(number)} has weight {found} instead of {weight}")


def need(loads: Loads, case: dict[str, Any]) -> None:
    """The instances of a case and no others, on a GPU of its size; those that are there leave slices for new ones."""
    size, most = PROC / "0/max_inst", case.get("max_inst", 20)
    if int(size.read_text()) != most:
        loads.stop()
        size.write_text(f"{most}\n")
    for number in range(len(loads.running)):
        (PROC / "0" / instance(number) / "weight").write_text("1\n")
    loads.need(len(case["loads"]))


def count_turns() -> None:
    """Counts from now on how often the GPU is given to an instance."""
    (TRACING / "kprobe_events").write_text("p:turns cgpu_watch_begin\n")
    (TRACING / "events/kprobes/turns/enable").write_text("1\n")


def stop_counting() -> None:
    """The probe goes."""
    (TRACING / "events/kprobes/turns/enable").write_text("0\n")
    (TRACING / "kprobe_events").write_text("\n")


def turns() -> int:
    """How often it was given so far."""
    return int((TRACING / "kprobe_profile").read_text().split()[1])


def delta(after: list[int], before: list[int]) -> list[int]:
    """What was added."""
    return [late - early for late, early in zip(after, before, strict=True)]


def measure(loads: Loads, case: dict[str, Any]) -> dict[str, Any]:
    """Runs one case."""
    settle = case.get("settle", 0.5)
    configure(loads, case.get("before", case))
    loads.tell([load.get("work", "rest") for load in case["loads"]])
    time.sleep(settle)
    if "before" in case:
        configure(loads, case)
        time.sleep(settle)
    busy, told, given, began = loads.busy(), loads.told(), turns(), time.monotonic_ns()
    waits = wake(loads, case) if "wake" in case else []
    time.sleep(max(0.0, case["seconds"] - (time.monotonic_ns() - began) / 1e9))
    after, said, taken, ended = loads.busy(), loads.told(), turns(), time.monotonic_ns()
    loads.tell([])
    return {
        "busy": delta(after, busy),
        "told": delta(said, told),
        "wall": ended - began,
        "waits": waits,
        "turns": taken - given,
        "free": int((PROC / "0/free_weight").read_text()),
    }


def wake(loads: Loads, case: dict[str, Any]) -> list[int]:
    """One instance wakes again and again for one kernel: what each took."""
    number, times, microseconds = case["wake"]
    waits = []
    for turn in range(times):
        time.sleep(0.05 + 0.013 * (turn % 7))
        loads.say(number, f"once {microseconds}")
        waits.append(int(loads.hear(number, "")))
    return waits


def main() -> None:
    """Runs all cases."""
    cases = json.loads(Path(sys.argv[2]).read_text())
    loads = Loads(sys.argv[1])
    count_turns()
    try:
        for case in cases:
            need(loads, case)
            print(json.dumps(measure(loads, case)), flush=True)
    finally:
        loads.stop()
        stop_counting()
        (PROC / "0/max_inst").write_text("20\n")


if __name__ == "__main__":
    main()
