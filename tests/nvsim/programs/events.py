# SPDX-License-Identifier: Apache-2.0
"""Watches the first card with nvidia-ml-py, makes Xids happen there, and prints each event's type and number.

events.py XID...
"""

import ctypes
import sys
from pathlib import Path

import pynvml

WAIT_MS = 5000


def inject(xid: int) -> None:
    """An Xid of the whole card, by the preloaded driver's function or through the module's file."""
    preloaded = ctypes.CDLL(None)
    if hasattr(preloaded, "nvsim_inject"):
        preloaded.nvsim_inject(0, xid, 0)
    else:
        Path("/proc/nvsim").write_text(f"xid 0 {xid} 0", encoding="ascii")


def wait(events: ctypes.c_void_p) -> pynvml.c_nvmlEventData_t:
    """The next event; the oldest branch has the call's first form only."""
    data = pynvml.c_nvmlEventData_t()
    library = ctypes.CDLL("libnvidia-ml.so.1")
    call = getattr(library, "nvmlEventSetWait_v2", None) or library.nvmlEventSetWait
    pynvml._nvmlCheckReturn(call(events, ctypes.byref(data), WAIT_MS))
    return data


def main() -> None:
    pynvml.nvmlInit()
    events = pynvml.nvmlEventSetCreate()
    card = pynvml.nvmlDeviceGetHandleByIndex(0)
    pynvml.nvmlDeviceRegisterEvents(card, pynvml.nvmlEventTypeXidCriticalError, events)
    for xid in map(int, sys.argv[1:]):
        inject(xid)
        event = wait(events)
        print(event.eventType == pynvml.nvmlEventTypeXidCriticalError, event.eventData)


if __name__ == "__main__":
    main()
