# SPDX-License-Identifier: Apache-2.0
"""The device plugin's own view of two cards while the first one has errors; prints what each step left.

health.py [SECONDS]        # how long an Xid is waited for; its clock is ours: a quiet minute passes at once
"""

import sys
import threading
import time

from faulty import inject, restore

from cgpu.core.health import QUIET_S, HealthBook
from cgpu.gpus import NvmlGpus

SOON_S = 0.3
AT_MOST_S = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0


class Clock:
    """The monotonic clock, which can be set ahead."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead_s


def show(step: str, gpus: NvmlGpus) -> None:
    print(f"{step}:", ", ".join(gpu.fault or "healthy" for gpu in gpus.scan()), flush=True)


def happens(gpus: NvmlGpus, xid: int) -> None:
    """An Xid while the plugin waits: says whether the wait ended by it."""
    threading.Timer(SOON_S, inject, (0, xid)).start()
    started = time.monotonic()
    gpus.wait(AT_MOST_S)
    seen = "seen" if time.monotonic() - started < AT_MOST_S / 2 else "not seen"
    show(f"Xid {xid} {seen}", gpus)


def main() -> None:
    clock = Clock()
    inject(0, 79)
    gpus = NvmlGpus(HealthBook(), clock)
    show("lost from the beginning", gpus)
    restore(0)
    show("found", gpus)
    for xid in (48, 79):
        happens(gpus, xid)
        restore(0)
        show("back", gpus)
        clock.ahead_s += QUIET_S
        show("after a quiet minute", gpus)
    happens(gpus, 48)


if __name__ == "__main__":
    main()
