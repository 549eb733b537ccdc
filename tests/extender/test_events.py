# SPDX-License-Identifier: Apache-2.0
"""Pods that no card takes hear of it with the numbers, once."""

import json

import pytest

from cgpu.kube.objects import decode_node, decode_pod
from extender.books import Books
from extender.events import Announcer
from extender.setbacks import Setbacks
from extender.verbs import Verbs
from tests.extender.conftest import Extender, eventually
from tests.fake_api import FakeApi, Json, make_node, make_pod


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bursts of a test are short."""
    monkeypatch.setattr("extender.events.SETTLE_SECONDS", 0.1)


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(
            make_pod("p", "10G"), "10000000000 GiB was asked and the unit is GiB: write 10, not 10G", id="10G"
        ),
        pytest.param(
            make_pod("p", 20),
            "0 of 2 GPU nodes take the pod: a: no single GPU has 20 GiB at all (2 GPUs, the largest 15 GiB);"
            " b: no single GPU has 20 GiB at all (1 GPUs, the largest 8 GiB)",
            id="above every card, though under a node's total",
        ),
        pytest.param(
            make_pod("p", 7, labels={"aliyun.com/gpu-count": "2"}),
            "container app0: aliyun.com/gpu-mem: 7 not divisible by 2 (label aliyun.com/gpu-count):"
            " ask for a multiple of 2",
            id="a pod that contradicts itself",
        ),
    ],
)
async def test_a_pending_pod_hears_why(api: FakeApi, extender: Extender, pod: Json, want: str) -> None:
    await api.set_node(make_node("a", 15, 15))
    await api.set_node(make_node("b", 8))
    await api.set_pod(pod)
    event = (await eventually(lambda: api.events))[0]
    assert event["message"] == want
    assert (event["reason"], event["type"]) == ("GPUShareUnschedulable", "Warning")
    assert event["involvedObject"]["uid"] == pod["metadata"]["uid"]


async def test_the_21st_pod_of_one_gib_hears_of_the_instances(api: FakeApi, extender: Extender) -> None:
    await api.set_node(make_node("a", 40))
    await eventually(extender.used)
    for index in range(21):
        await api.set_pod(make_pod(f"p{index}", 1))
        await extender.schedule(api.pods[f"default/p{index}"])
    event = (await eventually(lambda: api.events))[0]
    assert "GPU 0 takes no other instance (20 of 20)" in event["message"]
    assert event["involvedObject"]["name"] == "p20"


async def test_without_gpu_nodes_the_label_is_named(api: FakeApi, extender: Extender) -> None:
    await api.set_pod(make_pod("p", 6))
    event = (await eventually(lambda: api.events))[0]
    assert event["message"].startswith("no node offers aliyun.com/gpu-mem: label GPU nodes")


async def test_pods_of_other_schedulers_and_pods_that_fit_hear_nothing(api: FakeApi, extender: Extender) -> None:
    await api.set_node(make_node("a", 15))
    await api.set_pod(make_pod("other", 20, scheduler="default-scheduler"))
    await api.set_pod(make_pod("fits", 6))
    await api.set_pod(make_pod("stuck", 20))
    await eventually(lambda: api.events)
    assert [event["involvedObject"]["name"] for event in api.events] == ["stuck"]


async def test_a_pod_whose_own_rules_leave_only_full_nodes_hears_of_these(api: FakeApi, extender: Extender) -> None:
    """kube-scheduler asks about the nodes that selectors and taints allow: the numbers are about them."""
    await api.set_node(make_node("full", 4))
    await api.set_node(make_node("free", 15))
    await eventually(extender.used)
    pod = make_pod("p", 6)
    await api.set_pod(pod)
    await extender.seen(pod)
    assert (await extender.filter(pod, "full"))["NodeNames"] == []
    event = (await eventually(lambda: api.events))[0]
    assert event["message"] == (
        "1 GPU nodes have room, but the pod's own rules keep it off them; the others do not:"
        " full: no single GPU has 6 GiB at all (1 GPUs, the largest 4 GiB)"
    )


class _Recorder:
    """Keeps what would be written."""

    def __init__(self) -> None:
        self.told: list[str] = []

    async def warning(self, about: object, reason: str, message: str) -> None:
        self.told.append(message)


async def test_a_reason_is_told_again_after_a_minute_or_when_it_changes() -> None:
    books = Books()
    books.set_node(decode_node(json.dumps(make_node("a", 15)).encode()))
    books.set_pod(decode_pod(json.dumps(make_pod("p", 8)).encode()))
    taken = json.dumps({"app0": {"GPU-a-0": {"mem": 9}}})
    blocker = make_pod("x", 9, node="a", annotations={"cgpu.aliyun.com/allocation": taken})
    books.set_pod(decode_pod(json.dumps(blocker).encode()))
    recorder, now = _Recorder(), [100.0]
    announcer = Announcer(
        Verbs(books, Setbacks()),
        recorder,
        ["cgpu-scheduler"],
        clock=lambda: now[0],  # type: ignore[arg-type]
    )
    full = "0 of 1 GPU nodes take the pod: a has 6 GiB free but no single GPU has 8 GiB (largest free: 6 GiB)"
    sick = "0 of 1 GPU nodes take the pod: a: 1 of 1 GPUs cordoned or unhealthy"
    for moment, healthy, want in (
        (100.0, True, [full]),
        (159.0, True, [full]),
        (160.0, True, [full, full]),
        (161.0, False, [full, full, sick]),
    ):
        now[0] = moment
        books.set_node(decode_node(json.dumps(make_node("a", 15, healthy=healthy)).encode()))
        await announcer.announce()
        assert recorder.told == want
