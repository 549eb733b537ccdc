# SPDX-License-Identifier: Apache-2.0
"""The GPUs of this machine: NVIDIA's management library, or a file of simulated cards.

Both answer the same two questions: what cards are there now (`scan`), and wait until that may have changed (`wait`).
Both calls block; the device plugin makes them in a thread of their own.
"""

import ctypes
import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pynvml

from cgpu.cards import card_uuid, expand, read_cards
from cgpu.core.errors import SettingError, UnavailableError
from cgpu.core.health import HealthBook

log = logging.getLogger(__name__)
_POLL_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class Gpu:
    """One card as the driver describes it; sizes in MiB. `fault`: what keeps it out of use, "" when healthy."""

    index: int
    minor: int
    uuid: str
    model: str
    total_mib: int
    reserved_mib: int = 0
    numa: int | None = None
    fault: str = ""
    used_mib: int | None = field(default=None, compare=False)  # by whomever; None: nobody can tell


class SimulatedGpus:
    """Cards from a `--simulate` file, read again whenever it changes; `healthy:` in it switches a card's health."""

    def __init__(self, path: Path, node: str) -> None:
        """`node`: part of the UUIDs of cards that name none."""
        self._path = path
        self._node = node
        self._seen: object = None
        self._good: tuple[Gpu, ...] | None = None

    def scan(self) -> tuple[Gpu, ...]:
        """The file's cards. Raises SettingError for a mistake at the first read; a later one keeps the last good list."""
        self._seen = self._stamp()
        try:
            rows = expand(read_cards(self._path))
        except SettingError as error:
            if self._good is None:
                raise
            log.error("the last good card list stays in force: %s", error)
            return self._good
        self._good = tuple(
            Gpu(
                index=index,
                minor=index,
                uuid=row.uuid or card_uuid(self._node, index),
                model=row.model,
                total_mib=row.mem_mib,
                numa=row.numa,
                fault="" if row.healthy else f"healthy: false in {self._path}",
            )
            for index, row in enumerate(rows)
        )
        return self._good

    def wait(self, timeout_s: float) -> None:
        """Return when the file changed since the last scan, at most after `timeout_s`."""
        end = time.monotonic() + timeout_s
        while self._stamp() == self._seen and (left := end - time.monotonic()) > 0:
            time.sleep(min(_POLL_S, left))

    def _stamp(self) -> object:
        try:
            found = os.stat(self._path)  # noqa: PTH116 - follows the links by which the kubelet swaps a ConfigMap's files
        except OSError:
            return None
        return (found.st_mtime_ns, found.st_size, found.st_ino)


