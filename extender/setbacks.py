# SPDX-License-Identifier: Apache-2.0
"""Binds that failed, pure: after three on one node the pod is kept off it for a while, so that it tries others."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

ALLOWED: Final = 3
SHUT_SECONDS: Final = 30.0
REMEMBERED: Final = 1_000


class Setbacks:
    """Counts per pod (UID) and node; `now` in monotonic seconds."""

    def __init__(self) -> None:
        self._failed: OrderedDict[tuple[str, str], tuple[int, float]] = OrderedDict()

    def failed(self, uid: str, node: str, now: float) -> None:
        """One more bind failed."""
        count, when = self._failed.pop((uid, node), (0, now))
        self._failed[uid, node] = (1 if now - when > SHUT_SECONDS else count + 1, now)
        if len(self._failed) > REMEMBERED:
            self._failed.popitem(last=False)

    def done(self, uid: str) -> None:
        """The pod is bound or gone."""
        for key in [key for key in self._failed if key[0] == uid]:
            del self._failed[key]

    def shut(self, uid: str, now: float) -> Iterator[str]:
        """Nodes that are left out for this pod now."""
        for (owner, node), (count, when) in self._failed.items():
            if owner == uid and count >= ALLOWED and now - when <= SHUT_SECONDS:
                yield node
