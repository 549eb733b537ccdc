# SPDX-License-Identifier: Apache-2.0
"""Makes errors happen to cards of the simulated driver: by the preloaded driver's function, or the module's file."""

import ctypes
import os
from pathlib import Path

MODULE = Path("/proc/nvsim")


def _preloaded() -> ctypes.CDLL | None:
    """The preloaded driver, which comes to life with the first file that is opened."""
    os.close(os.open("/dev/nvidiactl", os.O_RDWR))
    library = ctypes.CDLL(None)
    return library if hasattr(library, "nvsim_inject") else None


def inject(card: int, xid: int) -> None:
    """An Xid of the whole card."""
    library = _preloaded()
    if library:
        library.nvsim_inject(card, xid, 0)
    else:
        MODULE.write_text(f"xid {card} {xid} 0", encoding="ascii")


def restore(card: int) -> None:
    """A card that fell off the bus is back."""
    library = _preloaded()
    if library:
        library.nvsim_restore(card)
    else:
        MODULE.write_text(f"restore {card}", encoding="ascii")