class NvmlGpus:
    """Cards from NVML. A card that was seen once stays in the list, at fault, when it stops answering."""

    def __init__(self, health: HealthBook, clock: Callable[[], float] = time.monotonic, nvml: Any = pynvml) -> None:
        """`nvml`: the module that speaks to the library; `clock`: seconds, monotonic."""
        self._nvml = nvml
        self._health = health
        self._clock = clock
        self._known: dict[str, Gpu] = {}
        self._events: Any = None
        self._no_events = False
        self._wait_error = ""
        self._watched: set[str] = set()
        self._said: list[str] = []
        self._starts = 0
        self._lost = False

    def scan(self) -> tuple[Gpu, ...]:
        """Every card that answers or once did, in index order.

        Raises UnavailableError when there is no driver or no usable card, with the reason.
        """
        skipped: list[str] = []
        try:
            self._start()
            answering = {gpu.uuid: gpu for gpu in self._answering(skipped)}
        except self._nvml.NVMLError as error:
            if not self._known:
                raise UnavailableError(f"no NVIDIA GPU can be used on this node: NVML: {error}") from error
            answering = {}
        now = self._clock()
        for uuid in self._known.keys() - answering.keys():
            self._health.failed(uuid, "the card does not answer", now)
        for uuid in answering:
            self._health.answered(uuid, now)
        self._known |= answering
        if not self._known:
            raise UnavailableError(f"no NVIDIA GPU can be used on this node: {'; '.join(skipped) or 'NVML lists none'}")
        return tuple(sorted((self._judged(gpu) for gpu in self._known.values()), key=lambda gpu: (gpu.index, gpu.uuid)))

    def _start(self) -> None:
        """Start the library; anew after a card was lost, since it never looks again at one that it found lost."""
        while self._lost and self._starts:
            self._starts -= 1
            self._nvml.nvmlShutdown()
            self._events, self._watched = None, set()
        self._lost = False
        self._nvml.nvmlInit()
        self._starts += 1

    def _judged(self, gpu: Gpu) -> Gpu:
        return Gpu(
            gpu.index, gpu.minor, gpu.uuid, gpu.model, gpu.total_mib, gpu.reserved_mib, gpu.numa,
            fault=self._health.fault(gpu.uuid), used_mib=gpu.used_mib,
        )  # fmt: skip

    def _answering(self, skipped: list[str]) -> list[Gpu]:
        found = []
        for index in range(self._nvml.nvmlDeviceGetCount()):
            try:
                handle = self._nvml.nvmlDeviceGetHandleByIndex(index)
                gpu = self._describe(index, handle)
            except self._nvml.NVMLError as error:
                self._lost |= error.value == pynvml.NVML_ERROR_GPU_IS_LOST
                skipped.append(f"GPU {index}: {error}")
                continue
            self._watch(gpu.uuid, handle)
            found.append(gpu)
        if skipped != self._said:
            log.warning("cards left out: %s", "; ".join(skipped) or "none any more")
            self._said = list(skipped)
        return found

    def _describe(self, index: int, handle: Any) -> Gpu:
        nvml = self._nvml
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
        return Gpu(
            index=index,
            minor=nvml.nvmlDeviceGetMinorNumber(handle),
            uuid=nvml.nvmlDeviceGetUUID(handle),
            model=nvml.nvmlDeviceGetName(handle),
            total_mib=memory.total >> 20,
            reserved_mib=self._reserved_mib(handle),
            numa=self._optional(nvml.nvmlDeviceGetNumaNodeId, handle),
            used_mib=memory.used >> 20,
        )

    def _reserved_mib(self, handle: Any) -> int:
        """What the driver reports as reserved; branches before 510 know no second form and leave it out of the total."""
        memory = self._optional(self._nvml.nvmlDeviceGetMemoryInfo, handle, self._nvml.nvmlMemory_v2)
        return 0 if memory is None else memory.reserved >> 20

    def _optional(self, call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except self._nvml.NVMLError:
            return None

    def _watch(self, uuid: str, handle: Any) -> None:
        if uuid in self._watched:
            return
        try:
            if self._events is None:
                self._events = self._nvml.nvmlEventSetCreate()
            self._nvml.nvmlDeviceRegisterEvents(handle, self._nvml.nvmlEventTypeXidCriticalError, self._events)
        except self._nvml.NVMLError as error:
            log.warning("GPU %s reports no Xids (%s): its health is seen by asking it only", uuid, error)
        self._watched.add(uuid)

    def wait(self, timeout_s: float) -> None:
        """Return at an Xid that marks a card, at most after `timeout_s`."""
        end = self._clock() + timeout_s
        while (left := end - self._clock()) > 0:
            try:
                if self._events is None or self._no_events:
                    time.sleep(left)
                elif self._next_xid(left):
                    return
            except self._nvml.NVMLError as error:
                # A driver without this call, or a lost card: the next scan sees by asking which card does not answer.
                self._no_events = isinstance(error, self._nvml.NVMLError_FunctionNotFound)
                if str(error) != self._wait_error:
                    log.warning("waiting for Xids: %s", error)
                self._wait_error = str(error)
                time.sleep(max(0.0, end - self._clock()))

    def _next_xid(self, timeout_s: float) -> bool:
        """Whether an Xid came that marks a card. Raises NVMLError."""
        nvml = self._nvml
        timeout_ms = max(1, int(timeout_s * 1000))
        try:
            try:
                event = nvml.nvmlEventSetWait_v2(self._events, timeout_ms)
            except nvml.NVMLError_FunctionNotFound:
                event = first_form_of_wait(self._events, timeout_ms)
        except nvml.NVMLError_Timeout:
            return False
        uuid = nvml.nvmlDeviceGetUUID(event.device)
        marks = self._health.xid(uuid, event.eventData, self._clock())
        log.warning("GPU %s: Xid %d%s", uuid, event.eventData, "" if marks else " (an application's fault: ignored)")
        return marks


def first_form_of_wait(events: Any, timeout_ms: int) -> Any:
    """nvmlEventSetWait of the branches before 450, which nvidia-ml-py does not offer. Raises NVMLError."""
    event = pynvml.c_nvmlEventData_t()
    call = pynvml._nvmlGetFunctionPointer("nvmlEventSetWait")
    pynvml._nvmlCheckReturn(call(events, ctypes.byref(event), timeout_ms))
    return event
