# SPDX-License-Identifier: Apache-2.0
"""From registration to the environment of a container, over the kubelet's real protocol."""

import asyncio
import random
import re

import grpc
import pytest

from cgpu.core.names import RESOURCE_CORE, RESOURCE_COUNT, RESOURCE_MEM
from tests.deviceplugin.conftest import T4, UUIDS, Bench, bound, until
from tests.fake_instances import FolderInstances
from tests.fakes import AdmissionError, wire_pod


async def test_a_node_offers_the_sum_of_its_cards(started: Bench) -> None:
    cards = await until(started.published)

    assert [(0, UUIDS[0], 15109, 14, True), (1, UUIDS[1], 15109, 14, True)] == [
        (card.index, card.uuid, card.mem_mib, card.units, card.healthy) for card in cards
    ]
    await until(lambda: started.api.node["status"]["capacity"].get(RESOURCE_COUNT) == "2")
    assert started.kubelet.registrations == [RESOURCE_MEM]
    assert {f"u{i}" for i in range(28)} == set(started.kubelet.devices[RESOURCE_MEM])
    assert started.plugin.inventory.problem == ""


async def test_a_container_sees_its_share(started: Bench) -> None:
    [env] = await started.run(bound(wire_pod("one", 3), app0=1), "app0")

    assert env == {
        "ALIYUN_COM_GPU_MEM_CONTAINER": "3",
        "ALIYUN_COM_GPU_MEM_DEV": "14",
        "ALIYUN_COM_GPU_MEM_IDX": "1",
        "ALIYUN_COM_GPU_MEM_POD": "3",
        "ALIYUN_COM_GPU_SCHD_WEIGHT": "1",
        "ALIYUN_COM_GPU_HIGH_PRIO": "",
        "CGPU_DISABLE": "true",
        "NVIDIA_VISIBLE_DEVICES": UUIDS[1],
    }
    told = "container app0: 3 GiB of GPU 1 (mode share: nothing enforces it)"
    await until(lambda: started.events("GPUShareAllocated") == [told])


async def test_pod_env_cannot_weaken_a_share(started: Bench) -> None:
    pod = bound(wire_pod("one", 3), app0=0)
    started.api.put_pod(pod)
    await started.kubelet.admit(pod)

    env = await started.kubelet.run_container(
        pod, "app0", {"NVIDIA_VISIBLE_DEVICES": "all", "ALIYUN_COM_GPU_MEM_CONTAINER": "0", "MINE": "kept"}
    )

    assert (UUIDS[0], "3", "kept") == (
        env["NVIDIA_VISIBLE_DEVICES"],
        env["ALIYUN_COM_GPU_MEM_CONTAINER"],
        env["MINE"],
    )


async def test_two_equal_pods_admitted_in_the_opposite_order_get_their_own_cards(started: Bench) -> None:
    first, second = bound(wire_pod("a", 8), app0=0), bound(wire_pod("b", 8), app0=1)
    for pod in (first, second):
        started.api.put_pod(pod)
    for pod in (second, first):
        await started.kubelet.admit(pod)

    env_b = await started.kubelet.run_container(second, "app0")
    env_a = await started.kubelet.run_container(first, "app0")

    assert (env_a["ALIYUN_COM_GPU_MEM_IDX"], env_b["ALIYUN_COM_GPU_MEM_IDX"]) == ("0", "1")


@pytest.mark.parametrize("seed", range(4))
async def test_eight_pods_at_once_in_random_order(started: Bench, seed: int) -> None:
    order = random.Random(seed)
    pods = [bound(wire_pod(f"p{i}", 3), app0=i % 2) for i in range(8)]
    for pod in order.sample(pods, 8):
        started.api.put_pod(pod)
    for pod in order.sample(pods, 8):
        await started.kubelet.admit(pod)
    lists, listed = started.kubelet.lists, started.api.lists

    env = await asyncio.gather(*(started.kubelet.run_container(pod, "app0") for pod in pods))

    assert [str(i % 2) for i in range(8)] == [row["ALIYUN_COM_GPU_MEM_IDX"] for row in env]
    assert started.kubelet.lists - lists < 8  # concurrent look-ups share a List
    assert started.api.lists == listed  # and the API server is asked for none


async def test_two_containers_get_two_and_three(started: Bench) -> None:
    env = await started.run(bound(wire_pod("two", 2, 3), app0=0, app1=0), "app0", "app1")

    assert [(row["ALIYUN_COM_GPU_MEM_CONTAINER"], row["ALIYUN_COM_GPU_MEM_POD"]) for row in env] == [
        ("2", "5"),
        ("3", "5"),
    ]


async def test_gpu_count_two_names_both_cards(node: Bench) -> None:
    node.write_cards("model: A10, memMiB: 23028", T4)
    await node.start()
    await node.ready(36)

    [env] = await node.run(bound(wire_pod("wide", 8, labels={"aliyun.com/gpu-count": "2"}), app0=[0, 1]), "app0")

    assert ("4", "22,14", "0,1", f"{UUIDS[0]},{UUIDS[1]}") == (
        env["ALIYUN_COM_GPU_MEM_CONTAINER"],
        env["ALIYUN_COM_GPU_MEM_DEV"],
        env["ALIYUN_COM_GPU_MEM_IDX"],
        env["NVIDIA_VISIBLE_DEVICES"],
    )


