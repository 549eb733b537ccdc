# SPDX-License-Identifier: Apache-2.0
"""filter, prioritize, bind and preempt as kube-scheduler calls them, over HTTP."""

import asyncio
import json
from typing import Any

import pytest

from tests.extender.conftest import Extender, eventually, knows_nodes, run_pods, set_nodes
from tests.fake_api import FakeApi, Json, make_node, make_pod


def _annotations(api: FakeApi, name: str) -> dict[str, str]:
    found: dict[str, str] = api.pods[f"default/{name}"]["metadata"]["annotations"]
    return found


def _allocation(api: FakeApi, name: str) -> Any:
    return json.loads(_annotations(api, name)["cgpu.aliyun.com/allocation"])


@pytest.mark.parametrize(
    "cards", [pytest.param((15,), id="of a node with one card"), pytest.param((15, 15), id="or two")]
)
async def test_one_request_binds_and_annotates(api: FakeApi, extender: Extender, cards: tuple[int, ...]) -> None:
    await set_nodes(api, extender, a=cards)
    assert await run_pods(api, extender, make_pod("p", 2, 3)) == ["a"]
    assert api.binds == 1
    assert api.pods["default/p"]["spec"]["nodeName"] == "a"
    found = _annotations(api, "p")
    assert 1_600_000_000_000_000_000 < int(found.pop("ALIYUN_COM_GPU_MEM_ASSUME_TIME")) < 4_000_000_000_000_000_000
    assert {key: json.loads(value) for key, value in found.items()} == {
        "cgpu.aliyun.com/allocation": {
            "app0": {"GPU-a-0": {"mem": 2, "core": 0}},
            "app1": {"GPU-a-0": {"mem": 3, "core": 0}},
        },
        "scheduler.framework.gpushare.allocation": {"0": {"0": 2}, "1": {"0": 3}},
        "ALIYUN_COM_GPU_MEM_IDX": 0,
        "ALIYUN_COM_GPU_MEM_DEV": 15,
        "ALIYUN_COM_GPU_MEM_POD": 5,
        "ALIYUN_COM_GPU_MEM_ASSIGNED": True,
    }


async def test_four_pods_of_six_fill_two_cards(api: FakeApi, extender: Extender) -> None:
    await set_nodes(api, extender, a=(15, 15))
    pods = [make_pod(f"p{index}", 6) for index in range(5)]
    assert await run_pods(api, extender, *pods) == ["a", "a", "a", "a", ""]
    assert await extender.used() == {"a": [12, 12]}


async def test_three_pods_of_twelve_on_a_card_of_24(api: FakeApi, extender: Extender) -> None:
    await set_nodes(api, extender, a=(24,))
    pods = [make_pod(f"p{index}", 12) for index in range(3)]
    assert await run_pods(api, extender, *pods) == ["a", "a", ""]


async def test_mixed_cards_of_one_node(api: FakeApi, extender: Extender) -> None:
    await set_nodes(api, extender, a=(11, 24))
    assert await run_pods(api, extender, make_pod("fits", 20), make_pod("never", 25)) == ["a", ""]
    assert _allocation(api, "fits") == {"app0": {"GPU-a-1": {"mem": 20, "core": 0}}}
    assert _annotations(api, "fits")["ALIYUN_COM_GPU_MEM_DEV"] == "24"


