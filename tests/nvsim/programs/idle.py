# SPDX-License-Identifier: Apache-2.0
"""An idle context: says "ready", and for each line of its input launches a kernel, waits for it and says "launched".

A line "fork" leaves a child beside it, which has the same mappings and lives as long.
"""

import os
import sys

from libcuda import Cuda, Spin


def leave_child() -> None:
    """A child that ends when this process does: then nobody has the other end of its pipe."""
    end, held = os.pipe()
    if os.fork():
        os.close(end)
        return
    os.close(held)
    os.read(end, 1)
    os._exit(0)


def main() -> None:
    cuda = Cuda()
    spin = Spin(cuda)
    print("ready", flush=True)
    for line in sys.stdin:
        if line == "fork\n":
            leave_child()
        spin.launch(1_000_000)
        cuda.sync()
        print("launched", flush=True)


if __name__ == "__main__":
    main()
