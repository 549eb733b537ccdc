# SPDX-License-Identifier: Apache-2.0
"""Churn and fuzzing of the module in a machine, for a minute here and for longer in tests/soak."""

import json
from pathlib import Path
from typing import Any, Final

from tests.kmod.containers import output
from tests.vm.machine import Machine
from tests.vm.programs import compile_c

PROGRAMS: Final = Path(__file__).parent / "programs"
EMPTY: Final = """within 60 sh -c '! grep -q "^client" /proc/nvsim'; grep "^client" /proc/nvsim
awk '/^gpu 0/ { print $7, $8 }' /proc/nvsim; unload; load-cgpu && echo loaded again"""
LEFT: Final = ["used 0", "loaded again"]


def put(vm: Machine, name: str) -> None:
    """Brings a program into the machine, below /tmp."""
    vm.put(f"/tmp/{name}", compile_c(name, [PROGRAMS / f"{name}.c"]))


def churn(vm: Machine, seconds: int, seed: int = 1) -> tuple[dict[str, Any], list[str]]:
    """Plays programs/churn.py; what it tells, and what the driver and the module hold afterwards."""
    put(vm, "restless")
    script = f"""share stay0 0:1500; share stay1 0:1500; python3 $P/churn.py {seconds} {seed} || exit 9
echo; unshare_all; {EMPTY}"""
    told, *left = output(vm, script, timeout=seconds * 3 + 240).splitlines()
    return json.loads(told), left


def fuzz(vm: Machine, calls: int, processes: int, seed: int = 1) -> list[str]:
    """Random calls in that many instances at once; their words, and what is held afterwards."""
    put(vm, "fuzz")
    starts = "".join(
        f"share fuzz{number} 0:500; inside fuzz{number} /tmp/fuzz {seed * 1000 + number} {calls // processes} & "
        for number in range(processes)
    )
    return output(vm, f"{starts} wait; unshare_all; {EMPTY}", timeout=calls / 300 + 300).splitlines()
