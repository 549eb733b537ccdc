# SPDX-License-Identifier: Apache-2.0
"""Watches the first card with nvidia-ml-py, makes Xids happen there, and prints each event's type and number.

events.py XID...
"""

import ctypes
import sys

import pynvml
from faulty import inject

WAIT_MS = 60_000


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
        inject(0, xid)
        event = wait(events)
        print(event.eventType == pynvml.nvmlEventTypeXidCriticalError, event.eventData)


if __name__ == "__main__":
    main()
