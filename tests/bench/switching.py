# SPDX-License-Identifier: Apache-2.0
"""What a change of the turn costs, in a virtual machine with the simulated driver and slices of 10 ms: for how long nobody
can ring, and the processor time of the thread that does it. The processor is emulated; see module.py."""

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.vm.bench import Choice, boot
from tests.vm.programs import compile_c

SECONDS: Final = 20
FOLDERS: Final = ("/run/cgpu/switchone", "/run/cgpu/switchtwo")
PREPARE: Final = f"""set -e
rmmod $(awk '/^cgpu_core/ {{ print $1 }}' /proc/modules) cgpu_km; load-cgpu slice_ms=10
for folder in {" ".join(FOLDERS)}; do
	echo "create ${{folder##*/}} gpu=0 mem={1 << 30}" > /proc/cgpu_km/inst_ctl
	mkdir -p $folder; mount -t cgpufs -o id=${{folder##*/}} cgpu $folder
done
"""


@dataclass(frozen=True, slots=True)
class Switching:
    """Switches that were seen, nanoseconds from the last store of one instance to the first of the other, and of work."""

    count: int
    median: int
    tenth: int
    longest: int
    thread: int

    def __str__(self) -> str:
        gaps = (
            f"{self.median / 1e6:.2f} ms median, {self.tenth / 1e6:.2f} ms at 90 %, {self.longest / 1e6:.2f} ms longest"
        )
        return f"closed to open, {self.count} switches: {gaps}; the thread runs {self.thread / 1e3:.0f} us a switch"


def measure(choice: Choice) -> Switching:
    """Boots a machine, runs the program in it and returns its figures; BenchError when it fails."""
    program = compile_c("switch", [Path(__file__).with_name("switch.c")])
    with tempfile.TemporaryDirectory(prefix="cgpu-vm-") as folder:
        machine = boot(choice, Path(folder))
        try:
            machine.run(PREPARE).checked()
            machine.put("/run/switch", program, 0o755)
            said = machine.run(f"/run/switch {SECONDS} {' '.join(FOLDERS)}", timeout=120).checked()
            return Switching(*map(int, said.stdout.split()))
        finally:
            machine.stop()


def main() -> int:
    """Measure and print."""
    print(measure(Choice("535", "T4")), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
