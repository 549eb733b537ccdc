# SPDX-License-Identifier: Apache-2.0
"""Compares the busy time of two instances over some seconds, again where the second has not nearly twice the first.

ratio.py ID ID SECONDS
"""

import sys
import time
from pathlib import Path

TOLERANCE = 0.25  # emulated processors hand over late; equal shares would be off by a half
TRIES = 4  # and a busy host disturbs both programs


def busy() -> dict[str, int]:
    """instance → ns."""
    rows = [line.split() for line in Path("/proc/cgpu_km/inst_ctl").read_text().splitlines()]
    return {row[0]: int(dict(part.split("=") for part in row[1:])["busy_ns"]) for row in rows}


def measured(ids: list[str], seconds: float) -> float:
    """How many times the first's busy time the second had."""
    before = busy()
    time.sleep(seconds)
    after = busy()
    spent = [after[id_] - before[id_] for id_ in ids]
    print(f"busy {spent[0] / 1e9:.2f} s and {spent[1] / 1e9:.2f} s: 1 : {spent[1] / max(1, spent[0]):.2f}", flush=True)
    return spent[1] / max(1, spent[0])


def main() -> None:
    *ids, seconds = sys.argv[1:]
    for _ in range(TRIES):
        if abs(measured(ids, float(seconds)) / 2 - 1) < TOLERANCE:
            return
    sys.exit(f"the second never had twice the first, within {TOLERANCE:.0%}")


if __name__ == "__main__":
    main()
