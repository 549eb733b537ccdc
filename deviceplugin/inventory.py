# SPDX-License-Identifier: Apache-2.0
"""Looks at cards, node and pods, and publishes what changed. One loop, one decision a turn, level-triggered."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from cgpu.core.devices import PREFIXES, listed_ids
from cgpu.core.errors import CgpuError, UnavailableError
from cgpu.core.memory import units_of
from cgpu.core.model import Card, Node
from cgpu.core.names import (
    EVENT_MODE_REFUSED,
    EVENT_MODULE_NOT_READY,
    MAX_INSTANCES_DEFAULT,
    RESOURCE_COUNT,
    RESOURCE_MEM,
    Mode,
)
from cgpu.core.pods import holds
from cgpu.gpus import Gpu
from deviceplugin.cardnews import CardNews
from deviceplugin.handover import Kubelet, Recorder, Serving
from deviceplugin.modes import choose_mode
from deviceplugin.offer import Facts, Offer, held_ids, offer_of, problem_of
from deviceplugin.pairing import Books
from deviceplugin.publisher import Publisher
from deviceplugin.records import Records
from deviceplugin.runtime import is_reported
from deviceplugin.servicer import Listing
from deviceplugin.stores import NodeStore, PodStore, Signal

log = logging.getLogger(__name__)
_LOOK_S: Final = 5.0
_AGAIN_S: Final = 1.0
_SCAN_S: Final = 1.0
_GRACE_S: Final = 10.0
NOT_OURS: Final = "its mode is default: the node is not ours"


class GpuSource(Protocol):
    """Where cards come from; both calls block."""

    def scan(self) -> tuple[Gpu, ...]:
        """The cards now. Raises UnavailableError or SettingError with the reason when there is none."""

    def wait(self, timeout_s: float) -> None:
        """Until they may have changed, at most `timeout_s`."""


class Registered(Protocol):
    """A server that may or may not be known to the kubelet at this moment."""

    resource: str
    registered: bool
    signal: Signal


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings that shape an inventory; memory in MiB."""

    default_mode: Mode = Mode.DEFAULT
    reserve_mib: int = 0
    max_instances: int = MAX_INSTANCES_DEFAULT
    module_problem: Callable[[Mode], str] = field(default=lambda _mode: "")
    runtime_problem: Callable[[str], str] = field(default=lambda _version: "")


