# SPDX-License-Identifier: Apache-2.0
"""Announces COUNT ranges of unified memory to the module, each of which it keeps; prints the bytes of kernel memory by
which the control group of this process has grown.

ranges.py COUNT GROUP
"""

import fcntl
import struct
import sys
from pathlib import Path

ALLOC_SEMAPHORE_POOL = 68


def slab(group: Path) -> int:
    """Bytes of kernel objects that a control group is charged for."""
    rows = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
    return int(rows["slab"])


def main() -> None:
    group = Path(sys.argv[2])
    with Path("/dev/nvidia-uvm").open("r+b", buffering=0) as uvm:
        before = slab(group)
        for number in range(int(sys.argv[1])):
            fcntl.ioctl(uvm, ALLOC_SEMAPHORE_POOL, bytearray(struct.pack("QQQ", 4096 * number, 4096, 0)))
        print(slab(group) - before)


if __name__ == "__main__":
    main()
