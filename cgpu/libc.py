# SPDX-License-Identifier: Apache-2.0
"""Calls of the C library that `os` has no name for, without the import of `ctypes`.

That import costs the start of a container as much as all that the wrapper decides; what it is written over needs a tenth.
"""

from __future__ import annotations

import os
from _ctypes import FUNCFLAG_CDECL, FUNCFLAG_USE_ERRNO, CFuncPtr, dlopen, dlsym, get_errno

from cgpu.core.light import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Final

_PR_SET_PDEATHSIG: Final = 1  # of prctl(2)


class _Function(CFuncPtr):
    """Takes numbers and bytes, gives an int."""

    _flags_ = FUNCFLAG_CDECL | FUNCFLAG_USE_ERRNO


def call(name: str, *arguments: bytes | int) -> None:
    """Calls a function that answers 0 when it has done its work. Raises OSError."""
    if _Function(dlsym(dlopen(None, 0), name))(*arguments):  # type: ignore[arg-type]
        number = get_errno()
        raise OSError(number, os.strerror(number))


def die_with_parent(signal: int) -> None:
    """This process gets the signal when the one that made it has ended."""
    call("prctl", _PR_SET_PDEATHSIG, signal)
