# SPDX-License-Identifier: Apache-2.0
"""What cgpu-runtime adds to runc on this host: side by side in one run, with the kernel's side in a folder.

`create` of a container with a share, of one without GPU, and a question (`state`). The wrapper is laid out as install.sh
does it, for the system's Python; its kernel writes inst_ctl as the module shows it, and mounts nothing. Where NVIDIA's own
runtime has been built for the tests, what that adds to the same creation stands beside it: with a list of a card and files
only, and with the hooks that its own tool lists beside them for every host (creation.py has it in its real place).
"""

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from cgpu.runtime.host import Paths, read_host
from cgpu.runtime.request import HostGpu
from tests.vm.cache import cache_root

ROOT = Path(__file__).parents[2]
REPEATS = int(os.environ.get("REPEATS", "25"))
LIBRARY = "usr/lib/x86_64-linux-gnu/libcuda.so.535.261.03"
ID = "0123456789abcdef" * 4
SHARE = ["ALIYUN_COM_GPU_MEM_CONTAINER=6", "ALIYUN_COM_GPU_MEM_DEV=15", "NVIDIA_VISIBLE_DEVICES=all"]
# the wrapper's own main, with tools that work on a folder; it imports nothing that main does not
STAND_IN = """
import os
import cgpu.runtime.__main__ as real
from cgpu.light import Path
from cgpu.procfs import CgpuProc

HERE = Path(os.environ["BENCH_FOLDER"])

class Kernel(CgpuProc):
    def create(self, id_, gpu, mem, weight=None, highprio=False):
        with open(self.path / "inst_ctl", "a") as control:
            control.write(f"{id_} gpu={gpu} inst=0 mem={mem} used=0 weight=1 highprio=0 busy_ns=0 oom=0 dev=240:0 ctl=241:0 uvm=241:1\\n")

    def destroy(self, id_):
        (self.path / "inst_ctl").write_text("")

def mount(id_, folder):
    for name in ("nvidia0", "nvidiactl", "nvidia-uvm"):
        (folder / name).write_text(id_)

def unmount(folder):
    for file in folder.iterdir():
        file.unlink()

def tools(config):
    kernel = Kernel(HERE / "proc")
    paths = real.Paths(HERE / "proc", HERE / "dev", HERE / "run", HERE)
    return real.Tools(config, paths, kernel, real.Instances(kernel, paths.run, paths.dev / "char", mount, unmount), real._log(""))

real._tools = tools
command = real.command
"""


def installed(here: Path) -> Path:
    """The wrapper as install.sh lays it out, with the tools of `STAND_IN`, and a machine with a T4 that was asked before."""
    site = here / "opt/lib/python3/site-packages"
    (here / "opt/bin").mkdir(parents=True)
    shutil.copytree(ROOT / "cgpu", site / "cgpu", ignore=shutil.ignore_patterns("__pycache__"))
    (site / "stand_in.py").write_text(STAND_IN)
    (here / "opt/bin/python3").symlink_to(host_python())
    subprocess.run([here / "opt/bin/python3", "-I", "-S", ROOT / "deploy/docker/onefile.py", site], check=True)
    text = (ROOT / "cgpu/runtime/front.sh").read_text()
    assert "from cgpu.runtime.__main__ import command" in text
    front = here / "opt/bin/cgpu-runtime"
    front.write_text(text.replace("from cgpu.runtime.__main__ import command", "from stand_in import command"))
    front.chmod(0o755)
    machine(here)
    return front


