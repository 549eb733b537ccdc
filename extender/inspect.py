# SPDX-License-Identifier: Apache-2.0
"""The read-only view of the books in the product's JSON, pure."""

from collections.abc import Iterable
from typing import Any

from cgpu.core.model import CardState
from extender.books import Booking, Books


def nodes_report(books: Books) -> dict[str, Any]:
    """GET inspect: every node that offers cards."""
    names = sorted(name for name, offer in books.offers.items() if offer.cards)
    return {"nodes": [_node(books, name) for name in names], "error": ""}


def node_report(books: Books, name: str) -> dict[str, Any] | None:
    """GET inspect/<node>, or None for an unknown node."""
    offer = books.offers.get(name)
    return {"nodes": [_node(books, name)], "error": offer.problem} if offer is not None else None


def _node(books: Books, name: str) -> dict[str, Any]:
    state = books.state(name)
    bookings = sorted(books.bookings(name), key=lambda booking: booking.pod.key)
    return {
        "name": name,
        "totalGPU": state.total,
        "usedGPU": state.used,
        "devs": [_device(card, bookings) for card in state.cards],
    }


def _device(card: CardState, bookings: Iterable[Booking]) -> dict[str, Any]:
    uuid = card.card.uuid
    return {
        "id": card.card.index,
        "uuid": uuid,
        "totalGPU": card.card.units,
        "usedGPU": card.mem,
        "pods": [
            {
                "name": booking.pod.name,
                "namespace": booking.pod.namespace,
                "usedGPU": booking.holdings[uuid].mem,
            }
            for booking in bookings
            if uuid in booking.holdings
        ],
    }
