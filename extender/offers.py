# SPDX-License-Identifier: Apache-2.0
"""What a node offers, read from its object: pure."""

from dataclasses import dataclass

from cgpu.core.annotations import decode_cordon, decode_devices
from cgpu.core.errors import InputError
from cgpu.core.model import Card, Node
from cgpu.core.names import ANNOTATION_CORDON, ANNOTATION_DEVICES, RESOURCE_CORE, RESOURCE_MEM, Placement
from cgpu.core.pods import placement_of


@dataclass(frozen=True, slots=True)
class Offer:
    """What a node object says about its cards; `problem` is the text for whoever has to repair it."""

    cards: tuple[Card, ...] = ()
    cordoned: frozenset[str] = frozenset()
    placement: Placement = Placement.BINPACK
    core_mem: bool = False
    problem: str = ""


def offer_of(node: Node) -> Offer:
    """Cards, cordon, policy and mode of a node; a node without capacity of ours offers nothing."""
    written = node.annotations.get(ANNOTATION_DEVICES)
    if written is None or not _has(node, RESOURCE_MEM):
        return Offer()
    try:
        cards = decode_devices(written)
        cordoned = decode_cordon(node.annotations.get(ANNOTATION_CORDON, ""))
        placement = placement_of(node.labels)
    except InputError as error:
        return Offer(problem=str(error))
    return Offer(cards, cordoned, placement, _has(node, RESOURCE_CORE))


def _has(node: Node, resource: str) -> bool:
    return node.capacity.get(resource, "0") != "0"
