# SPDX-License-Identifier: Apache-2.0
"""The checkout that a sandbox belongs to."""

from pathlib import Path

import cgpu


def checkout() -> Path | None:
    """The folder this package runs from when it is a checkout with a Dockerfile; None for an installed wheel."""
    folder = Path(cgpu.__file__).resolve().parents[1]
    return folder if (folder / "Dockerfile").is_file() else None


def default_state() -> Path:
    """`.cluster` in the checkout, else in the current folder."""
    return (checkout() or Path.cwd()) / ".cluster"
