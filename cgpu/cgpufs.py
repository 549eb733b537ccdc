# SPDX-License-Identifier: Apache-2.0
"""cgpufs, the file system with an instance's device nodes: mounted and unmounted here and nowhere else."""

from __future__ import annotations

import errno
import os

from cgpu.core.light import TYPE_CHECKING
from cgpu.libc import call

if TYPE_CHECKING:
    from typing import Final

_DETACH: Final = 2  # MNT_DETACH of umount2(2)


def mount_cgpufs(id_: str, folder: os.PathLike[str]) -> None:
    """Mount an instance's nodes. Raises OSError."""
    call("mount", b"cgpu", os.fsencode(folder), b"cgpufs", 0, f"id={id_}".encode())


def unmount(folder: os.PathLike[str]) -> None:
    """Unmount, if anything is mounted. Raises OSError."""
    try:
        call("umount2", os.fsencode(folder), _DETACH)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOENT):
            raise
