# SPDX-License-Identifier: Apache-2.0
"""What stands behind a grant on this node: nothing (env only), the real device nodes, or a kernel instance."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from cgpu.cdi import Edits, env_only, real_nodes
from cgpu.core.errors import UnavailableError
from cgpu.core.model import Card
from cgpu.core.names import LABEL_SCHEDULE, Mode
from cgpu.procfs import CgpuProc, Instance
from deviceplugin.grants import ENFORCED, Grant


class Instances(Protocol):
    """Makes and ends what a grant stands for. All methods block shortly and may be called twice for the same grant."""

    def problem(self, mode: Mode) -> str:
        """Why nothing can be made here in this mode, "" when it can."""

    def adopt(self, grant: Grant, cards: Sequence[Card]) -> bool:
        """Whether the grant's instance exists already; its sizes are set to the grant's. Raises UnavailableError."""

    def create(self, grant: Grant, cards: Sequence[Card]) -> None:
        """Make the grant's instance; nothing stays behind when it fails. Raises UnavailableError with the reason."""

    def destroy(self, instance: str) -> None:
        """End an instance; one that is gone already is no error. Raises UnavailableError while it is in use."""

    def existing(self) -> frozenset[str]:
        """Ids of the instances that exist and that are Kubernetes' own."""

    def edits(self, grant: Grant, env: Mapping[str, str], cards: Sequence[Card]) -> Edits:
        """What the container gets."""

    def rows(self) -> tuple[Instance, ...]:
        """What each instance has and uses, as the kernel counts it; none where nothing counts."""


class NoInstances:
    """Simulated cards: the container gets its environment."""

    def problem(self, mode: Mode) -> str:
        """There is nothing that could be missing."""
        del mode
        return ""

    def adopt(self, grant: Grant, cards: Sequence[Card]) -> bool:
        """There is nothing to make."""
        del grant, cards
        return True

    def create(self, grant: Grant, cards: Sequence[Card]) -> None:
        """There is nothing to make."""

    def destroy(self, instance: str) -> None:
        """There is nothing to end."""

    def existing(self) -> frozenset[str]:
        """None."""
        return frozenset()

    def edits(self, grant: Grant, env: Mapping[str, str], cards: Sequence[Card]) -> Edits:
        """Environment only."""
        del grant, cards
        return env_only(env)

    def rows(self) -> tuple[Instance, ...]:
        """Nothing counts."""
        return ()


class SharedNodes(NoInstances):
    """Mode `share` on real cards: the container gets the cards' device nodes, without isolation."""

    def __init__(self, dev_root: Path = Path("/dev")) -> None:
        """`dev_root`: where the host's device nodes are looked for."""
        self._dev_root = dev_root

    def edits(self, grant: Grant, env: Mapping[str, str], cards: Sequence[Card]) -> Edits:
        """Environment and device nodes of the grant's cards."""
        return real_nodes(env, [card.minor for card in cards if card.uuid in grant.shares], self._dev_root)


class WithoutModule(NoInstances):
    """Modes that need the kernel module, on a node where nothing can make its instances: every start is refused."""

    def __init__(self, proc: CgpuProc) -> None:
        """`proc`: where the module would show itself."""
        self._proc = proc

    def problem(self, mode: Mode) -> str:
        """What is missing and what to do."""
        version = self._proc.version()
        if version is not None:
            return f"mode {mode}: kernel module cgpu_km {version} is loaded, but this plugin makes no instances with it"
        return (
            f"mode {mode} needs the kernel module cgpu_km and {self._proc.path} is not there: load it on this node,"
            f" or label the node {LABEL_SCHEDULE}={Mode.SHARE} to go without isolation"
        )

    def create(self, grant: Grant, cards: Sequence[Card]) -> None:
        """Raises UnavailableError."""
        del cards
        raise UnavailableError(self.problem(grant.mode))

    def adopt(self, grant: Grant, cards: Sequence[Card]) -> bool:
        """There is never one."""
        del grant, cards
        return False


class Backends:
    """Which instances stand behind which mode."""

    def __init__(self, shared: Instances, enforced: Instances) -> None:
        """`shared`: for mode share; `enforced`: for the modes that isolate."""
        self._shared = shared
        self._enforced = enforced

    def of(self, mode: Mode) -> Instances:
        """Those of one mode."""
        return self._enforced if mode in ENFORCED else self._shared

    def existing(self) -> frozenset[str]:
        """Ids of all instances of ours on this node."""
        return self._shared.existing() | self._enforced.existing()

    def rows(self) -> tuple[Instance, ...]:
        """What each instance has and uses."""
        return (*self._shared.rows(), *self._enforced.rows())

    def destroy(self, instance: str) -> None:
        """End an instance, whichever mode it is of. Raises UnavailableError while it is in use."""
        for instances in (self._shared, self._enforced):
            if instance in instances.existing():
                instances.destroy(instance)
