# SPDX-License-Identifier: Apache-2.0
"""Tells Pending pods why no card takes them: kube-scheduler does not ask us when the node totals fail already."""

import asyncio
import time
from collections.abc import Callable, Collection
from typing import Final

from cgpu.core.names import EVENT_UNSCHEDULABLE
from cgpu.kube.events import EventRecorder, Reference
from extender.verbs import Verbs
from extender.waiting import Reason, Wait, waiting_pods

SETTLE_SECONDS: Final = 1.0  # changes come in bursts, and a pod that fits is bound meanwhile
REPEAT_SECONDS: Final = 60.0


class Announcer:
    """Writes GPUShareUnschedulable: at once for a new reason, else once a minute while the pod waits."""

    def __init__(
        self,
        verbs: Verbs,
        recorder: EventRecorder,
        schedulers: Collection[str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._verbs = verbs
        self._recorder = recorder
        self._schedulers = schedulers
        self._clock = clock
        self._told: dict[str, tuple[str, float]] = {}

    async def run(self, changes: asyncio.Event) -> None:
        """Until cancelled: after every change, and for the reminder without one."""
        while True:
            await _until(changes, REPEAT_SECONDS / 4)
            await asyncio.sleep(SETTLE_SECONDS)
            changes.clear()
            await self.announce()

    async def announce(self) -> None:
        """One round over the waiting pods."""
        now = self._clock()
        stuck = [wait for wait in waiting_pods(self._verbs, self._schedulers) if wait.reason is not Reason.SCHEDULING]
        self._told = {wait.pod.uid: self._told[wait.pod.uid] for wait in stuck if wait.pod.uid in self._told}
        for wait in stuck:
            if self._is_due(wait, now):
                self._told[wait.pod.uid] = (wait.key, now)
                await self._recorder.warning(Reference.to_pod(wait.pod), EVENT_UNSCHEDULABLE, wait.message)

    def _is_due(self, wait: Wait, now: float) -> bool:
        key, when = self._told.get(wait.pod.uid, ("", 0.0))
        return key != wait.key or now - when >= REPEAT_SECONDS


async def _until(changes: asyncio.Event, longest: float) -> None:
    try:
        async with asyncio.timeout(longest):
            await changes.wait()
    except TimeoutError:
        return