async def test_each_of_two_cards_of_different_sizes_is_divided_by_its_own(node: Bench) -> None:
    node.write_cards("model: GTX 1080 Ti, memMiB: 11264", "model: P40, memMiB: 24576")
    await node.start()
    await node.ready(35)

    seen = [await node.run(bound(wire_pod(f"p{card}", 6), app0=card), "app0") for card in (0, 1)]

    assert [env["ALIYUN_COM_GPU_MEM_DEV"] for [env] in seen] == ["11", "24"]
    rows = node.plugin.rows()[1]
    assert [(row.gpu, row.limit_bytes >> 20) for row in rows] == [(0, 6144), (1, 6144)]


@pytest.mark.parametrize(
    ("init", "app", "books"),
    [
        pytest.param(8, 3, "8", id="a larger init container keeps its ids for the pod's life"),
        pytest.param(8, 8, "8", id="init 8 and app 8 on a card of 14"),
        pytest.param(3, 3, "3", id="equal sets are one instance"),
        pytest.param(2, 5, "5", id="the app container takes over the init container's ids and more"),
    ],
)
async def test_init_containers_hand_their_ids_on(started: Bench, init: int, app: int, books: str) -> None:
    env = await started.run(bound(wire_pod("p", app, init=(init,)), init0=1, app0=1), "init0", "app0")

    assert [(str(init), books), (str(app), books)] == [
        (row["ALIYUN_COM_GPU_MEM_CONTAINER"], row["ALIYUN_COM_GPU_MEM_POD"]) for row in env
    ]
    [grant] = list(started.plugin.records)
    assert (app, "app0") == (len(grant.ids), grant.container)


async def test_an_init_only_pod(started: Bench) -> None:
    env = await started.run(bound(wire_pod("p", 0, init=(5,)), init0=1), "init0", "app0")

    assert [row.get("ALIYUN_COM_GPU_MEM_CONTAINER") for row in env] == ["5", None]


async def test_init_then_sidecar_then_app(started: Bench) -> None:
    pod = bound(wire_pod("p", 3, init=(8,), sidecars=(2,)), init0=0, side0=0, app0=0)

    env = await started.run(pod, "init0", "side0", "app0")

    assert [(row["ALIYUN_COM_GPU_MEM_CONTAINER"], row["ALIYUN_COM_GPU_MEM_POD"]) for row in env] == [
        ("8", "8"),
        ("2", "8"),
        ("3", "8"),
    ]
    assert {grant.container: len(grant.ids) for grant in started.plugin.records} == {"side0": 2, "app0": 3}


async def test_a_container_restart_gets_the_same_again_and_no_second_event(started: Bench) -> None:
    pod = bound(wire_pod("one", 3), app0=1)
    [first] = await started.run(pod, "app0")
    second = await started.kubelet.run_container(pod, "app0")

    assert first == second
    await until(lambda: started.events("GPUShareAllocated"))
    assert len(started.events("GPUShareAllocated")) == 1


async def test_the_annotation_may_arrive_after_the_kubelet_asks(started: Bench) -> None:
    pod = bound(wire_pod("late", 3), app0=1)
    await started.kubelet.admit(pod)
    starting = asyncio.create_task(started.kubelet.run_container(pod, "app0"))
    await until(lambda: started.kubelet.lists > 1)
    assert not starting.done()

    started.api.put_pod(pod)

    assert (await starting)["ALIYUN_COM_GPU_MEM_IDX"] == "1"


async def test_a_new_pod_under_an_old_name_gets_its_own_card(started: Bench) -> None:
    old = bound(wire_pod("web-0", 4, uid="old"), app0=0)
    await started.run(old, "app0")
    started.kubelet.remove(old)
    new = bound(wire_pod("web-0", 4, uid="new"), app0=1)
    await started.kubelet.admit(new)
    starting = asyncio.create_task(started.kubelet.run_container(new, "app0"))
    await asyncio.sleep(0.1)
    started.api.delete_pod("web-0")
    started.api.put_pod(new)

    assert (await starting)["ALIYUN_COM_GPU_MEM_IDX"] == "1"


