# SPDX-License-Identifier: Apache-2.0
"""The memory formula and the list rules of ALIYUN_COM_GPU_MEM_CONTAINER and _DEV."""

from __future__ import annotations

from cgpu.core.errors import MemoryRuleError
from cgpu.core.light import TYPE_CHECKING, NamedTuple
from cgpu.core.variables import ENV_CONTAINER, ENV_DEV

if TYPE_CHECKING:
    from collections.abc import Sequence


class Fraction(NamedTuple):
    """A container's part of one card: numerator CONTAINER, denominator DEV, both in GiB."""

    container: int
    dev: int


def is_number(text: str) -> bool:
    """Whether it is a whole number of one to nine digits."""
    return text.isascii() and text.isdigit() and len(text) <= 9


def units_of(total_mib: int, reserve_mib: int = 0) -> int:
    """Whole GiB that a card offers: floor((total − reserve) / 1024), never below 0."""
    return max(0, total_mib - reserve_mib) // 1024


def visible_mib(total_mib: int, container: int, dev: int) -> int:
    """MiB that a container sees: floored to MiB before anything converts it to bytes."""
    return total_mib * container // dev


def visible_bytes(total_mib: int, container: int, dev: int) -> int:
    """The same limit in bytes."""
    return visible_mib(total_mib, container, dev) << 20


def fractions_of(container: str | None, dev: str | None, cards: int) -> tuple[Fraction, ...] | None:
    """Each card's fraction for a container with `cards` GPUs, or None when cGPU is off for it.

    Off means: CONTAINER is unset, empty, `0`, or a list that holds a zero. Raises MemoryRuleError
    with variable, value and rule for everything the rules refuse.
    """
    numerators = _numbers(ENV_CONTAINER, container)
    if numerators is None or 0 in numerators:
        return None
    denominators = _numbers(ENV_DEV, dev)
    if denominators is None:
        raise MemoryRuleError(f"{ENV_CONTAINER}={container} is set without {ENV_DEV}: set it to the card's GiB")
    pairs = zip(_per_card(ENV_CONTAINER, numerators, cards), _per_card(ENV_DEV, denominators, cards), strict=True)
    return tuple(_fraction(numerator, denominator) for numerator, denominator in pairs)


def _numbers(variable: str, text: str | None) -> tuple[int, ...] | None:
    if text is None or not text.strip():
        return None
    parts = [part.strip() for part in text.split(",")]
    for part in parts:
        if not is_number(part):
            raise MemoryRuleError(
                f"{variable}={text[:80]}: {part[:80]!r} is no whole number of GiB; write one number or a comma list"
            )
    return tuple(int(part) for part in parts)


def _per_card(variable: str, numbers: Sequence[int], cards: int) -> tuple[int, ...]:
    if len(numbers) > cards:
        text = ",".join(map(str, numbers))
        raise MemoryRuleError(f"{variable}={text} has {len(numbers)} entries for {cards} GPUs: at most one a GPU")
    return (*numbers, *[numbers[-1]] * (cards - len(numbers)))


def _fraction(container: int, dev: int) -> Fraction:
    if container > dev:
        raise MemoryRuleError(f"{ENV_CONTAINER}={container} is more than {ENV_DEV}={dev}: ask for at most the card")
    return Fraction(container, dev)