class Inventory:
    """Owns the node's offer. `problem` and `ready` are what /healthz answers."""

    def __init__(
        self,
        source: GpuSource,
        kubelet: Kubelet,
        nodes: NodeStore,
        pods: PodStore,
        records: Records,
        *,
        listings: Mapping[str, Listing],
        publisher: Publisher,
        recorder: Recorder,
        rules: Rules = Rules(),
    ) -> None:
        """`listings` by resource: where ids are published."""
        self._source = source
        self._kubelet = kubelet
        self._nodes = nodes
        self._pods = pods
        self._records = records
        self._listings = listings
        self._publisher = publisher
        self._recorder = recorder
        self._news = CardNews(recorder, records)
        self._rules = rules
        self._gpus: tuple[Gpu, ...] = ()
        self._card_problem = "the cards have not been looked at yet"
        self._books = Books()
        self._mode: Mode | None = None
        self._runtime = ""
        self._told: dict[str, str] = {}
        self.serving = Serving()
        self.signal = Signal()  # fires after each turn that changed `serving` or an id
        self.wake = Signal()  # fire it to have everything looked at again
        self._servers: Sequence[Registered] = ()
        self._registered_at = time.monotonic()

    @property
    def mode(self) -> Mode:
        """The mode in force."""
        return self._mode or Mode.DEFAULT

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """The cards as the driver describes them."""
        return self._gpus

    @property
    def problem(self) -> str:
        """Why this node is not ready, "" when it is."""
        if self.mode is Mode.DEFAULT:
            return ""
        if self.serving.problem:
            return self.serving.problem
        return "" if self._registered() else "not registered with the kubelet"

    def watch_servers(self, servers: Sequence["Registered"]) -> None:
        """Whose registration decides about gpu-count and readiness: those that have something to offer."""
        self._servers = servers

    def _registered(self) -> bool:
        return all(server.registered for server in self._servers if self._listings[server.resource].devices)

    async def scan_for_ever(self) -> None:
        """Look at the cards whenever the source says that they may have changed."""
        while True:
            await self.scan()
            await asyncio.to_thread(self._source.wait, _SCAN_S)

    async def scan(self) -> None:
        """Look at the cards once."""
        before = (self._gpus, self._card_problem)
        try:
            self._gpus, self._card_problem = await asyncio.to_thread(self._source.scan), ""
        except CgpuError as error:
            self._gpus, self._card_problem = (), str(error)
        if before != (self._gpus, self._card_problem):
            self.wake.fire()

    async def run(self) -> None:
        """Publish for ever; a turn follows each change of cards, node or pods, and failures are tried again."""
        while True:
            signals = [self.wake, self._nodes.signal, self._pods.signal, *(server.signal for server in self._servers)]
            changes = [signal.next() for signal in signals]
            done = await self.turn()
            await _first(changes, _LOOK_S if done else _AGAIN_S)

    async def turn(self) -> bool:
        """One decision. False when something could not be published and should be tried again soon."""
        node = self._nodes.node
        if node is None:
            return True
        self._choose_mode(node.labels)
        if not self._card_problem:
            self._news.tell(self._gpus)
        if is_reported(node.runtime) or not self._runtime:
            self._runtime = node.runtime
        facts = self._facts()
        if self._needs_books(facts):
            if not await self._read_books() and problem_of(facts) and self._listings[RESOURCE_MEM].devices:
                return False  # without knowing who holds what, nothing may be withdrawn
            facts = self._facts()  # one snapshot: nothing is awaited until it is applied
        offer = offer_of(facts, {resource: listing.devices for resource, listing in self._listings.items()})
        self._tell_problem(facts, offer)
        self._apply(offer, facts)
        serving = self.mode is not Mode.DEFAULT
        return await self._publisher.publish(node, offer.cards, self._count(offer, node), serving=serving)

    def _count(self, offer: Offer, node: Node) -> int | None:
        """aliyun.com/gpu-count: withdrawn when gpu-mem is not registered, but not for the second a restart takes."""
        now = time.monotonic()
        if offer.cards is None:
            return None
        if self._registered():
            self._registered_at = now
            return len(offer.cards)
        shown = node.capacity.get(RESOURCE_COUNT, "")
        return int(shown) if shown.isdigit() and now - self._registered_at < _GRACE_S else None

    def _cards(self) -> tuple[Card, ...]:
        return tuple(
            Card(
                index=gpu.index,
                minor=gpu.minor,
                uuid=gpu.uuid,
                model=gpu.model,
                mem_mib=gpu.total_mib,
                units=units_of(gpu.total_mib, gpu.reserved_mib + self._rules.reserve_mib),
                max_instances=self._rules.max_instances,
                healthy=not gpu.fault,
                numa=gpu.numa,
            )
            for gpu in self._gpus
        )

    def _facts(self) -> Facts:
        cards = self._cards()
        return Facts(
            mode=self.mode,
            cards=cards,
            card_problem=self._card_problem,
            module_problem=self._rules.module_problem(self.mode),
            runtime_problem=self._rules.runtime_problem(self._runtime),
            held=held_ids(self._books, self._pods.pods, cards),
        )

    def _choose_mode(self, labels: Mapping[str, str]) -> None:
        mode, refusal = choose_mode(labels, self._rules.default_mode, self._mode, self._holding())
        if refusal:
            self._tell("mode", EVENT_MODE_REFUSED, refusal)
        else:
            self._told.pop("mode", None)
        if mode is not self._mode:
            log.info("mode %s", mode)
        self._mode = mode

    def _holding(self) -> dict[str, Mode]:
        """Pods that were given a share here and still hold it, with the mode it was given in."""
        found = {}
        for grant in self._records:
            pod = self._pods.pods.get(grant.pod_uid)
            if pod is not None and holds(pod):
                found[pod.key] = grant.mode
        return found

    def _needs_books(self, facts: Facts) -> bool:
        """Whether ids that pods hold matter for this turn: something is wrong, or the list is about to change."""
        if facts.mode is Mode.DEFAULT:
            return False
        sick = bool(problem_of(facts)) or any(not card.healthy for card in facts.cards)
        listed = tuple(id_ for id_, _ in self._listings[RESOURCE_MEM].devices)
        return sick or listed != listed_ids(PREFIXES[RESOURCE_MEM], sum(card.units for card in facts.cards))

    async def _read_books(self) -> bool:
        try:
            self._books = await self._kubelet.read()
        except UnavailableError as error:
            log.warning("the last known holders stay in force: %s", error)
            return False
        return True

    def _apply(self, offer: Offer, facts: Facts) -> None:
        problem = NOT_OURS if facts.mode is Mode.DEFAULT else offer.problem
        serving = Serving(offer.cards or (), facts.mode, problem)
        changed = serving != self.serving
        self.serving = serving
        for resource, listing in self._listings.items():
            changed |= tuple(offer.devices[resource]) != tuple(listing.devices)
            listing.publish(offer.devices[resource])
        if changed:
            self.signal.fire()

    def _tell_problem(self, facts: Facts, offer: Offer) -> None:
        if facts.module_problem and offer.problem == facts.module_problem:
            self._tell("module", EVENT_MODULE_NOT_READY, offer.problem)
        else:
            self._told.pop("module", None)
        if offer.problem != self._told.get("log", ""):
            log.log(logging.WARNING if offer.problem else logging.INFO, "%s", offer.problem or "ready to serve")
            self._told["log"] = offer.problem

    def _tell(self, key: str, reason: str, message: str) -> None:
        """A node event, and a log line, once for each new text."""
        if self._told.get(key) != message:
            self._told[key] = message
            log.warning("%s: %s", reason, message)
            self._recorder.node(reason, message)


async def _first(changes: Sequence[asyncio.Event], timeout_s: float) -> None:
    """Wait until one of the events is set, at most `timeout_s`."""
    tasks = [asyncio.create_task(change.wait()) for change in changes]
    try:
        await asyncio.wait(tasks, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
