# SPDX-License-Identifier: Apache-2.0
"""What the module adds to a call, in a virtual machine with the simulated driver: the same call straight to the driver
and through the module, in turns, in one process.

The processor is emulated, which makes page faults and address space changes dearer than silicon does: a ratio here is an
upper bound in kind, not a figure of a GPU node.
"""

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.vm.bench import Choice, boot
from tests.vm.programs import compile_c

INSTANCE: Final = "beeeeeeeeeee"
PREPARE: Final = f"""set -e
echo "create {INSTANCE} gpu=0 mem={4 << 30}" > /proc/cgpu_km/inst_ctl
mkdir -p /run/cgpu/{INSTANCE}; mount -t cgpufs -o id={INSTANCE} cgpu /run/cgpu/{INSTANCE}
"""
MEANING: Final = {
    "pass-through": ("pass-through ioctl (SYS_PARAMS)", 1.15),
    "control": ("frozen control (FB_GET_INFO)", None),
    "allocation": ("charged allocation and its free", 2.0),
    "doorbell": ("a store to the doorbell, gate open (ps)", 1.05),
    "control-threads": ("the same control, two threads", None),
    "allocation-threads": ("the same allocation, two threads", None),
    "attach": ("open and first ioctl, 300 processes at once", 2.0),
}


@dataclass(frozen=True, slots=True)
class Figure:
    """One call: nanoseconds straight to the driver and through the module, and the ratio that is wanted at most."""

    name: str
    direct: float
    through: float
    most: float | None

    @property
    def ratio(self) -> float:
        """Through the module over straight to the driver."""
        return self.through / self.direct

    def __str__(self) -> str:
        aim = "" if self.most is None else f"  (wanted: at most {self.most:.2f})"
        return (
            f"{self.name:44} direct {self.direct / 1e3:10.2f} us  module {self.through / 1e3:10.2f} us  "
            f"{self.ratio:5.2f} x{aim}"
        )


def parse(text: str) -> list[Figure]:
    """The figures that calls.c printed."""
    rows = [line.split() for line in text.splitlines()]
    return [Figure(MEANING[name][0], float(direct), float(through), MEANING[name][1]) for name, direct, through in rows]


def measure(choice: Choice) -> list[Figure]:
    """Boots a machine, runs the program in it and returns its figures; BenchError when it fails."""
    program = compile_c("calls", [Path(__file__).with_name("calls.c")])
    with tempfile.TemporaryDirectory(prefix="cgpu-vm-") as folder:
        machine = boot(choice, Path(folder))
        try:
            machine.run(PREPARE).checked()
            machine.put("/run/calls", program, 0o755)
            result = machine.run(f"/run/calls /dev /run/cgpu/{INSTANCE}", timeout=600)
            return parse(result.checked().stdout)
        finally:
            machine.stop()


def main() -> int:
    """Measure and print."""
    for figure in measure(Choice("535", "T4")):
        print(figure, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
