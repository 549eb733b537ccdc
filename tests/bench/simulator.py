# SPDX-License-Identifier: Apache-2.0
"""The simulated driver's speed: launches and waits in user space and in the virtual machine, and what idling costs.

The baseline of a queued launch is libcuda alone: the same call while a long kernel keeps the engine from looking at it.
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.nvsim.driver import PROGRAMS, run
from tests.vm.bench import Choice, boot
from tests.vm.programs import compile_c

BRANCH: Final = "535"
COUNT: Final = 5000
# nanoseconds of the engine's thread, and of everything that the machine's processors do, in ten seconds
IDLE: Final = """set -eu
thread=; for p in /proc/[0-9]*; do if [ "$(cat $p/comm 2>/dev/null)" = nvsim ]; then thread=$p; fi; done
spent() { if [ "$thread" ]; then cut -d' ' -f1 $thread/schedstat; else echo 0; fi; }
all() { awk '/^cpu / { print ($2 + $3 + $4 + $7 + $8) "0000000" }' /proc/stat; }  # of ticks of 10 ms
before=$(spent) began=$(all); sleep 10; after=$(spent) ended=$(all); echo $((after - before)) $((ended - began))
"""
HOLDING: Final = f"""set -eu
python3 -c 'import sys, time; sys.path.insert(0, "/opt/project/tests/nvsim/programs")
from libcuda import Cuda; Cuda(); print("ready", flush=True); time.sleep(120)' > /tmp/idle & holder=$!
until grep -q ready /tmp/idle; do sleep 0.2; done; sleep 4
({IDLE}); kill $holder
"""


def say(where: str, text: str) -> None:
    """The program's figures as sentences."""
    shown = {name: float(value) for name, value in (line.split() for line in text.splitlines())}
    queued, alone = shown["queued_per_s"], shown["libcuda_alone_per_s"]
    print(f"  {where}: {queued:,.0f} queued launches a second, {queued / alone:.2f} x libcuda alone ({alone:,.0f})")
    engine = (
        f"{shown['engine_us']:.1f} us of the engine's thread" if shown["engine_us"] else "the engine is in the program"
    )
    print(
        f"  {where}: a launch takes {shown['user_us']:.1f} us of the program, {shown['system_us']:.1f} us of the system;"
        f" {engine}"
    )
    print(
        f"  {where}: launch and wait {shown['waited_spinning_us']:,.0f} us spinning,"
        f" {shown['waited_blocking_us']:,.0f} us blocking"
    )


def main() -> int:
    """Print the figures."""
    program = compile_c("launches", [PROGRAMS / "launches.c"])
    done = run(BRANCH, [str(program), str(COUNT)])
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        return 1
    say("user space", done.stdout)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="cgpu-vm-") as folder:
        machine = boot(Choice(BRANCH, "T4", cgpu=False), Path(folder))
        try:
            machine.run("true").checked()
            print(f"  virtual machine: a script's first line after {time.monotonic() - started:.1f} s")
            machine.put("/tmp/launches", program, mode=0o755)
            say("virtual machine", machine.run(f"/tmp/launches {COUNT}").checked().stdout)
            without = f"rmmod nvsim; {IDLE}"
            for what, script in (("no channel", IDLE), ("an idle context", HOLDING), ("nothing loaded", without)):
                thread, everything = (int(word) / 1e10 for word in machine.run(script).checked().stdout.split())
                print(f"  virtual machine: with {what} {everything:.2%} of a core, the engine's thread {thread:.2%}")
        finally:
            machine.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