async def refused(node: Bench, pod: dict[str, object]) -> str:
    """What the kubelet is told when the container may not start."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await node.run(pod, "app0")
    return str(caught.value.details())


async def test_what_may_not_be_served_is_refused_in_words_and_leaves_nothing(node: Bench) -> None:
    await node.start()
    node.plugin.handover.wait_s = 0.1
    await node.ready(28)
    forged = bound(wire_pod("forged", 3), app0=0)
    forged["metadata"]["annotations"]["cgpu.aliyun.com/allocation"] = (
        f'{{"app0":{{"{UUIDS[0]}":{{"mem":9,"core":0}}}}}}'
    )
    for pod, want in (
        (wire_pod("unbound", 3), "default/unbound has no annotation cgpu.aliyun.com/allocation"),
        (forged, "asks for aliyun.com/gpu-mem: 3, the kubelet gave 3 ids and .* says 9"),
    ):
        text = await refused(node, pod)
        assert re.search(want, text), text
        await until(lambda text=text: text in node.events("GPUShareAllocateFailed"))
        node.api.delete_pod(pod["metadata"]["name"])
        node.kubelet.remove(pod)
    assert list(node.plugin.records) == []
    assert list((node.folder / "cdi").glob("*")) == []


async def test_pods_outside_our_policies_get_no_share(started: Bench) -> None:
    labelled = bound(wire_pod("labelled", 3, labels={"cgpu.aliyun.com/ignore": "true"}), app0=0)
    assert "default/labelled has the label cgpu.aliyun.com/ignore=true" in await refused(started, labelled)

    started.api.namespace_labels = {"cgpu.aliyun.com/ignore": "true"}
    assert "namespace default has the label" in await refused(started, bound(wire_pod("quiet", 3), app0=0))
    assert list(started.plugin.records) == []


@pytest.mark.parametrize("told", [pytest.param(True, id="with its mirror"), pytest.param(False, id="without a mirror")])
async def test_a_static_pod_gets_no_share_whatever_its_file_says(node: Bench, told: bool) -> None:
    """The kubelet knows it by a UID of its own; the API server has a mirror of it, or refuses that."""
    await node.start()
    node.plugin.handover.wait_s = 0.1
    await node.ready(28)
    static = bound(wire_pod("static-node-a", 3, uid="0123456789abcdef0123456789abcdef"), app0=0)
    if told:
        mirror = wire_pod("static-node-a", 3, uid="uid-mirror")
        mirror["metadata"]["annotations"]["kubernetes.io/config.mirror"] = static["metadata"]["uid"]
        node.api.put_pod(mirror)
    await node.kubelet.admit(static)

    with pytest.raises(grpc.aio.AioRpcError, match="a static pod, or one that has ended, gets no share"):
        await node.kubelet.run_container(static, "app0")

    assert list(node.plugin.records) == []
    assert node.kubelet.edits(static["metadata"]["uid"], "app0") == []


async def test_a_pod_that_has_ended_gets_nothing_after_a_restart_of_the_kubelet(started: Bench) -> None:
    """A kubelet that forgot that it ended admits it again; its card belongs to somebody else by then."""
    ended = bound(wire_pod("ended", 8), app0=0)
    await started.run(ended, "app0")
    ended["status"]["phase"] = "Succeeded"
    started.api.put_pod(ended)
    started.kubelet.remove(ended)
    await until(lambda: not list(started.plugin.records))
    await started.run(bound(wire_pod("next", 8), app0=0), "app0")
    await started.kubelet.stop()
    await started.kubelet.start()
    await started.ready(28)
    started.plugin.handover.wait_s = 0.1

    await started.kubelet.admit(ended)
    with pytest.raises(grpc.aio.AioRpcError, match="one that has ended, gets no share"):
        await started.kubelet.run_container(ended, "app0")

    assert [grant.pod for grant in started.plugin.records] == ["next"]
    assert started.events("GPUShareAllocateFailed") == []


async def test_whoever_came_first_keeps_the_card(started: Bench) -> None:
    await started.run(bound(wire_pod("first", 8), app0=0), "app0")

    text = await refused(started, bound(wire_pod("second", 8), app0=0))

    assert "GPU 0 has 14 GiB" in text
    assert "8 GiB and 0 percent are held" in text
    assert [grant.pod for grant in started.plugin.records] == ["first"]


async def test_core_mem_registers_two_resources_and_weighs(node: Bench) -> None:
    node.api.label(schedule="core_mem")
    await node.start(FolderInstances(node.folder / "instances"))
    await node.ready(28)
    await node.kubelet.devices_are(RESOURCE_CORE, 200)

    pod = wire_pod("p", 3, core=30)
    pod["metadata"]["annotations"]["cgpu.aliyun.com/allocation"] = f'{{"app0":{{"{UUIDS[1]}":{{"mem":3,"core":30}}}}}}'
    [env] = await node.run(pod, "app0")

    assert (
        env["ALIYUN_COM_GPU_SCHD_WEIGHT"],
        env["NVIDIA_VISIBLE_DEVICES"],
        env["CGPU_DISABLE"],
    ) == ("6", "void", "")
    told = "container app0: 3 GiB of GPU 1, 30 percent (mode core_mem: memory and compute are enforced)"
    await until(lambda: node.events("GPUShareAllocated") == [told])
    assert (
        node.kubelet.options[RESOURCE_MEM].pre_start_required,
        node.kubelet.options[RESOURCE_CORE].pre_start_required,
    ) == (True, False)


async def test_a_full_node_admits_nothing_more(started: Bench) -> None:
    await started.run(bound(wire_pod("a", 14), app0=0), "app0")
    await started.run(bound(wire_pod("b", 14), app0=1), "app0")

    with pytest.raises(AdmissionError):
        await started.run(bound(wire_pod("c", 1), app0=0), "app0")