@pytest.mark.parametrize(
    ("pod", "failed", "never"),
    [
        pytest.param(make_pod("p", 6), {"full": "no single GPU has 6 GiB free"}, {}, id="full at the moment"),
        pytest.param(
            make_pod("p", 20), {}, {"full": "no single GPU has 20 GiB at all"}, id="above every card, for good"
        ),
        pytest.param(
            make_pod("p", 7, labels={"aliyun.com/gpu-count": "2"}),
            {},
            {
                "full": "container app0: aliyun.com/gpu-mem: 7 not divisible by 2 (label aliyun.com/gpu-count): ask for a multiple of 2"
            },
            id="a gpu-count that does not divide",
        ),
        pytest.param(
            make_pod("p", "10G"), {}, {"full": "no single GPU has 10000000000 GiB at all"}, id="a unit mistaken"
        ),
        pytest.param(
            make_pod("p", 6, labels={"cgpu.aliyun.com/ignore": "true"}),
            {},
            {
                "full": "label cgpu.aliyun.com/ignore=true: the pod gets no share of a GPU;"
                " remove the label or the request"
            },
            id="a pod that opted out",
        ),
        pytest.param(
            make_pod("p", "half"),
            {},
            {
                "full": "container app0: aliyun.com/gpu-mem: 'half' is no Kubernetes quantity: write a whole number such as 6"
            },
            id="no quantity",
        ),
    ],
)
async def test_reasons(api: FakeApi, extender: Extender, pod: Json, failed: Json, never: Json) -> None:
    await set_nodes(api, extender, full=(15,))
    assert await run_pods(api, extender, make_pod("other", 12)) == ["full"]
    answer = await extender.filter(pod)
    assert answer == {
        "Nodes": None,
        "NodeNames": [],
        "FailedNodes": failed,
        "FailedAndUnresolvableNodes": never,
        "Error": "",
    }


async def test_shut_cards_and_unreadable_nodes_have_their_reasons(api: FakeApi, extender: Extender) -> None:
    await set_nodes(api, extender, good=(15,))
    await api.set_node(make_node("sick", 15, healthy=False))
    cordoned = make_node("cordoned", 15)
    cordoned["metadata"]["annotations"]["cgpu.aliyun.com/cordon"] = '["GPU-cordoned-0"]'
    await api.set_node(cordoned)
    broken = make_node("broken", 15)
    broken["metadata"]["annotations"]["cgpu.aliyun.com/devices"] = "{"
    await api.set_node(broken)
    plain = make_node("plain")
    plain["metadata"]["annotations"] = {}
    await api.set_node(plain)
    await eventually(lambda: _answers(extender, "plain"))
    answer = await extender.filter(make_pod("p", 6), "good", "sick", "cordoned", "broken", "plain", "nowhere")
    assert answer["NodeNames"] == ["good"]
    assert answer["FailedNodes"] == {
        "sick": "GPUs cordoned or unhealthy",
        "cordoned": "GPUs cordoned or unhealthy",
        "nowhere": "node is not known to the extender yet",
    }
    assert answer["FailedAndUnresolvableNodes"] == {
        "broken": "the node's GPU annotations cannot be read",
        "plain": "node is not for GPU share",
    }


async def _answers(extender: Extender, node: str) -> bool:
    url = f"http://{extender.settings.read_address}/gpushare-scheduler/inspect/{node}"
    async with extender.session.get(url) as response:
        return response.status == 200


async def test_a_card_that_turns_unhealthy_is_left_out_and_comes_back(api: FakeApi, extender: Extender) -> None:
    await set_nodes(api, extender, a=(15,))
    pod = make_pod("p", 6)
    for healthy, want in ((False, []), (True, ["a"])):
        await api.set_node(make_node("a", 15, healthy=healthy))
        await eventually(lambda want=want: _passes(extender, pod, want))


async def _passes(extender: Extender, pod: Json, want: list[str]) -> bool:
    return bool((await extender.filter(pod, "a"))["NodeNames"] == want)


async def test_the_21st_pod_of_one_gib(api: FakeApi, extender: Extender) -> None:
    await set_nodes(api, extender, a=(40,))
    pods = [make_pod(f"p{index}", 1) for index in range(21)]
    assert await run_pods(api, extender, *pods) == ["a"] * 20 + [""]
    answer = await extender.filter(pods[20])
    assert answer["FailedNodes"] == {"a": "no GPU takes another instance (20 of 20)"}


