# SPDX-License-Identifier: Apache-2.0
"""python3 creation.py ROUNDS RUNTIME...: median ms that each runtime takes to create a container with every GPU, as JSON.

Taken in turns, so that whatever else the machine does meets all of them. A runtime that ends with an error ends this.
"""

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ENV = ["ALIYUN_COM_GPU_MEM_CONTAINER=6", "ALIYUN_COM_GPU_MEM_DEV=15", "NVIDIA_VISIBLE_DEVICES=all"]
ID = "0123456789abcdef" * 4


def bundle(place: Path) -> str:
    """A container of busybox; returns its document, which some runtimes overwrite."""
    for folder in ("bin", "etc"):  # /etc for the hook that writes the loader's cache
        (place / "rootfs" / folder).mkdir(parents=True)
    shutil.copy2("/bin/busybox", place / "rootfs/bin")
    subprocess.run(["runc", "spec", "-b", place], check=True)
    document = json.loads((place / "config.json").read_text())
    document["process"] |= {"terminal": False, "args": ["/bin/busybox", "true"]}
    document["process"]["env"] += ENV
    document["root"]["readonly"] = False  # NVIDIA's hooks write links and the loader's cache
    return json.dumps(document)


def creation(runtime: str, place: Path, document: str) -> float:
    """Milliseconds of one creation; the removal is not counted."""
    (place / "config.json").write_text(document)
    start = time.perf_counter()
    subprocess.run([runtime, "create", "--bundle", place, ID], check=True, stdin=subprocess.DEVNULL)
    took = (time.perf_counter() - start) * 1e3
    subprocess.run([runtime, "delete", "--force", ID], check=True)
    return took


def main() -> None:
    """The first round warms caches and does not count."""
    rounds, runtimes = int(sys.argv[1]), sys.argv[2:]
    place = Path(tempfile.mkdtemp(dir="/run"))
    document = bundle(place)
    taken = [[creation(runtime, place, document) for runtime in runtimes] for _ in range(rounds + 1)][1:]
    medians = map(statistics.median, zip(*taken, strict=True))
    print(json.dumps(dict(zip(runtimes, medians, strict=True))))


if __name__ == "__main__":
    main()
