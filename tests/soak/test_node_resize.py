# SPDX-License-Identifier: Apache-2.0
"""Live resize of pods on a node that is a virtual machine."""

from collections.abc import Iterator

import pytest

from tests.cluster.harness import Cluster
from tests.node.nodes import (
    holding,
    inspect,
    instance_of,
    instances,
    kill_containers,
    manifest,
    nothing_left,
    restart_plugin,
    share,
    shown,
    started,
)


def resize(cluster: Cluster, pod: str, mem: int) -> str:
    """The command's words; standard error where it was refused."""
    done = inspect(cluster, "resize", f"default/{pod}", "--gpu-mem", str(mem), "--timeout", "120")
    return done.stdout if done.returncode == 0 else f"{done.returncode} {done.stderr}"


@pytest.fixture(scope="module")
def pair(node: Cluster) -> Iterator[Cluster]:
    """Two pods of 6 on a card of 14."""
    nothing_left(node)
    started(node, manifest("one", 6), manifest("two", 6))
    yield node
    node.delete("pod", "one", "two")


def test_a_running_pod_grows_and_nvidia_smi_in_it_shows_that(pair: Cluster) -> None:
    assert resize(pair, "one", 8) == "default/one: container main: 6 GiB -> 8 GiB\n"

    assert shown(pair, "one") == 8633
    assert instance_of(pair, "one").mem >> 20 == 8633


def test_a_card_that_is_full_grows_nobody(pair: Cluster) -> None:
    words = resize(pair, "two", 7)

    assert words.startswith("1 ")
    assert "GPU 0 of vm-1 has 0 GiB free and 1 more are asked for" in words
    assert shown(pair, "two") == 6475


def test_what_is_used_is_not_taken_away(pair: Cluster) -> None:
    with holding(pair, "two"):
        words = resize(pair, "two", 2)
    assert "container main uses" in words
    assert instance_of(pair, "two").mem >> 20 == 6475


def test_a_pod_shrinks_and_its_neighbour_takes_the_room(pair: Cluster) -> None:
    assert resize(pair, "two", 2) == "default/two: container main: 6 GiB -> 2 GiB\n"
    assert resize(pair, "one", 12) == "default/one: container main: 8 GiB -> 12 GiB\n"

    assert (shown(pair, "one"), shown(pair, "two")) == (share(12), share(2))


def test_restarts_keep_the_new_sizes(pair: Cluster) -> None:
    before = instances(pair)
    restart_plugin(pair)
    kill_containers(pair, "one", "two")

    assert instances(pair) == before
    assert shown(pair, "one") == share(12)
