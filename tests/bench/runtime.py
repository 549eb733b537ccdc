# SPDX-License-Identifier: Apache-2.0
"""What cgpu-runtime adds to runc on this host: side by side in one run, with the kernel's side in a folder.

`create` of a container with a share, of one without GPU, and a question (`state`). The folder's kernel is a fake of the
tests, whose imports count for us.
"""

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
FRONT = ROOT / "cgpu/runtime/front.sh"
REPEATS = 25
ID = "0123456789abcdef" * 4
WRAPPER = "from tests.runtime.wrapper import run; raise SystemExit(run())"
SHARE = ["ALIYUN_COM_GPU_MEM_CONTAINER=6", "ALIYUN_COM_GPU_MEM_DEV=15", "NVIDIA_VISIBLE_DEVICES=all"]


def bundle(place: Path, env: Sequence[str]) -> Path:
    """A container with busybox."""
    (place / "rootfs/bin").mkdir(parents=True)
    shutil.copy2(shutil.which("busybox") or "/bin/busybox", place / "rootfs/bin/busybox")
    subprocess.run(["runc", "spec", "-b", place], check=True)
    document = json.loads((place / "config.json").read_text())
    document["process"] |= {"terminal": False, "args": ["/bin/busybox", "true"]}
    document["process"]["env"] += env
    document["linux"].pop("seccomp", None)
    (place / "config.json").write_text(json.dumps(document))
    (place / "config.json.first").write_text(json.dumps(document))
    return place


def timed(command: Sequence[str | Path]) -> float:
    """Milliseconds of one command, which must succeed or ask about nothing."""
    start = time.perf_counter()
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT)
    return (time.perf_counter() - start) * 1e3


def compare(title: str, plain: Callable[[], float], ours: Callable[[], float]) -> None:
    """Medians of two ways, taken in turns."""
    pairs = [(plain(), ours()) for _ in range(REPEATS)]
    low, high = (statistics.median(times) for times in zip(*pairs, strict=True))
    print(f"{title:34} runc {low:7.2f} ms  cgpu-runtime {high:7.2f} ms  added {high - low:6.2f} ms", flush=True)


def created(runtime: Sequence[str | Path], state: Path, place: Path) -> Callable[[], float]:
    """Time of a creation; the container is removed outside the measurement."""

    def run() -> float:
        shutil.copy(place / "config.json.first", place / "config.json")
        took = timed([*runtime, "--root", state, "create", "--bundle", place, ID])
        subprocess.run([*runtime, "--root", state, "delete", "--force", ID], check=True, capture_output=True, cwd=ROOT)
        return took

    return run


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        state = here / "state"
        share, plain = bundle(here / "share", SHARE), bundle(here / "plain", [])
        thinking: list[str | Path] = [sys.executable, "-c", WRAPPER, here, "runc"]
        compare("create, with a share", created(["runc"], state, share), created(thinking, state, share))
        compare("create, without GPU", created(["runc"], state, plain), created([FRONT], state, plain))
        question = ["--root", str(state), "state", "none"]
        compare("state", lambda: timed(["runc", *question]), lambda: timed([FRONT, *question]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
