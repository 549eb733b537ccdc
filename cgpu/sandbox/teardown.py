# SPDX-License-Identifier: Apache-2.0
"""Remove everything a record stands for; safe to repeat, and after any crash."""

import shutil
import time
from pathlib import Path

from cgpu.core.errors import UnavailableError
from cgpu.sandbox.host import CgroupTree, run, unmount_below
from cgpu.sandbox.network import remove_network
from cgpu.sandbox.record import Record, Records


def tear_down(record: Record, records: Records) -> None:
    """Processes, then pinned namespaces with all their mounts, links, cgroups, the state folder, the record itself.

    Raises UnavailableError when the machine refuses a step; the record stays then, and the next call goes on.
    """
    tree = CgroupTree.of_machine(record.cgroup)
    tree.kill()
    pins = records.pins(record)
    unmount_below(pins)
    shutil.rmtree(pins, ignore_errors=True)
    remove_network(record)
    tree.remove()
    state = Path(record.state)
    unmount_below(state)
    remove_tree(state)
    records.forget(record)


def remove_tree(folder: Path, deadline_s: float = 60) -> None:
    """Remove a folder and everything in it; one that is not there is fine.

    A copy that a killed start left behind may still write for a moment. Raises UnavailableError after the deadline.
    """
    end = time.monotonic() + deadline_s
    while folder.exists():
        try:
            run(["rm", "-rf", "--one-file-system", str(folder)])
        except UnavailableError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
