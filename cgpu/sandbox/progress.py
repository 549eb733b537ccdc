# SPDX-License-Identifier: Apache-2.0
"""Lines that say what takes long, each with the time it took."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Say = Callable[[str], None]


@contextmanager
def step(say: Say, what: str) -> Iterator[None]:
    """Say `what` when the block starts, and once more with its seconds when it ends well."""
    began = time.monotonic()
    say(f"{what} ...")
    yield
    say(f"{what}: done in {time.monotonic() - began:.1f} s")


def cache_folder() -> Path:
    """Where expensive things are kept: `CGPU_CACHE`, else `cgpu` in the user's cache folder."""
    if given := os.environ.get("CGPU_CACHE"):
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cgpu"
