# SPDX-License-Identifier: Apache-2.0
"""How long two instances were busy in a time; prints one JSON object in seconds.

measure.py ID ID SECONDS
"""

import json
import sys
import time

from ratio import busy


def main() -> None:
    *ids, seconds = sys.argv[1:]
    time.sleep(1)  # what was queued under the setting before is worked off
    started, before = time.monotonic(), busy()
    time.sleep(float(seconds))
    after, wall = busy(), time.monotonic() - started
    print(json.dumps({"wall": wall, "busy": [(after[id_] - before[id_]) / 1e9 for id_ in ids]}), flush=True)


if __name__ == "__main__":
    main()
