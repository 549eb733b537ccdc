# SPDX-License-Identifier: Apache-2.0
"""Files of nodes and cards: what is taken, and where a mistake is said to be."""

from pathlib import Path

import pytest
import yaml

from cgpu.cards import CardRow, read_cards
from cgpu.core.errors import SettingError
from cgpu.core.model import Card
from cgpu.sandbox.spec import NodeKind, NodeSpec, cards_file, cards_of, default_nodes, machine_nodes, read_nodes

T4 = "{model: Tesla T4, memMiB: 15109}"


def write(folder: Path, text: str) -> Path:
    path = folder / "nodes.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(
            f"nodes:\n- {{name: a, cards: [{T4}]}}\n",
            [NodeSpec("a", cards=(CardRow("Tesla T4", 15109),))],
            id="a node without count keeps its name",
        ),
        pytest.param(
            "nodes:\n- {name: a, count: 2, labels: {zone: x}, cards: []}\n",
            [NodeSpec("a-1", labels={"zone": "x"}), NodeSpec("a-2", labels={"zone": "x"})],
            id="count makes numbered nodes",
        ),
        pytest.param(
            "nodes:\n- {name: a, cards: []}\n- {name: l, kind: kwok, count: 1, cards: []}\n",
            [NodeSpec("a"), NodeSpec("l-1", NodeKind.KWOK)],
            id="light nodes stand beside real ones",
        ),
        pytest.param(
            f"nodes:\n- {{name: a, cards: []}}\n- {{name: v, kind: vm, driver: '470', cards: [{T4}]}}\n",
            [NodeSpec("a"), NodeSpec("v", NodeKind.VM, cards=(CardRow("Tesla T4", 15109),), driver="470")],
            id="a virtual machine plays the driver that it names",
        ),
        pytest.param(
            f"nodes:\n- {{name: a, cards: []}}\n- {{name: v, kind: vm, cards: [{T4}]}}\n",
            [NodeSpec("a"), NodeSpec("v", NodeKind.VM, cards=(CardRow("Tesla T4", 15109),), driver="535")],
            id="a virtual machine that names none plays 535",
        ),
    ],
)
def test_nodes_are_read(tmp_path: Path, text: str, want: list[NodeSpec]) -> None:
    assert list(read_nodes(write(tmp_path, text))) == want


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        pytest.param("nodes:\n- {nam: a, cards: []}\n", "2:4", "unknown key 'nam'", id="a key nobody knows"),
        pytest.param("nodes:\n- {name: a}\n", "2:3", "'cards' is missing", id="a node without cards"),
        pytest.param(
            "nodes:\n- {name: A_b, cards: []}\n", "2:10", "must be 1 to 40 of a-z", id="a name no node can have"
        ),
        pytest.param(
            "nodes:\n- {name: a, count: 0, cards: []}\n", "2:20", "count is 0: must be from 1", id="no nodes at all"
        ),
        pytest.param(
            "nodes:\n- {name: a, kind: vn, cards: []}\n",
            "2:19",
            "must be one of container, kwok",
            id="a kind nobody knows",
        ),
        pytest.param(
            "nodes:\n- {name: a, labels: {k: 1}, cards: []}\n",
            "2:25",
            "label k is '1': expected a text",
            id="a label that is a number",
        ),
        pytest.param(
            "nodes:\n- {name: a, labels: {'a b': x}, cards: []}\n",
            "2:22",
            "label name 'a b'",
            id="a label name with a blank",
        ),
        pytest.param(
            "nodes:\n- {name: a, cards: []}\n- {name: a, cards: []}\n",
            "3:3",
            "two nodes are named 'a'",
            id="a name twice",
        ),
        pytest.param(
            "nodes:\n- {name: l, kind: kwok, cards: []}\n", "2:1", "no node of kind container", id="light nodes alone"
        ),
        pytest.param(
            "nodes:\n- {name: a, count: 41, cards: []}\n", "2:3", "too many nodes: at most 40", id="more than fit"
        ),
        pytest.param(
            "nodes:\n- {name: a, cards: [{model: x, memMib: 1}]}\n", "2:32", "unknown key 'memMib'", id="a card's key"
        ),
        pytest.param(
            f"nodes:\n- {{name: a, driver: '535', cards: [{T4}]}}\n",
            "2:21",
            "driver is for nodes of kind vm",
            id="a driver where nothing plays one",
        ),
        pytest.param(
            f"nodes:\n- {{name: a, kind: vm, driver: '999', cards: [{T4}]}}\n",
            "2:31",
            "driver is '999': must be one of 418, 450",
            id="a branch that nobody simulates",
        ),
        pytest.param(
            "nodes:\n- {name: a, kind: vm, cards: []}\n",
            "2:30",
            "needs at least one card",
            id="a machine without cards",
        ),
        pytest.param(
            "nodes:\n- {name: a, kind: vm, cards: [{model: GTX, memMiB: 1}]}\n",
            "2:30",
            "plays no 'GTX': must be one of Tesla T4",
            id="a card that nobody simulates",
        ),
        pytest.param(
            "nodes:\n- {name: a, kind: vm, cards: [{model: Tesla T4, memMiB: 1, healthy: false}]}\n",
            "2:30",
            "have model, memMiB and count",
            id="a machine's card that is said to be sick",
        ),
        pytest.param("nodes: [\n", "2:1", "no YAML", id="text that is no YAML"),
    ],
)
def test_a_mistake_is_named_with_line_and_column(tmp_path: Path, text: str, place: str, words: str) -> None:
    path = write(tmp_path, text)

    with pytest.raises(SettingError) as error:
        read_nodes(path)

    assert str(error.value).startswith(f"{path}:{place}: ")
    assert words in str(error.value)


