# SPDX-License-Identifier: Apache-2.0
"""Few rows in which every two values of different factors meet."""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product
from typing import Any

Row = dict[str, Any]


def pairwise(factors: Mapping[str, Sequence[Any]], possible: Callable[[Row], bool] = lambda row: True) -> list[Row]:
    """Rows in which all pairs meet that any possible row has; always the same ones, each the best of what is left."""
    rows = [dict(zip(factors, values, strict=True)) for values in product(*factors.values())]
    rows = [row for row in rows if possible(row)]
    bits: dict[Any, int] = {}
    # a row is the sum of the bits of its pairs
    masks = [sum(1 << bits.setdefault(pair, len(bits)) for pair in combinations(row.items(), 2)) for row in rows]
    missing = (1 << len(bits)) - 1
    chosen = []
    while missing:
        best = max(range(len(rows)), key=lambda number: (masks[number] & missing).bit_count())
        missing &= ~masks[best]
        chosen.append(rows[best])
    return chosen