def host_python() -> Path:
    """The system's own Python, as a host has it, where that is new enough; else this one."""
    system = Path("/usr/bin/python3")
    asked = subprocess.run([system, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"])
    return (system if asked.returncode == 0 else Path(sys.executable)).resolve()


def machine(here: Path) -> None:
    """/proc, /run and a library of the driver."""
    for folder in ("proc/cgpu_km/0", "proc/driver/nvidia/gpus/0000:00:04.0", "proc/sys/kernel/random", "run"):
        (here / folder).mkdir(parents=True)
    files = {
        "proc/cgpu_km/version": "1.0.0\n",
        "proc/cgpu_km/inst_ctl": "",
        "proc/cgpu_km/0/max_inst": "20\n",
        "proc/devices": "195 nvidia\n510 nvidia-uvm\n",
        "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.261.03\n",
        "proc/sys/kernel/random/boot_id": "one\n",
        LIBRARY: "",
    }
    for name, text in files.items():
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text(text)
    read_host(Paths(here / "proc", here / "dev", here / "run", here), lambda _: [HostGpu(0, 0, "GPU-aaaa", 15109)])


def bundle(place: Path, env: Sequence[str]) -> Path:
    """A container with busybox."""
    for folder in ("bin", "etc"):
        (place / "rootfs" / folder).mkdir(parents=True)
    shutil.copy2(shutil.which("busybox") or "/bin/busybox", place / "rootfs/bin/busybox")
    subprocess.run(["runc", "spec", "-b", place], check=True)
    document = json.loads((place / "config.json").read_text())
    document["process"] |= {"terminal": False, "args": ["/bin/busybox", "true"]}
    document["process"]["env"] += env
    document["root"]["readonly"] = False  # NVIDIA's hooks write links and the loader's cache
    document["linux"].pop("seccomp", None)
    (place / "config.json").write_text(json.dumps(document))
    (place / "config.json.first").write_text(json.dumps(document))
    return place


class Cost(NamedTuple):
    """Of one command, in ms: by the clock, and of processors, which another program's load changes less."""

    clock: float
    processor: float


def timed(command: Sequence[str | Path], must: bool = True) -> Cost:
    """What one command costs, which must succeed if it is not a question about nothing."""
    used, start = processor_ms(), time.perf_counter()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    cost = Cost((time.perf_counter() - start) * 1e3, processor_ms() - used)
    if must and done.returncode:
        raise SystemExit(f"bench: {' '.join(map(str, command))} ended with {done.returncode}")
    return cost


def processor_ms() -> float:
    """Of all our children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1e3


def compare(title: str, ways: dict[str, Callable[[], Cost]]) -> None:
    """Medians of several ways, taken in turns, and the quickest of each, which says most where the machine is busy."""
    rounds = [[way() for way in ways.values()] for _ in range(REPEATS)]
    costs = list(zip(*rounds, strict=True))
    medians = [Cost(*map(statistics.median, zip(*of, strict=True))) for of in costs]
    quickest = [min(cost.clock for cost in of) for of in costs]
    base = medians[0]
    print(f"{title}: {next(iter(ways))} {base.clock:.2f} ms, quickest {quickest[0]:.2f} ms")
    for name, cost, least in list(zip(ways, medians, quickest, strict=True))[1:]:
        clock, processor = cost.clock - base.clock, cost.processor - base.processor
        added = f"added {clock:6.2f} ms (quickest {least - quickest[0]:6.2f}), of processor {processor:6.2f} ms"
        print(f"    {name:30} {cost.clock:7.2f} ms = {cost.clock / base.clock:5.2f} times, {added}", flush=True)


def created(runtime: Sequence[str | Path], state: Path, place: Path) -> Callable[[], Cost]:
    """Cost of a creation; the container is removed outside the measurement."""

    def run() -> Cost:
        shutil.copy(place / "config.json.first", place / "config.json")
        took = timed([*runtime, "--root", state, "create", "--bundle", place, ID])
        subprocess.run([*runtime, "--root", state, "delete", "--force", ID], check=True, capture_output=True)
        return took

    return run


CDI = {
    "cdiVersion": "0.5.0",
    "devices": [{"name": "0", "containerEdits": {"deviceNodes": [{"path": "/dev/nvidia0", "type": "c", "major": 1, "minor": 3}]}}],
}  # fmt: skip


# what nvidia-ctk 1.20.2 lists for a host with one card
HOOKS = (
    ["create-symlinks", "--link", f"libcuda.so.1::{Path('/', LIBRARY).parent}/libcuda.so"],
    ["enable-cuda-compat", "--host-driver-version=535.261.03"],
    ["update-ldcache", "--folder", str(Path("/", LIBRARY).parent)],
    ["disable-device-node-modification"],
    ["update-application-profile"],
)


def nvidias(here: Path) -> dict[str, list[Path]]:
    """NVIDIA's own runtime, if some test has built it, in CDI mode with a card and as many files as ours mounts.

    Returns the names of the devices in two lists, without hooks and with them, each with the runtime's program.
    """
    built = sorted(cache_root().glob("bin/*/nvidia-container-runtime"), key=lambda path: path.stat().st_mtime)
    (here / "cdi").mkdir()
    (here / "nvidia-container-runtime").mkdir()
    sources = [here / LIBRARY, *(here / "cdi" / name for name in ("one", "two", "three"))]
    for source in sources[1:]:
        source.touch()
    mounts = [
        {"hostPath": str(path), "containerPath": f"/mnt/{path.name}", "options": ["ro", "bind"]} for path in sources
    ]
    tool = built[-1].with_name("nvidia-cdi-hook") if built else Path()
    hooks = [{"hookName": "createContainer", "path": str(tool), "args": [tool.name, *words]} for words in HOOKS]
    kinds: dict[str, dict[str, object]] = {"nvidia.com/files": {}, "nvidia.com/gpu": {"hooks": hooks}}
    for kind, more in kinds.items():
        spec = CDI | {"kind": kind, "containerEdits": {"mounts": mounts, **more}}
        (here / f"cdi/{kind.rpartition('/')[2]}.json").write_text(json.dumps(spec))
    (here / "nvidia-container-runtime/config.toml").write_text(
        '[nvidia-container-runtime]\nmode = "cdi"\nruntimes = ["runc"]\n'
        f'[nvidia-container-runtime.modes.cdi]\nspec-dirs = ["{here}/cdi"]\ndefault-kind = "nvidia.com/gpu"\n'
    )
    os.environ["XDG_CONFIG_HOME"] = str(here)
    return {f"{kind}=0": built[-1:] for kind in kinds} if built else {}


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        os.environ |= {"BENCH_FOLDER": folder, "CGPU_CONFIG": f"{folder}/config.toml"}
        front, state = installed(here), here / "state"
        share, plain = bundle(here / "share", SHARE), bundle(here / "plain", [])
        print(f"medians of {REPEATS} rounds")
        ours = {"runc": created(["runc"], state, share), "cgpu-runtime": created([front], state, share)}
        theirs = {
            f"NVIDIA's, {name}": created(program, state, bundle(here / name[11:], [f"NVIDIA_VISIBLE_DEVICES={name}"]))
            for name, program in nvidias(here).items()
        }
        compare("create, with a share", ours | theirs)
        compare(
            "create, without GPU",
            {"runc": created(["runc"], state, plain), "cgpu-runtime": created([front], state, plain)},
        )
        question = ["--root", str(state), "state", "none"]
        compare(
            "state",
            {
                "runc": lambda: timed(["runc", *question], must=False),
                "cgpu-runtime": lambda: timed([front, *question], must=False),
            },
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
