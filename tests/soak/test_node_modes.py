# SPDX-License-Identifier: Apache-2.0
"""Compute shares and live resize of pods on a node that is a virtual machine."""

from collections.abc import Iterator, Mapping

import pytest

from cgpu.core.names import RESOURCE_CORE
from tests.cluster.harness import Cluster
from tests.soak.nodes import (
    EXAMPLES,
    NODE,
    inspect,
    instance_of,
    instances,
    manifest,
    mode,
    nothing_left,
    restart_plugin,
    shown,
    started,
    usage,
)

BUSY = (EXAMPLES / "busy.py").read_text()
HOLD = (EXAMPLES / "allocate.py").read_text() + "\nprint('held', flush=True)\nimport sys\nsys.stdin.read()\n"


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
    with pair.kubectl_running("exec", "-i", "two", "--", "python3", "-c", HOLD) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        assert holder.stdout.readline() == "held\n"
        words = resize(pair, "two", 2)
    assert "container main uses" in words
    assert instance_of(pair, "two").mem >> 20 == 6475


def test_a_pod_shrinks_and_its_neighbour_takes_the_room(pair: Cluster) -> None:
    assert resize(pair, "two", 2) == "default/two: container main: 6 GiB -> 2 GiB\n"
    assert resize(pair, "one", 12) == "default/one: container main: 8 GiB -> 12 GiB\n"

    assert (shown(pair, "one"), shown(pair, "two")) == (15109 * 12 // 14, 15109 * 2 // 14)


def test_restarts_keep_the_new_sizes(pair: Cluster) -> None:
    before = instances(pair)
    pair.node_exec(NODE, ["pkill", "-x", "sleep"])
    restart_plugin(pair)
    pair.wait(lambda: all(_restarts(pair, pod) for pod in ("one", "two")), about="the containers started again")
    pair.wait_for("condition=Ready", "pod/one", "pod/two")

    assert instances(pair) == before
    assert shown(pair, "one") == 15109 * 12 // 14


def _restarts(cluster: Cluster, pod: str) -> int:
    return int(cluster.get("pod", pod)["status"]["containerStatuses"][0]["restartCount"])


@pytest.fixture(scope="module")
def weighed(node: Cluster) -> Iterator[Cluster]:
    """Two pods with 30 and 60 percent of a card's compute."""
    node.delete("pod", "one", "two")
    with mode(node, "core_mem", RESOURCE_CORE):
        started(node, manifest("small", 4, 30), manifest("large", 8, 60))
        yield node
        node.delete("pod", "small", "large")


def test_percentages_are_weights_of_a_card_with_fixed_shares(weighed: Cluster) -> None:
    assert (instance_of(weighed, "small").weight, instance_of(weighed, "large").weight) == (6, 12)
    told = "cat /proc/cgpu_km/0/policy /proc/cgpu_km/0/max_inst /proc/cgpu_km/0/free_weight"
    assert weighed.node_exec(NODE, ["sh", "-c", told]).split() == ["3", "20", "2"]


def test_two_busy_pods_get_their_percentages_of_the_time(weighed: Cluster) -> None:
    ids = {instance_of(weighed, pod).id: pod for pod in ("small", "large")}
    with (
        weighed.kubectl_running("exec", "small", "--", "python3", "-c", BUSY, "150"),
        weighed.kubectl_running("exec", "large", "--", "python3", "-c", BUSY, "150"),
    ):
        usage(weighed)
        weighed.wait(lambda: _divided(weighed, ids), about="the card is divided by 1:2, as soon as the host gives time")
        ratios = {pod: row["utilization"] for pod, row in usage(weighed).items()}
    assert ratios["large"] > ratios["small"] > 0


def _divided(cluster: Cluster, ids: Mapping[str, str]) -> bool:
    """Whether both worked so much in the last seconds that their shares tell; more than its own nobody ever has."""
    before = counted(cluster)
    cluster.wait(lambda: counted(cluster)[0] - before[0] > 3e9, about="3 s of the machine have gone by")
    after = counted(cluster)
    wall = after[0] - before[0]
    shares = {pod: (after[1][id_] - before[1][id_]) / wall for id_, pod in ids.items()}
    longest = 2 * 5e6 / wall  # a kernel at each end
    assert shares["small"] < 0.30 * 1.01 + longest, shares
    assert shares["large"] < 0.60 * 1.01 + longest, shares
    # a machine by a loaded host's clock falls short of what it would give
    return shares["small"] > 0.15 and 1.8 < shares["large"] / shares["small"] < 2.2


def counted(cluster: Cluster) -> tuple[int, dict[str, int]]:
    """The machine's clock, and busy nanoseconds by instance."""
    text = cluster.node_exec(NODE, ["sh", "-c", "cut -d' ' -f1 /proc/uptime; cat /proc/cgpu_km/inst_ctl"])
    uptime, *lines = text.splitlines()
    words = {line.split()[0]: dict(word.split("=") for word in line.split()[1:]) for line in lines}
    return int(float(uptime) * 1e9), {id_: int(row["busy_ns"]) for id_, row in words.items()}


def test_a_pod_that_asks_for_memory_alone_does_not_fit_there(weighed: Cluster) -> None:
    weighed.apply(manifest("alone", 1))
    try:
        weighed.wait(
            lambda: "needs aliyun.com/gpu-core.percentage too" in weighed.kubectl("describe", "pod", "alone"),
            about="it is told what to ask for",
        )
    finally:
        weighed.delete("pod", "alone")
