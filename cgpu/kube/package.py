# SPDX-License-Identifier: Apache-2.0
"""The few modules that we use of the package `kubernetes`, without the rest of it.

Its `__init__` files import two whole generated clients: a second of processor time at every start of a command.
"""

import importlib.util
import sys
from types import ModuleType
from typing import Final

_PARENTS: Final = ("kubernetes", "kubernetes.aio")


def prepare() -> None:
    """Register the parent packages without running them, so that importing a module below them brings only that.

    Raises ModuleNotFoundError where the package is not installed; does nothing where it is imported already.
    """
    for name in _PARENTS:
        if name not in sys.modules:
            _register(name)


def _register(name: str) -> ModuleType:
    spec = importlib.util.find_spec(name)
    if spec is None:
        raise ModuleNotFoundError(f"No module named {name!r}: install the package kubernetes", name=name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, module)
    return module
