# SPDX-License-Identifier: Apache-2.0
"""What NVIDIA's tools must show, compared with what programs/look.py saw."""

import re
from collections.abc import Sequence
from typing import Any

from tests.nvsim.cards import CARD_MIB, PRODUCT
from tests.vm.packages import version_of

MIB = 1 << 20


def check_nvml(shown: dict[str, Any], pid: int, cards: Sequence[str], held: int) -> None:
    """nvidia-ml-py: names, numbers, memory and the one process."""
    rows = shown["cards"]

    assert [row["name"] for row in rows] == [PRODUCT[card] for card in cards]
    assert [row["total"] // MIB for row in rows] == [CARD_MIB[card] for card in cards]
    assert [row["minor"] for row in rows] == list(range(len(cards)))
    assert len({row["uuid"] for row in rows}) == len(cards)
    assert [row["bus"] for row in rows] == [f"00000000:{0x1E + index:02X}:00.0" for index in range(len(cards))]
    assert [row["total"] - row["used"] - row["free"] for row in rows] == [0] * len(cards)
    assert [row["used"] > 64 * MIB for row in rows] == [index == held for index in range(len(cards))]
    assert [row["processes"] for row in rows] == [
        [[pid, row["used"]]] if index == held else [] for index, row in enumerate(rows)
    ]


def check_tools(shown: dict[str, Any], branch: str, cards: Sequence[str], held: int) -> None:
    """nvidia-smi in all its forms agrees with NVML, and both with the cards."""
    pid, version, rows = shown["pid"], version_of(branch), shown["nvml"]["cards"]
    check_nvml(shown["nvml"], pid, cards, held)
    used = [row["used"] // MIB for row in rows]
    query = [line.split(", ") for line in shown["query"].splitlines()]

    assert shown["nvml"]["driver"] == version
    assert query == [
        [str(index), PRODUCT[card], str(CARD_MIB[card]), str(used[index]), rows[index]["uuid"], version]
        for index, card in enumerate(cards)
    ]
    assert re.findall(r"00000000:\w+:00\.0", shown["table"]) == [row["bus"] for row in rows]
    assert shown["listed"].splitlines() == [
        f"GPU {index}: {PRODUCT[card]} (UUID: {rows[index]['uuid']})" for index, card in enumerate(cards)
    ]
    assert re.findall(r"(\d+)MiB / +(\d+)MiB", shown["table"]) == [
        (str(used[index]), str(CARD_MIB[card])) for index, card in enumerate(cards)
    ]
    assert re.findall(rf"\| +(\d+) .*\b{pid} +C .*?(\d+)MiB", shown["table"]) == [(str(held), str(used[held]))]
    assert shown["apps"].splitlines() == [f"{rows[held]['uuid']}, {pid}, {used[held]}"]
    assert re.findall(r"GPU UUID +: (\S+)", shown["full"]) == [row["uuid"] for row in rows]
    assert re.search(rf"Driver Version +: {re.escape(version)}$", shown["full"], re.MULTILINE)
    assert re.findall(r"Process ID +: (\d+)", shown["full"]) == [str(pid)]