@pytest.mark.parametrize("count", [0, 41])
def test_a_number_of_nodes_outside_the_limits_is_refused(count: int) -> None:
    with pytest.raises(SettingError, match=rf"--nodes {count}: must be from 1 to 40"):
        default_nodes(count)


@pytest.mark.parametrize("count", [0, 5])
def test_a_number_of_machines_outside_the_limits_is_refused(count: int) -> None:
    with pytest.raises(SettingError, match=rf"--vm-nodes {count}: must be from 1 to 4"):
        machine_nodes(count)


def test_machines_come_with_a_node_for_the_scheduler() -> None:
    plain, *machines = machine_nodes(2)

    assert (plain.kind, plain.cards, plain.labels) == (NodeKind.CONTAINER, (), {})
    assert [(node.name, node.kind) for node in machines] == [("vm-1", NodeKind.VM), ("vm-2", NodeKind.VM)]
    assert all(node.labels == {"ack.node.gpu.schedule": "cgpu"} for node in machines)


def test_default_nodes_have_mixed_cards_and_share_them() -> None:
    first, second = default_nodes(2)

    assert (first.name, second.name) == ("node-1", "node-2")
    assert first.cards != second.cards
    assert first.labels == second.labels == {"ack.node.gpu.schedule": "share"}


def test_the_device_plugin_reads_the_cards_that_the_sandbox_writes(tmp_path: Path) -> None:
    cards = (CardRow("Tesla T4", 15109, count=2), CardRow("A10", 23028, uuid="GPU-1", numa=1, healthy=False))
    path = write(tmp_path, cards_file(NodeSpec("a", cards=cards)))

    assert read_cards(path) == cards
    assert yaml.safe_load(path.read_text())["cards"][0]["count"] == 2


def test_light_nodes_publish_cards_as_the_device_plugin_does() -> None:
    first, second = cards_of(NodeSpec("a", cards=(CardRow("A10", 23028, uuid="GPU-1"), CardRow("T4", 15109))), 20)

    assert first == Card(0, 0, "GPU-1", "A10", 23028, 22)
    assert (second.index, second.units) == (1, 14)
    assert second.uuid.startswith("GPU-")
