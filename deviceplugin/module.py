# SPDX-License-Identifier: Apache-2.0
"""The kernel module on this node: loaded when the node's mode needs it, and why it is not there when it is not."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from cgpu.core.errors import CgpuError
from cgpu.core.names import LABEL_SCHEDULE, Mode
from cgpu.procfs import CgpuProc
from deviceplugin.grants import ENFORCED

log = logging.getLogger(__name__)
_EVERY_S: Final = 5.0


class Loading(Protocol):
    """Builds and loads; `cgpu.loader.Loader` is one."""

    def wanted(self) -> str | None:
        """The version that is meant, None where any is."""

    def ensure(self, parameters: Mapping[str, str]) -> str:
        """Load it, built before where need be. Raises CgpuError with the reason and the remedy."""

    def exchange(self, parameters: Mapping[str, str]) -> str:
        """Bring the version that is meant to run in place of another, below running containers. Raises CgpuError."""


class Module:
    """What is known of the module. `problem` costs a look at procfs; the work is done by `keep`."""

    def __init__(self, proc: CgpuProc, loader: Loading | None, parameters: Mapping[str, str]) -> None:
        """`loader`: None where somebody else loads the module."""
        self._proc = proc
        self._loader = loader
        self._parameters = parameters
        self._failure = ""

    def problem(self, mode: Mode) -> str:
        """Why the modes that isolate cannot be served, "" when they can."""
        running = self._running()
        if running:
            return self._other_version(running)
        remedy = f"; or label the node {LABEL_SCHEDULE}={Mode.SHARE} to go without isolation"
        if self._loader is None:
            return f"mode {mode} needs the kernel module cgpu_km and {self._proc.path} is not there: load it{remedy}"
        if not self._failure:
            return f"mode {mode} needs the kernel module cgpu_km: it is being loaded"
        return f"mode {mode} needs the kernel module cgpu_km, which could not be loaded: {self._failure}{remedy}"

    def _running(self) -> str:
        """Version of the core, "" when there is none: the front alone says `none`."""
        version = self._proc.version()
        return version if version not in {None, "none"} else ""

    def _other_version(self, running: str) -> str:
        wanted = self._loader.wanted() if self._loader is not None else None
        if wanted in {None, running}:
            return ""
        why = self._failure or "it is being exchanged"
        return f"kernel module cgpu_km {running} runs and {wanted} is wanted: {why}"

    async def keep(self, mode: Callable[[], Mode], wake: Callable[[], None]) -> None:
        """Load the module whenever the mode in force needs it and it is not there, or runs in another version; for ever.

        `wake`: called after an attempt that ended otherwise than the one before.
        """
        while True:
            running = self._running()
            if self._loader is not None and mode() in ENFORCED and (not running or self._other_version(running)):
                before = self._failure
                await self._try(self._loader.exchange if running else self._loader.ensure)
                if not self._failure or self._failure != before:
                    wake()
            await asyncio.sleep(_EVERY_S)

    async def _try(self, work: Callable[[Mapping[str, str]], str]) -> None:
        try:
            version = await asyncio.to_thread(work, self._parameters)
        except CgpuError as error:
            self._failure = str(error)
        else:
            self._failure = ""
            log.info("kernel module cgpu_km %s runs", version)
