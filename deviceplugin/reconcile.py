# SPDX-License-Identifier: Apache-2.0
"""Removes what no pod stands behind any more. Who is there is asked, never guessed from names or ages."""

import asyncio
import logging
from typing import Final

from cgpu.cdi import CdiFolder
from cgpu.core.errors import UnavailableError
from cgpu.core.pods import holds
from deviceplugin.grants import Grant
from deviceplugin.handover import Handover, Kubelet
from deviceplugin.instances import Backends
from deviceplugin.pairing import Books
from deviceplugin.records import Records
from deviceplugin.stores import PodStore

log = logging.getLogger(__name__)
_EVERY_S: Final = 30.0
_SETTLE_S: Final = 1.0
_SOON_S: Final = 1.0


class Reconciler:
    """Compares grants, CDI files and instances with the pods of this node."""

    def __init__(
        self,
        kubelet: Kubelet,
        pods: PodStore,
        records: Records,
        *,
        cdi: CdiFolder,
        backends: Backends,
        handover: Handover,
    ) -> None:
        self._kubelet = kubelet
        self._pods = pods
        self._records = records
        self._cdi = cdi
        self._backends = backends
        self._handover = handover

    async def run(self) -> None:
        """A turn soon after pods changed, again at growing distances while something is left, every 30 s in any case.

        The API server drops a pod before the kubelet has let go of its devices, and nothing tells of the latter.
        """
        pause = _SOON_S
        while True:
            change = self._pods.signal.next()
            try:
                await self.turn()
            except UnavailableError as error:
                log.warning("nothing is cleaned up now: %s", error)
            try:
                async with asyncio.timeout(
                    pause if self._is_left() else _EVERY_S
                ):  # wait_for of Python 3.11 may lose a cancellation
                    await change.wait()
            except TimeoutError:
                pause = min(2 * pause, _EVERY_S)
                continue
            pause = _SOON_S
            await asyncio.sleep(_SETTLE_S)

    def _is_left(self) -> bool:
        """Whether something stays that no living pod of this node stands behind."""
        return any(not self._is_known(grant) for grant in self._records) or any(map(len, self._strays()))

    def _strays(self) -> tuple[frozenset[str], frozenset[str]]:
        """CDI files and instances without a grant."""
        files = self._cdi.names() - {grant.hash for grant in self._records}
        return files, self._backends.existing() - {grant.instance for grant in self._records}

    async def turn(self) -> int:
        """Remove what is left over and say how much that was. Raises UnavailableError when the kubelet cannot be asked.

        What is judged was read before the kubelet was asked, and must be unchanged afterwards: a container that
        starts meanwhile has written its grant anew, or is on the kubelet's record.
        """
        candidates = [grant for grant in self._records if not self._is_known(grant)]
        files, instances = self._strays()
        if not (candidates or files or instances):
            return 0
        books = await self._kubelet.read()
        ended = [
            grant for grant in candidates if self._records.get(grant.hash) is grant and self._is_over(grant, books)
        ]
        removed = sum([self._end(grant) for grant in ended])
        return removed + self._remove_strays(files, instances)

    def _is_known(self, grant: Grant) -> bool:
        pod = self._pods.pods.get(grant.pod_uid)
        return pod is not None and holds(pod)

    def _is_over(self, grant: Grant, books: Books) -> bool:
        """Neither the API server's watch nor the kubelet has the pod any more."""
        if self._is_known(grant):
            return False
        same = [entry for entry in books.listed if entry.ids == frozenset(grant.ids)]
        return not any((entry.namespace, entry.name) == (grant.namespace, grant.pod) for entry in same)

    def _end(self, grant: Grant) -> bool:
        try:
            self._handover.end(grant)
        except UnavailableError as error:
            log.warning("%s/%s: what container %s had stays: %s", grant.namespace, grant.pod, grant.container, error)
            return False
        log.info("%s/%s: what container %s had is removed", grant.namespace, grant.pod, grant.container)
        return True

    def _remove_strays(self, files: frozenset[str], instances: frozenset[str]) -> int:
        """Files and instances without a grant: an earlier plugin was killed half-way."""
        stray = files - {grant.hash for grant in self._records}
        for name in stray:
            self._cdi.remove(name)
        removed = len(stray)
        for instance in instances - {grant.instance for grant in self._records}:
            try:
                self._backends.destroy(instance)
                removed += 1
            except UnavailableError as error:
                log.warning("instance %s has no pod and stays: %s", instance, error)
        return removed
