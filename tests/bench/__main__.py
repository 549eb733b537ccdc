# SPDX-License-Identifier: Apache-2.0
"""`make bench`: every benchmark, each figure beside a baseline of the same run."""

import sys

from tests.bench import allocate, creation, extender, module, runtime, simulator, switching

BENCHMARKS = {
    "extender, 1,000 nodes of 8 cards": extender.main,
    "device plugin, a node of 8 H200": allocate.main,
    "kernel module, calls in a virtual machine": module.main,
    "kernel module, a change of the turn": switching.main,
    "OCI runtime, a container's creation": runtime.main,
    "OCI runtime, the same in a virtual machine": creation.main,
    "simulated driver": simulator.main,
}


def main() -> int:
    """Run them all; exit 1 when one fails."""
    failed = 0
    for title, run in BENCHMARKS.items():
        print(f"bench: {title}", flush=True)
        failed += run() != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
