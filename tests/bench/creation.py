# SPDX-License-Identifier: Apache-2.0
"""What a container's creation costs in a virtual machine with everything real but the card: runc alone, cgpu-runtime with a
share, NVIDIA's runtime in its default mode and with the list of files and hooks that its own tool has written.

The processor is emulated: ratios of one run count, no millisecond does.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.docker.host import BEGIN
from tests.vm.bench import Choice, boot

ROUNDS: Final = 9
PROGRAM: Final = "/opt/project/tests/docker/programs/creation.py"
SCRIPT: Final = f"""{BEGIN}
set -e
. /opt/project/tests/docker/chain.sh
nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml 2> /dev/null
WRAPPER=runc
nvidia_runtime jit-cdi; nvidia_runtime cdi
python3 {PROGRAM} {{rounds}} runc cgpu-runtime nvidia-cdi nvidia-jit-cdi
"""
NAMES: Final = {
    "cgpu-runtime": "cgpu-runtime, with a share",
    "nvidia-cdi": "NVIDIA's runtime, mode cdi",
    "nvidia-jit-cdi": "NVIDIA's runtime, its default mode",
}


def measure(rounds: int = ROUNDS) -> dict[str, float]:
    """Milliseconds by runtime. BenchError when the machine or a runtime fails."""
    with tempfile.TemporaryDirectory(prefix="cgpu-vm-") as folder:
        machine = boot(Choice("535", "T4", total_mib="15109", hosts=True), Path(folder))
        try:
            result = machine.run(SCRIPT.replace("{rounds}", str(rounds)), timeout=900).checked()
        finally:
            machine.stop()
    taken: dict[str, float] = json.loads(result.stdout.splitlines()[-1])
    return taken


def main() -> int:
    """Measure and print."""
    taken = measure()
    base = taken.pop("runc")
    print(f"create in a virtual machine: runc {base:.0f} ms")
    for name, took in taken.items():
        print(
            f"    {NAMES[name]:36} {took:7.0f} ms = {took / base:5.2f} times, added {took - base:6.0f} ms", flush=True
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