@pytest.mark.parametrize(
    ("placement", "want"),
    [
        pytest.param("binpack", ["a", "a", "a"], id="binpack fills one node"),
        pytest.param("spread", ["a", "b", "c"], id="spread takes the emptiest"),
    ],
)
async def test_placement_of_nodes(api: FakeApi, extender: Extender, placement: str, want: list[str]) -> None:
    for name in "abc":
        await api.set_node(make_node(name, 15, labels={"ack.node.gpu.placement": placement}))
    await eventually(lambda: knows_nodes(extender, set("abc")))
    assert await run_pods(api, extender, *[make_pod(f"p{index}", 4) for index in range(3)]) == want


async def test_prioritize_gives_exactly_one_node_ten(api: FakeApi, extender: Extender) -> None:
    await set_nodes(api, extender, a=(15,), b=(8,), c=(15,))
    assert await extender.prioritize(make_pod("p", 6), "c", "b", "a") == {"c": 0, "b": 10, "a": 0}


async def test_gpu_count_and_containers_that_are_split(api: FakeApi, extender: Extender) -> None:
    await set_nodes(api, extender, a=(15, 15))
    two = make_pod("two", 8, labels={"aliyun.com/gpu-count": "2"})
    assert await run_pods(api, extender, two, make_pod("split", 10, 9)) == ["a", "a"]
    half = {"mem": 4, "core": 0}
    assert _allocation(api, "two") == {"app0": {"GPU-a-0": half, "GPU-a-1": half}}
    assert "ALIYUN_COM_GPU_MEM_IDX" not in _annotations(api, "two")
    assert {len(cards) for cards in _allocation(api, "split").values()} == {1}
    assert await extender.used() == {"a": [14, 13]}


async def test_init_containers_and_sidecars_count_as_kubernetes_counts(api: FakeApi, extender: Extender) -> None:
    limits = {"limits": {"aliyun.com/gpu-mem": "8"}}
    init = {"name": "init", "resources": limits}
    sidecar = {"name": "side", "restartPolicy": "Always", "resources": {"limits": {"aliyun.com/gpu-mem": "2"}}}
    await set_nodes(api, extender, a=(14,))
    assert await run_pods(api, extender, make_pod("p", 3, init=[init, sidecar])) == ["a"]
    assert await extender.used() == {"a": [8]}
    assert {name: next(iter(cards.values()))["mem"] for name, cards in _allocation(api, "p").items()} == {
        "init": 8,
        "side": 2,
        "app0": 3,
    }
    assert await run_pods(api, extender, make_pod("seven", 7), make_pod("six", 6)) == ["", "a"]


async def test_two_containers_above_the_card_wait_whatever_init_containers_there_are(
    api: FakeApi, extender: Extender
) -> None:
    await set_nodes(api, extender, a=(24,))
    plain = {"name": "plain", "resources": {}}
    small = {"name": "small", "resources": {"limits": {"aliyun.com/gpu-mem": "1"}}}
    assert (
        await run_pods(api, extender, *(make_pod(f"p{len(i)}", 16, 16, init=i) for i in ([], [plain], [plain, small])))
        == [""] * 3
    )
    assert await extender.used() == {"a": [0]}


async def test_core_percentage_is_booked(api: FakeApi, extender: Extender) -> None:
    node = make_node("a", 15)
    node["status"]["capacity"]["aliyun.com/gpu-core.percentage"] = "100"
    await api.set_node(node)
    await eventually(lambda: knows_nodes(extender, {"a"}))
    pods = [make_pod(f"p{index}", 4) for index in range(3)]
    for pod in pods:
        pod["spec"]["containers"][0]["resources"]["limits"]["aliyun.com/gpu-core.percentage"] = "40"
    assert await run_pods(api, extender, *pods) == ["a", "a", ""]
    answer = await extender.filter(pods[2])
    assert answer["FailedNodes"] == {"a": "no single GPU has 40 percent of compute free"}
    plain = await extender.filter(make_pod("q", 4))
    assert list(plain["FailedAndUnresolvableNodes"].values()) == [
        "node in mode core_mem needs aliyun.com/gpu-core.percentage too"
    ]


