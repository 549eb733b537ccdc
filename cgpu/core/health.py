# SPDX-License-Identifier: Apache-2.0
"""Whether a card may be used: a fault takes it out, and it comes back after answering through a quiet time."""

from collections.abc import Collection
from typing import Final

from cgpu.core.errors import SettingError

QUIET_S: Final = 60.0
# Xids that an application causes and that leave the card usable, by NVIDIA's Xid catalogue: 13 graphics exception,
# 31 memory page fault, 43 channel stopped, 45 preemptive cleanup, 68 video processor exception, 109 context switch timeout.
IGNORED_XIDS: Final = frozenset({13, 31, 43, 45, 68, 109})


class HealthBook:
    """The faults of a node's cards, by UUID. Times are seconds of one monotonic clock that the caller reads."""

    def __init__(self, ignored_xids: Collection[int] = IGNORED_XIDS, quiet_s: float = QUIET_S) -> None:
        """`ignored_xids` never mark a card; `quiet_s`: how long a card must answer without a new fault."""
        self._ignored = frozenset(ignored_xids)
        self._quiet_s = quiet_s
        self._faults: dict[str, tuple[float, str]] = {}

    def xid(self, uuid: str, number: int, now: float) -> bool:
        """Note an Xid of a card; False when it is an application's fault that leaves the card usable."""
        if number in self._ignored:
            return False
        self._faults[uuid] = (now, f"Xid {number}")
        return True

    def answered(self, uuid: str, now: float) -> None:
        """Note that a card answered; a fault older than the quiet time is over."""
        if uuid in self._faults and now - self._faults[uuid][0] >= self._quiet_s:
            del self._faults[uuid]

    def failed(self, uuid: str, why: str, now: float) -> None:
        """Note that a card did not answer; the quiet time starts anew."""
        self._faults[uuid] = (now, why)

    def fault(self, uuid: str) -> str:
        """What keeps a card out of use, "" when nothing does."""
        return self._faults[uuid][1] if uuid in self._faults else ""


def parse_xids(text: str) -> frozenset[int]:
    """A comma list of Xid numbers; empty means none. Raises SettingError."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    for part in parts:
        if not (part.isascii() and part.isdigit() and len(part) <= 6):
            raise SettingError(f"ignored Xids: {part[:40]!r} is no Xid number: write a comma list such as 13,31,43")
    return frozenset(int(part) for part in parts)
