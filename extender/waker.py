# SPDX-License-Identifier: Apache-2.0
"""Wakes pods that fit now and that kube-scheduler would leave asleep.

A pod that we refused is looked at again when kube-scheduler hears of any change. When it heard of the change before
we did, it has asked, we have refused by books a moment old, and no other change may come for minutes; the same holds
for a place that was kept for another pod and is free again without any change of an object. A write to the waiting
pod is such a change: a condition in its status, which kube-scheduler's own role may write.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple, Protocol

from cgpu.core.errors import UnavailableError
from cgpu.core.model import Pod
from cgpu.core.names import CONDITION_ROOM
from extender.verbs import Verbs

log: Final = logging.getLogger(__name__)

TICK_SECONDS: Final = 0.5
PATIENCE_SECONDS: Final = 2.0  # kube-scheduler mostly comes by itself
AGAIN_SECONDS: Final = 30.0  # doubled each time: kube-scheduler's own rules may keep the pod where it is
LONGEST_SECONDS: Final = 600.0
AT_ONCE: Final = 8  # of many pods that fit by themselves only few fit together


class Cluster(Protocol):
    """What waking needs of the API server."""

    async def patch_pod_condition(self, namespace: str, name: str, uid: str, condition: Mapping[str, str]) -> None:
        """Set one condition of a pod."""


class _Due(NamedTuple):
    """When a pod is woken; `names`: the filter that was refused, `pause`: seconds until the time after that."""

    names: Sequence[str]
    when: float
    pause: float


class Waker:
    """Looks at every pod whose last filter was refused."""

    def __init__(
        self,
        cluster: Cluster,
        verbs: Verbs,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._cluster = cluster
        self._verbs = verbs
        self._clock = clock
        self._wall = wall
        self._due: dict[str, _Due] = {}  # by UID

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(TICK_SECONDS)
            await self.wake()

    async def wake(self) -> None:
        """One round: pods that fit for a while already are woken, the longest refused first."""
        now, woken = self._clock(), 0
        refused = self._verbs.refused_on
        self._due = {uid: due for uid, due in self._due.items() if refused.get(uid) is due.names}
        for uid, names in list(refused.items()):
            pod = self._verbs.books.waiting.get(uid)
            if pod is None or pod.deleting or not self._verbs.takes(pod, names, now):
                self._due.pop(uid, None)
            elif uid not in self._due:
                self._due[uid] = _Due(names, now + PATIENCE_SECONDS, AGAIN_SECONDS)
            elif now >= self._due[uid].when and woken < AT_ONCE:
                pause = self._due[uid].pause
                self._due[uid] = _Due(names, now + pause, min(2 * pause, LONGEST_SECONDS))
                woken += 1
                await self._touch(pod)
            await asyncio.sleep(0)  # a filter does not wait for the whole round

    async def _touch(self, pod: Pod) -> None:
        stamp = datetime.fromtimestamp(self._wall(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        condition = {
            "type": CONDITION_ROOM,
            "status": "True",
            "reason": "CardsFree",
            "message": "a node that refused the pod has room now: kube-scheduler was asked to look again",
            "lastProbeTime": stamp,
            "lastTransitionTime": stamp,
        }
        try:
            await self._cluster.patch_pod_condition(pod.namespace, pod.name, pod.uid, condition)
        except UnavailableError as error:
            log.warning("pod %s fits, but kube-scheduler could not be told: %s", pod.key, error)
        else:
            log.info("pod %s fits: kube-scheduler was asked to look again", pod.key)
