# SPDX-License-Identifier: Apache-2.0
"""Tells of cards that fail, are gone or come back, with the pods that hold them: each change is one event of the node."""

from collections.abc import Iterable, Sequence
from typing import Final

from cgpu.core.names import EVENT_RECOVERED, EVENT_UNHEALTHY
from cgpu.gpus import Gpu
from deviceplugin.grants import Grant
from deviceplugin.handover import Recorder

_NAMES: Final = 10


class CardNews:
    """Compares with what it told last; what was handed out tells which pods a card has, and which cards are missed."""

    def __init__(self, recorder: Recorder, grants: Iterable[Grant]) -> None:
        """`grants`: iterated at each look."""
        self._recorder = recorder
        self._grants = grants
        self._faults: dict[str, str] = {}

    def tell(self, gpus: Sequence[Gpu]) -> None:
        """Report what changed since the last call."""
        here = {gpu.uuid: gpu for gpu in gpus}
        missed = {uuid for grant in self._grants for uuid in grant.shares} - here.keys()
        faults = {gpu.uuid: gpu.fault for gpu in gpus if gpu.fault}
        for uuid in faults.keys() - self._faults.keys():
            self._failed(_name(here[uuid]), uuid, faults[uuid], "its pods keep running, no new ones come")
        for uuid in sorted(missed - self._faults.keys()):
            self._failed(f"GPU {uuid}", uuid, "not on this node any more", "its pods cannot start again: delete them")
        for uuid in sorted(self._faults.keys() & here.keys() - faults.keys()):
            self._recorder.node(EVENT_RECOVERED, f"{_name(here[uuid])} answers again", warning=False)
        self._faults = faults | dict.fromkeys(missed, "gone")

    def _failed(self, name: str, uuid: str, fault: str, consequence: str) -> None:
        pods = sorted({f"{grant.namespace}/{grant.pod}" for grant in self._grants if uuid in grant.shares})
        more = f" and {len(pods) - _NAMES} more" if len(pods) > _NAMES else ""
        held = f" ({', '.join(pods[:_NAMES])}{more})" if pods else ""
        self._recorder.node(EVENT_UNHEALTHY, f"{name}: {fault}; {consequence}{held}")


def _name(gpu: Gpu) -> str:
    return f"GPU {gpu.index} ({gpu.uuid})"
