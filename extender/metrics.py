# SPDX-License-Identifier: Apache-2.0
"""Metrics of the extender: two counted as things happen, the others worked out from the books at each scrape."""

from collections import Counter as Counts
from collections.abc import Collection, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from cgpu.core.errors import ClaimError
from cgpu.core.model import Pod
from cgpu.core.pods import claim_of
from cgpu.core.usage import holdings_of
from cgpu.telemetry import FAST_BUCKETS
from extender.binder import Result
from extender.books import Books
from extender.cache import Cache
from extender.verbs import Verbs
from extender.waiting import Reason, waiting_pods

GIB: Final = 1 << 30
VERBS: Final = ("filter", "prioritize", "bind", "preempt")


class Metrics:
    """The registry, and the two that are counted as things happen."""

    def __init__(self, cache: Cache, verbs: Verbs, schedulers: Collection[str]) -> None:
        self.registry = CollectorRegistry()
        self.seconds = Histogram(
            "cgpu_extender_request_duration_seconds",
            "Time from a scheduler's request to its answer",
            ["verb"],
            registry=self.registry,
            buckets=FAST_BUCKETS,
        )
        self.binds = Counter("cgpu_extender_binds", "Binds by what came of them", ["result"], registry=self.registry)
        for verb in VERBS:
            self.seconds.labels(verb)
        for result in Result:
            self.binds.labels(result)
        self.registry.register(_Books(cache, verbs, schedulers))


class _Books(Collector):
    def __init__(self, cache: Cache, verbs: Verbs, schedulers: Collection[str]) -> None:
        self._cache = cache
        self._verbs = verbs
        self._schedulers = schedulers

    def collect(self) -> Iterator[GaugeMetricFamily]:
        books = self._cache.books
        yield GaugeMetricFamily(
            "cgpu_extender_gpu_fragmentation_ratio",
            "Free GPU memory on cards that are partly used, over all free GPU memory",
            fragmentation(books),
        )
        yield GaugeMetricFamily(
            "cgpu_extender_books_drift_bytes",
            "GPU memory that the last comparison with the API server had to correct, or whose record was changed",
            (self._cache.drift_gib + tampered_gib(books)) * GIB,
        )
        yield self._pending()
        yield _namespaces(books)

    def _pending(self) -> GaugeMetricFamily:
        family = GaugeMetricFamily(
            "cgpu_extender_pending_pods", "Pods that wait for a card, by reason", labels=["reason"]
        )
        counts = Counts(wait.reason for wait in waiting_pods(self._verbs, self._schedulers))
        for reason in Reason:
            family.add_metric([reason], counts[reason])
        return family


def fragmentation(books: Books) -> float:
    """See the metric's help; 0 when nothing is free."""
    cards = [card for name in books.offers for card in books.state(name).cards if card.usable]
    free = sum(card.free for card in cards)
    return sum(card.free for card in cards if card.mem) / free if free else 0.0


def tampered_gib(books: Books) -> int:
    """GiB of bound pods whose allocation cannot be read or was changed after the binding."""
    return sum(_gib(books, pod) for uid, pod in books.pods.items() if uid in books.tampered)


def _gib(books: Books, pod: Pod) -> int:
    booking = books.booking(pod.uid)
    if booking is not None:
        return sum(held.mem for held in booking.holdings.values())
    try:
        claim = claim_of(pod)
    except ClaimError:
        return 0
    asked = {ask.name: {"": claim.per_card(ask)} for ask in claim.asks} if claim else {}
    return sum(held.mem for held in holdings_of(claim, asked).values()) if claim else 0


def _namespaces(books: Books) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "cgpu_namespace_gpu_memory_allocated_bytes", "GPU memory that a namespace's pods hold", labels=["namespace"]
    )
    held: Counts[str] = Counts()
    for name in books.offers:
        for booking in books.bookings(name):
            held[booking.pod.namespace] += sum(holding.mem for holding in booking.holdings.values())
    for namespace, gib in sorted(held.items()):
        family.add_metric([namespace], gib * GIB)
    return family
