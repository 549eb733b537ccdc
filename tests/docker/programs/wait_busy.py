# SPDX-License-Identifier: Apache-2.0
"""Waits until COUNT instances have used the GPU, at most two minutes.

wait_busy.py COUNT
"""

import sys
import time

from ratio import busy


def main() -> None:
    end = time.monotonic() + 120
    while sum(spent > 0 for spent in busy().values()) < int(sys.argv[1]):
        if time.monotonic() > end:
            sys.exit("no program uses the GPU")
        time.sleep(0.1)


if __name__ == "__main__":
    main()
