# SPDX-License-Identifier: Apache-2.0
"""pytest fixtures: a virtual machine that many tests share. A folder's conftest.py imports what it uses:

    from tests.vm.fixtures import vm, vm_pool  # noqa: F401

    @pytest.mark.parametrize("vm", [Choice("535", "T4"), Choice("470", "T4,T4")], indirect=True, scope="module")
    def test_nvidia_smi_lists_the_cards(vm): assert vm.run("nvidia-smi -L").code == 0

Without a parameter `vm` is the default choice. One machine lives at a time: it stays up while tests want the same
choice, and is booted anew after a crash or for another choice (`scope="module"` groups the tests by choice). Tests leave
the machine as they found it; one that cannot calls `vm_pool.discard()`, and is the last of its scope, for pytest keeps what
the scope was given.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from tests.vm.bench import Choice, boot
from tests.vm.machine import Machine

# a write behind an allocation is reported when that is freed, at the test that did it, not as a crash of a later one
RED_ZONES: Final = "slub_debug=FZ"


class Pool:
    """The one machine that is up, and the choice that it was booted for."""

    def __init__(self) -> None:
        self.choice: Choice | None = None
        self.machine: Machine | None = None

    def get(self, choice: Choice) -> Machine:
        """A live machine of that choice."""
        if self.machine is None or self.choice != choice or not self.machine.alive:
            self.discard()
            zones = "" if choice.kernel == "debug" else RED_ZONES  # KASAN sees such a write itself
            watched = replace(choice, append=f"{zones} {choice.append}".strip())
            self.machine = boot(watched, Path(tempfile.mkdtemp(prefix="cgpu-vm-")))
            self.choice = choice
        return self.machine

    def discard(self) -> None:
        """Ends the machine: the next test gets a fresh one."""
        if self.machine is not None:
            self.machine.stop()
        self.machine = self.choice = None


POOL = Pool()


@pytest.fixture(scope="session")
def vm_pool() -> Iterator[Pool]:
    """The pool, emptied at the end of the session."""
    yield POOL
    POOL.discard()


@pytest.fixture
def vm(request: pytest.FixtureRequest, vm_pool: Pool) -> Machine:
    """A live machine of the choice that the test's parameter names, else of the default choice."""
    return vm_pool.get(getattr(request, "param", Choice()))
