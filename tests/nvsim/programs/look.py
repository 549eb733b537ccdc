# SPDX-License-Identifier: Apache-2.0
"""What NVIDIA's tools and nvidia-ml-py show while this process holds memory; then `everything` on each card.

look.py HELD [CARD ...]   # holds 64 MiB on card HELD while it looks; `everything` on it and on the others, side by side
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pynvml
from everything import everything

QUERY = (
    "index,name,memory.total,memory.used,uuid,driver_version"  # from 550 on pci.* is read in sysfs: no card is there
)


class Started:
    """A program that runs beside this one."""

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def output(self) -> str:
        """What it printed; its failure ends this program."""
        shown = self.process.communicate()[0]
        if self.process.returncode:
            raise SystemExit(f"{self.process.args} ended with {self.process.returncode}")
        return shown


def processes(handle: object) -> list[tuple[int, int]]:
    """Pid and bytes of each process, by the newest call that the library has."""
    for version in ("_v3", "_v2", ""):
        try:
            pynvml._nvmlGetFunctionPointer(f"nvmlDeviceGetComputeRunningProcesses{version}")
        except pynvml.NVMLError_FunctionNotFound:
            continue
        break
    kind = pynvml.c_nvmlProcessInfo_v2_t if version else OldProcess
    count, rows = pynvml.c_uint(32), (kind * 32)()
    call = pynvml._nvmlGetFunctionPointer(f"nvmlDeviceGetComputeRunningProcesses{version}")
    pynvml._nvmlCheckReturn(call(handle, pynvml.byref(count), rows))
    return [(row.pid, row.usedGpuMemory) for row in rows[: count.value]]


class OldProcess(pynvml.Structure):
    """nvmlProcessInfo_t before 450."""

    _fields_ = (("pid", pynvml.c_uint), ("usedGpuMemory", pynvml.c_ulonglong))


def nvml_card(index: int) -> dict[str, object]:
    """One card as nvidia-ml-py shows it."""
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return {
        "name": pynvml.nvmlDeviceGetName(handle),
        "uuid": pynvml.nvmlDeviceGetUUID(handle),
        "bus": pynvml.nvmlDeviceGetPciInfo(handle).busId,
        "minor": pynvml.nvmlDeviceGetMinorNumber(handle),
        "total": memory.total,
        "used": memory.used,
        "free": memory.free,
        "processes": processes(handle),
    }


def nvml() -> dict[str, object]:
    """All cards as nvidia-ml-py shows them."""
    pynvml.nvmlInit()
    cards = [nvml_card(index) for index in range(pynvml.nvmlDeviceGetCount())]
    shown = {"driver": pynvml.nvmlSystemGetDriverVersion(), "cards": cards}
    pynvml.nvmlShutdown()
    return shown


def look() -> dict[str, object]:
    """What nvidia-smi shows in all its forms, and nvidia-ml-py."""
    forms = {
        "table": (),
        "listed": ("-L",),
        "full": ("-q",),
        "query": (f"--query-gpu={QUERY}", "--format=csv,noheader,nounits"),
        "apps": ("--query-compute-apps=gpu_uuid,pid,used_memory", "--format=csv,noheader,nounits"),
    }
    running = {name: Started("nvidia-smi", *words) for name, words in forms.items()}
    return {"nvml": nvml(), **{name: program.output() for name, program in running.items()}}


def main() -> None:
    held, *others = sys.argv[1:]
    shown: dict[str, object] = {"pid": os.getpid()}
    beside: list[Started] = []

    def meanwhile() -> None:
        shown.update(look())
        if others:
            beside.append(Started(sys.executable, str(Path(__file__).with_name("everything.py")), *others))

    found = {held: everything(int(held), meanwhile)}
    for program in beside:
        found.update(zip(others, map(json.loads, program.output().splitlines()), strict=True))
    json.dump({**shown, "everything": found}, sys.stdout)


if __name__ == "__main__":
    main()
