# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

from cgpu.cards import CardRow, card_uuid, expand, read_cards
from cgpu.core.errors import SettingError


def write(folder: Path, text: str) -> Path:
    path = folder / "cards.yaml"
    path.write_text(text)
    return path


def test_a_card_file_is_read(tmp_path: Path) -> None:
    text = "cards:\n- {model: Tesla T4, memMiB: 15109, count: 2}\n- {model: A10, memMiB: 23028, uuid: GPU-x, numa: 1, healthy: false}\n"

    rows = read_cards(write(tmp_path, text))

    assert rows == (CardRow("Tesla T4", 15109, 2), CardRow("A10", 23028, 1, "GPU-x", 1, healthy=False))
    assert [row.model for row in expand(rows)] == ["Tesla T4", "Tesla T4", "A10"]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("", r":1:1: the file is empty", id="empty"),
        pytest.param("cards: [", r":1:9: no YAML", id="no YAML"),
        pytest.param("- a\n", r":1:1: expected a mapping with cards", id="a list in place of a mapping"),
        pytest.param("card:\n- {}\n", r":1:1: unknown key 'card'", id="unknown key at the top"),
        pytest.param("cards: 3\n", r":1:8: expected a list of cards", id="a number in place of a list"),
        pytest.param("cards:\n- {model: T4}\n", r":2:3: 'memMiB' is missing", id="a required key is missing"),
        pytest.param("cards:\n- {model: T4, memMiB: 1, size: 2}\n", r":2:26: unknown key 'size': must be one of model,", id="unknown key"),
        pytest.param("cards:\n- {model: T4, memMiB: 15G}\n", r":2:23: memMiB is '15G': expected a whole number", id="a unit"),
        pytest.param("cards:\n- {model: T4, memMiB: true}\n", r":2:23: memMiB is 'true': expected a whole number", id="a truth value"),
        pytest.param("cards:\n- {model: T4, memMiB: 0}\n", r":2:23: memMiB is 0: must be from 1", id="a card of nothing"),
        pytest.param("cards:\n- {model: 4, memMiB: 1}\n", r":2:11: model is '4': expected a text", id="a number as the model"),
        pytest.param("cards:\n- {model: T4, memMiB: 1, healthy: maybe}\n", r":2:35: healthy is 'maybe'", id="health in words"),
        pytest.param("cards:\n- {model: T4, memMiB: [1]}\n", r":2:23: memMiB is 'a collection'", id="a list as a number"),
        pytest.param("cards:\n- {model: T4, memMiB: 1, memMiB: 2}\n", r":2:26: key 'memMiB' is written twice", id="a key twice"),
        pytest.param("cards:\n- {model: T4, memMiB: 1, count: 65}\n", r":2:33: count is 65: must be from 1 to 64", id="too many of one"),
        pytest.param("cards:\n- {model: A, memMiB: 1, count: 40}\n- {model: B, memMiB: 1, count: 40}\n", r":2:1: 80 cards", id="too many together"),
        pytest.param("cards:\n- {model: T4, memMiB: 1, count: 2, uuid: GPU-x}\n", r"uuid names one card and count is 2", id="one UUID for two"),
        pytest.param("cards:\n- {model: A, memMiB: 1, uuid: x}\n- {model: B, memMiB: 1, uuid: x}\n", r"two rows have the same uuid", id="one UUID twice"),
    ],
)  # fmt: skip
def test_a_mistake_is_answered_with_its_place(tmp_path: Path, text: str, want: str) -> None:
    with pytest.raises(SettingError, match=rf"cards\.yaml{want}" if want.startswith(":") else want):
        read_cards(write(tmp_path, text))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"gone\.yaml: cannot be read"):
        read_cards(tmp_path / "gone.yaml")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SettingError, match=r"binary: cannot be read"):
        read_cards(tmp_path / "binary")


def test_simulated_uuids_repeat_on_a_node_and_differ_between_nodes() -> None:
    assert card_uuid("a", 0) == card_uuid("a", 0)
    assert len({card_uuid(node, index) for node in "ab" for index in range(8)}) == 16
