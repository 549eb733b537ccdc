# SPDX-License-Identifier: Apache-2.0
"""Runs COUNT kernels of NS nanoseconds, all queued or each waited for, once a file appears; prints how long it took.

share.py COUNT NS queued|waited [FILE]        # says "ready" and waits for FILE before it begins
"""

import sys
import time
from pathlib import Path

from libcuda import Cuda, Spin


def main() -> None:
    count, duration_ns, waited = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "waited"
    cuda = Cuda()
    spin = Spin(cuda)
    if len(sys.argv) > 4:
        print("ready", flush=True)
        while not Path(sys.argv[4]).exists():
            time.sleep(0.01)
    started = time.monotonic()
    for _ in range(count):
        spin.launch(duration_ns)
        if waited:
            cuda.sync()
    cuda.sync()
    print(f"elapsed_ms {(time.monotonic() - started) * 1000:.3f}", flush=True)


if __name__ == "__main__":
    main()
