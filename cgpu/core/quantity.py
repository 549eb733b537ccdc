# SPDX-License-Identifier: Apache-2.0
"""Kubernetes quantities of extended resources, and sizes as people write them.

The grammar is that of the Kubernetes API reference, "Quantity": a signed decimal number, then a
binary suffix (Ki … Ei), a decimal one (n u m k M G T P E) or an exponent (e3, E3).
"""

import re
from fractions import Fraction
from typing import Final

from cgpu.core.errors import QuantityError

_SUFFIXES: Final[dict[str, Fraction]] = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    **{suffix: Fraction(1000**power) for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Fraction(1024**power) for power, suffix in enumerate("KMGTPE", start=1)},
}
_QUANTITY: Final = re.compile(r"([+-]?)(\d+(?:\.\d*)?|\.\d+)(?:([eE][+-]?\d{1,2})|([numkMGTPE]|[KMGTPE]i)?)", re.ASCII)
_LIMIT: Final = 2**63 - 1
_BYTES: Final = re.compile(r"(\d+)\s*(B|KiB|MiB|GiB|TiB)?", re.ASCII | re.IGNORECASE)
_BYTE_UNITS: Final = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}


def parse_quantity(text: str | int) -> int:
    """The whole, non-negative number that a quantity stands for (`10G` is 10000000000).

    Raises QuantityError for anything else, with the text that was given.
    """
    found = _QUANTITY.fullmatch(str(text)) if len(str(text)) <= 64 else None
    if found is None:
        raise QuantityError(f"{str(text)[:80]!r} is no Kubernetes quantity: write a whole number such as 6")
    sign, digits, exponent, suffix = found.groups()
    value = Fraction(digits + (exponent or "")) * _SUFFIXES[suffix or ""]
    if value.denominator != 1 or (sign == "-" and value):
        raise QuantityError(f"{str(text)!r} is no whole number of units: extended resources count 0, 1, 2, …")
    if value > _LIMIT:
        raise QuantityError(f"{str(text)!r} is larger than Kubernetes can count ({_LIMIT})")
    return int(value)


def parse_bytes(text: str) -> int:
    """Bytes from `4GiB`, `512MiB`, `4096`; binary units only, since GPU memory is counted in them.

    Raises QuantityError.
    """
    found = _BYTES.fullmatch(text.strip())
    if found is None:
        raise QuantityError(f"{text!r} is no size: write bytes or a number with KiB, MiB, GiB or TiB, such as 4GiB")
    return int(found[1]) * _BYTE_UNITS[(found[2] or "").lower()]


def format_mib(size_bytes: int) -> str:
    """Whole MiB, floored, as the tools print them."""
    return f"{size_bytes >> 20}MiB"