@pytest.mark.parametrize(
    "verbs", [("filter",), ("filter", "prioritize")], ids=["one feasible node", "two feasible nodes"]
)
async def test_a_hold_keeps_the_place_until_the_bind(api: FakeApi, extender: Extender, verbs: tuple[str, ...]) -> None:
    await set_nodes(api, extender, **({"a": (15,)} if len(verbs) == 1 else {"a": (15,), "b": (15,)}))
    for pod in (make_pod(f"p{index}", 8) for index in range(len(verbs))):
        passed = (await extender.filter(pod))["NodeNames"]
        if len(passed) > 1:
            await extender.prioritize(pod, *passed)
    assert (await extender.filter(make_pod("late", 8)))["NodeNames"] == []
    # the hold of a pod whose bind does not come ends by itself, and a pod never stands in its own way
    assert (await extender.filter(make_pod("p0", 8)))["NodeNames"] != []
    await eventually(lambda: _takes_all(extender, len(verbs)))


async def _takes_all(extender: Extender, nodes: int) -> bool:
    return len((await extender.filter(make_pod("later", 8)))["NodeNames"]) == nodes


async def test_twenty_parallel_binds_for_the_last_slot(api: FakeApi, extender: Extender) -> None:
    await set_nodes(api, extender, a=(15,))
    pods = [make_pod(f"p{index}", 8) for index in range(20)]
    for pod in pods:
        await api.set_pod(pod)
    answers = await asyncio.gather(*(extender.bind(pod, "a") for pod in pods))
    assert answers.count("") == 1
    assert set(answers) - {""} == {"a has 7 GiB free but no single GPU has 8 GiB (largest free: 7 GiB)"}
    assert await extender.used() == {"a": [8]}
    assert api.binds == 1


async def test_twenty_parallel_pods_with_one_feasible_node(api: FakeApi, extender: Extender) -> None:
    await set_nodes(api, extender, a=(15, 15))
    pods = [make_pod(f"p{index}", 5) for index in range(20)]
    for pod in pods:
        await api.set_pod(pod)
    placed = await asyncio.gather(*(extender.schedule(pod) for pod in pods))
    assert placed.count("a") == 6
    assert await extender.used() == {"a": [15, 15]}


@pytest.mark.parametrize(
    ("ask", "priority", "want"),
    [
        pytest.param(8, 100, {"a": ["low0"]}, id="one pod of the lowest priority"),
        pytest.param(15, 100, {"a": ["low0", "low2"]}, id="all pods of one card, not of two"),
        pytest.param(8, 3, {"a": ["low0"]}, id="only pods below its own priority"),
        pytest.param(8, 1, {}, id="nobody below: the node is dropped"),
        pytest.param(16, 100, {}, id="larger than any card: the node is dropped"),
    ],
)
async def test_preempt_names_one_cards_least_victims(
    api: FakeApi, extender: Extender, ask: int, priority: int, want: dict[str, list[str]]
) -> None:
    await set_nodes(api, extender, a=(15, 15))
    sizes_and_priorities = ((8, 1), (8, 5), (7, 1), (7, 5))  # binpack: the first and third on one card
    low = [make_pod(f"low{index}", size, priority=rank) for index, (size, rank) in enumerate(sizes_and_priorities)]
    assert await run_pods(api, extender, *low) == ["a"] * 4
    uids = {pod["metadata"]["uid"]: pod["metadata"]["name"] for pod in low}
    body = {
        "Pod": make_pod("high", ask, priority=priority),
        "NodeNameToVictims": None,
        "NodeNameToMetaVictims": {"a": {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": 0}},
    }
    answer = await extender.post("preempt", body)
    assert {
        node: sorted(uids[pod["UID"]] for pod in meta["Pods"]) for node, meta in answer["NodeNameToMetaVictims"].items()
    } == want
