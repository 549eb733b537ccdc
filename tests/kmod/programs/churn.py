# SPDX-License-Identifier: Apache-2.0
"""Eight threads create, destroy, mount and resize instances, change policies, weights and classes, and kill processes,
while CUDA runs in two instances that stay. Prints one JSON object: what was done how often, and the longest stall.

A stall is the time that one step took without running itself, less the longest time for which this machine did not run
a thread that only sleeps: a virtual machine on a busy host stands still as a whole now and then.

churn.py SECONDS SEED [without]

Said "without", it plays without the module: the programs use the driver's own nodes, an instance is a mount of tmpfs, and
settings are a file of every process. What a step takes then is not the module's doing.
"""

import ctypes
import json
import os
import random
import select
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PROC = Path("/proc/cgpu_km")
ANY_SETTING = Path("/proc/self/comm")
STAYING = ("stay0", "stay1")
MIB = 1 << 20
LIBRARY = ctypes.CDLL("libc.so.6", use_errno=True)
SHARE = "/opt/project/tests/nvsim/programs/share.py"


class Churn:
    """The play: steps by name, each drawn by one of the threads."""

    def __init__(self, seconds: float, seed: int, without: bool = False) -> None:
        self.seconds = seconds
        self.without = without
        self.end = float("inf")
        self.seed = seed
        self.done: Counter[str] = Counter()
        self.longest: dict[str, float] = {}
        self.idle: dict[str, float] = {}
        self.gap = 0.0
        self.failures: list[str] = []
        self.computing: dict[str, subprocess.Popen[bytes]] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Counts a step and remembers its longest time."""
        started, worked = time.monotonic(), time.thread_time()
        yield
        took = time.monotonic() - started
        self.done[name] += 1
        self.longest[name] = max(self.longest.get(name, 0), took)
        self.idle[name] = max(self.idle.get(name, 0), took - (time.thread_time() - worked))

    def write(self, path: str, text: str) -> None:
        """One write, as an administrator would; refusals are part of the play."""
        with suppress(OSError):
            (ANY_SETTING if self.without else PROC / path).write_text(text + "\n")

    def mount(self, name: str, folder: Path) -> bool:
        """Mounts an instance's nodes; tells whether it worked."""
        kind, options = (b"tmpfs", b"") if self.without else (b"cgpufs", f"id={name}".encode())
        return bool(LIBRARY.mount(b"cgpu", bytes(folder), kind, 0, options) == 0)

    def heartbeat(self) -> None:
        """The longest time for which a sleeper was not run."""
        while time.monotonic() < self.end:
            started = time.monotonic()
            time.sleep(0.01)
            self.gap = max(self.gap, time.monotonic() - started - 0.01)

    def instances(self, draw: random.Random, name: str) -> None:
        """One instance comes, works, is killed and goes."""
        with self.step("create"):
            self.write("inst_ctl", f"create {name} gpu=0 mem={draw.randint(1, 400) * MIB} weight={draw.randint(1, 3)}")
        folder = Path("/run/cgpu") / name
        folder.mkdir(parents=True, exist_ok=True)
        with self.step("mount"):
            mounted = self.mount(name, folder)
        if mounted:
            with subprocess.Popen(
                ["/tmp/restless", "/dev" if self.without else str(folder)], stderr=subprocess.DEVNULL
            ) as busy:
                time.sleep(draw.random() / 2)
                if draw.random() < 0.5:
                    self.write("inst_ctl", f"destroy {name}")  # refused: it is mounted
                with self.step("kill"):
                    busy.kill()
                    busy.wait()
            with self.step("umount"):
                if LIBRARY.umount2(bytes(folder), 0):
                    self.failures.append(f"umount of {name}: errno {ctypes.get_errno()}")
        self.destroy(name)

    def destroy(self, name: str) -> None:
        """Ends an instance; what a killed process had open is closed a moment later."""
        patience = time.monotonic() + 60
        while (PROC / "0" / name).exists():
            with self.step("destroy"):
                self.write("inst_ctl", f"destroy {name}")
            if time.monotonic() > patience:
                self.failures.append(f"{name} is still there")
                return

    def resize(self, draw: random.Random, _: str) -> None:
        with self.step("resize"):
            self.write(f"0/{draw.choice(STAYING)}/memsize", str(draw.randint(1, 2000) * MIB))

    def policies(self, draw: random.Random, _: str) -> None:
        with self.step("policy"):
            self.write("0/policy", str(draw.randint(0, 5)))
            self.write("0/prio_ratio", str(draw.randint(15, 99)))
        time.sleep(0.02)

    def weights(self, draw: random.Random, _: str) -> None:
        with self.step("weight"):
            self.write(f"0/{draw.choice(STAYING)}/weight", str(draw.randint(1, 6)))
            self.write(f"0/{draw.choice(STAYING)}/highprio", str(draw.randint(0, 1)))
        time.sleep(0.02)

    def look(self, _: random.Random, __: str) -> None:
        for folder in ("", "0", "0/stay0", "0/stay1", "0/comes0", "0/comes1"):
            for name in ("version", "inst_ctl", "policy", "free_weight", "memsize", "meminfo", "weight"):
                with self.step("read"), suppress(OSError):
                    (ANY_SETTING if self.without else PROC / folder / name).read_text()
        time.sleep(0.02)

    def start_cuda(self, draw: random.Random, name: str) -> subprocess.Popen[bytes]:
        """A CUDA program in an instance: says that it is ready, then computes until it is killed."""
        command = ["unshare", "-m", "--propagation", "slave", "sh", "-c"]
        nodes = f"for n in /run/cgpu/{name}/nvidia*; do mount --bind $n /dev/${{n##*/}}; done"
        length = draw.choice((500000, 2000000, 20000000))
        script = f"{'true' if self.without else nodes}; exec python3 {SHARE} 10000000 {length} waited /dev/null"
        return subprocess.Popen(
            [*command, script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )

    def await_work(self, running: subprocess.Popen[bytes]) -> bool:
        """Waits until a CUDA program computes, or this play's end; tells which."""
        assert running.stdout is not None
        left = self.end - time.monotonic()
        ready, _, _ = select.select([running.stdout], [], [], None if left == float("inf") else max(0, left))
        return bool(ready)

    def cuda(self, draw: random.Random, name: str) -> None:
        """A CUDA program that is killed as it computes, or at any point of its life."""
        with self.computing.pop(name, None) or self.start_cuda(draw, name) as running:
            works = draw.random() < 0.5 and self.await_work(running)
            time.sleep(max(0, min(draw.uniform(0.2, 3 if works else 12), self.end - time.monotonic())))
            with self.step("kill computing cuda" if works else "kill cuda"):
                os.killpg(running.pid, signal.SIGKILL)
                running.wait()

    def play(self, number: int, act: Callable[[random.Random, str], None], name: str) -> None:
        """One thread."""
        draw = random.Random(self.seed * 100 + number)
        try:
            while time.monotonic() < self.end:
                act(draw, name)
        except Exception as error:
            self.failures.append(f"{act.__name__}: {error!r}")
            raise

    def run(self) -> None:
        parts: list[tuple[Callable[[random.Random, str], None], str]] = [
            (self.instances, "comes0"),
            (self.instances, "comes1"),
            (self.resize, ""),
            (self.policies, ""),
            (self.weights, ""),
            (self.look, ""),
            (self.cuda, STAYING[0]),
            (self.cuda, STAYING[1]),
        ]
        threads = [threading.Thread(target=self.play, args=(number, *part)) for number, part in enumerate(parts)]
        threads.append(threading.Thread(target=self.heartbeat))
        self.computing = {name: self.start_cuda(random.Random(self.seed), name) for name in STAYING}
        for running in list(self.computing.values()):
            self.await_work(running)
        self.end = time.monotonic() + self.seconds
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def main() -> None:
    churn = Churn(float(sys.argv[1]), int(sys.argv[2]), without=sys.argv[3:] == ["without"])
    churn.run()
    facts = {
        "done": churn.done,
        "longest_s": {name: round(seconds, 3) for name, seconds in churn.longest.items()},
        "idle_s": {name: round(seconds, 3) for name, seconds in churn.idle.items()},
        "stood_still_s": round(churn.gap, 3),
        "stall_s": round(max(0.0, max(churn.idle.values()) - churn.gap), 3),
        "failures": churn.failures,
    }
    json.dump(facts, sys.stdout)


if __name__ == "__main__":
    main()
