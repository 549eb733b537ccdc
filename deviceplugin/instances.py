# SPDX-License-Identifier: Apache-2.0
"""What stands behind a grant on this node: nothing (env only), the real device nodes, or a kernel instance."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from cgpu.cdi import Edits, env_only, real_nodes
from cgpu.core.model import Card
from deviceplugin.grants import Grant


class Instances(Protocol):
    """Makes and ends what a grant stands for. All methods block shortly and may be called twice for the same grant."""

    def adopt(self, grant: Grant, cards: Sequence[Card]) -> bool:
        """Whether the grant's instance exists already; its sizes are set to the grant's. Raises UnavailableError."""

    def create(self, grant: Grant, cards: Sequence[Card]) -> None:
        """Make the grant's instance; nothing stays behind when it fails. Raises UnavailableError with the reason."""

    def destroy(self, instance: str) -> None:
        """End an instance; one that is gone already is no error. Raises UnavailableError while it is in use."""

    def list(self) -> frozenset[str]:
        """Ids of the instances that exist and that are Kubernetes' own."""

    def edits(self, grant: Grant, env: Mapping[str, str], cards: Sequence[Card]) -> Edits:
        """What the container gets."""


class NoInstances:
    """Simulated cards: the container gets its environment."""

    def adopt(self, grant: Grant, cards: Sequence[Card]) -> bool:
        """There is nothing to make."""
        del grant, cards
        return True

    def create(self, grant: Grant, cards: Sequence[Card]) -> None:
        """There is nothing to make."""

    def destroy(self, instance: str) -> None:
        """There is nothing to end."""

    def list(self) -> frozenset[str]:
        """None."""
        return frozenset()

    def edits(self, grant: Grant, env: Mapping[str, str], cards: Sequence[Card]) -> Edits:
        """Environment only."""
        del grant, cards
        return env_only(env)


class SharedNodes(NoInstances):
    """Mode `share` on real cards: the container gets the cards' device nodes, without isolation."""

    def __init__(self, dev_root: Path = Path("/dev")) -> None:
        """`dev_root`: where the host's device nodes are looked for."""
        self._dev_root = dev_root

    def edits(self, grant: Grant, env: Mapping[str, str], cards: Sequence[Card]) -> Edits:
        """Environment and device nodes of the grant's cards."""
        return real_nodes(env, [card.minor for card in cards if card.uuid in grant.shares], self._dev_root)
