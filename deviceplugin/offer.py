# SPDX-License-Identifier: Apache-2.0
"""What a node offers, decided from one snapshot of facts: ids and their health, cards to publish, and why not. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from cgpu.core.annotations import allocation_of
from cgpu.core.devices import PREFIXES, SickCard, check_listing, listed_ids, split_over_cards, unhealthy_ids
from cgpu.core.errors import InputError, SettingError
from cgpu.core.model import Card, Pod
from cgpu.core.names import CORE_PER_CARD, RESOURCE_CORE, RESOURCE_MEM, Mode
from cgpu.core.pods import claim_of
from deviceplugin.grants import ENFORCED
from deviceplugin.pairing import Books, owner_of
from deviceplugin.servicer import Devices

RESOURCES: Final = (RESOURCE_MEM, RESOURCE_CORE)


@dataclass(frozen=True, slots=True)
class Held:
    """Ids of one resource that pods hold: all of them, and those that count for each card."""

    ids: frozenset[str] = frozenset()
    by_card: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything an offer depends on. Each `…_problem` is "" when there is none."""

    mode: Mode
    cards: tuple[Card, ...] = ()
    card_problem: str = ""
    module_problem: str = ""
    runtime_problem: str = ""
    held: Mapping[str, Held] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Offer:
    """`devices` by resource; `cards` as the annotation shows them, None = no annotation; `problem`: why not ready."""

    devices: Mapping[str, Devices]
    cards: tuple[Card, ...] | None = None
    problem: str = ""


def offer_of(facts: Facts, before: Mapping[str, Devices]) -> Offer:
    """What to advertise and publish. `before`: the ids as last advertised, so that little changes."""
    if facts.mode is Mode.DEFAULT:
        return Offer(dict.fromkeys(RESOURCES, ()))
    problem = problem_of(facts)
    if problem and not any(held.ids for held in facts.held.values()):
        return Offer(dict.fromkeys(RESOURCES, ()), problem=problem)
    cards = tuple(replace(card, healthy=card.healthy and not problem) for card in facts.cards)
    devices = {
        resource: _devices(resource, replace(facts, cards=cards), before.get(resource, ()), everything=bool(problem))
        for resource in RESOURCES
    }
    return Offer(devices, cards, problem)


def problem_of(facts: Facts) -> str:
    """What keeps the whole node from handing shares out, "" when nothing does."""
    module = facts.module_problem if facts.mode in ENFORCED else ""
    return facts.card_problem or module or facts.runtime_problem or _listing_problem(facts)


def _listing_problem(facts: Facts) -> str:
    try:
        for resource in RESOURCES:
            check_listing(resource, _count(resource, facts))
    except SettingError as error:
        return str(error)
    return ""


def _count(resource: str, facts: Facts) -> int:
    if resource == RESOURCE_MEM:
        return sum(card.units for card in facts.cards)
    return CORE_PER_CARD * len(facts.cards) if facts.mode is Mode.CORE_MEM else 0


def _devices(resource: str, facts: Facts, before: Devices, everything: bool) -> Devices:
    held = facts.held.get(resource, Held())
    ids = listed_ids(PREFIXES[resource], _count(resource, facts), held.ids)
    if everything:
        return [(id_, False) for id_ in ids]
    was = frozenset(id_ for id_, healthy in before if not healthy)
    turned = unhealthy_ids(ids, _sick(resource, facts, held), held.ids, was)
    return [(id_, id_ not in turned) for id_ in ids]


def _sick(resource: str, facts: Facts, held: Held) -> list[SickCard]:
    """Cards at fault, and cards that are gone but whose pods are still here: those offer nothing more than is held."""
    units = {card.uuid: card.units if resource == RESOURCE_MEM else CORE_PER_CARD for card in facts.cards}
    at_fault = [card.uuid for card in facts.cards if not card.healthy]
    gone = sorted(held.by_card.keys() - units.keys())
    return [SickCard(units.get(uuid, 0), held.by_card.get(uuid, frozenset())) for uuid in (*at_fault, *gone)]


def held_ids(books: Books, pods: Mapping[str, Pod], cards: Sequence[Card]) -> dict[str, Held]:
    """What pods hold of each resource, and of which card, from the kubelet's books and the pods' annotations."""
    return {resource: _held(resource, books, pods, cards) for resource in RESOURCES}


def _held(resource: str, books: Books, pods: Mapping[str, Pod], cards: Sequence[Card]) -> Held:
    by_card: dict[str, frozenset[str]] = {}
    for entry in books.living(pods):
        if entry.resource != resource:
            continue
        pod = owner_of(entry, books, pods)
        for uuid, ids in _on_cards(pod, entry.container, entry.ids, cards).items():
            by_card[uuid] = by_card.get(uuid, frozenset()) | ids
    return Held(books.held(resource, pods), by_card)


def _on_cards(pod: Pod | None, container: str, ids: Iterable[str], cards: Sequence[Card]) -> dict[str, frozenset[str]]:
    try:
        claim = claim_of(pod) if pod is not None else None
        allocation = allocation_of(pod, claim, cards) if pod is not None and claim is not None else None
    except InputError:
        return {}
    shares = (allocation or {}).get(container, {})
    if len(shares) == 1:
        return {next(iter(shares)): frozenset(ids)}
    return split_over_cards(ids, shares)
