# SPDX-License-Identifier: Apache-2.0
"""Instances of the kernel module follow their pods: made before a start, ended when nothing holds them any more."""

import grpc
import pytest

from cgpu.core.names import RESOURCE_MEM
from deviceplugin.reconcile import Reconciler
from tests.deviceplugin.conftest import Bench, bound, until
from tests.fake_instances import FolderInstances
from tests.fakes import Wire, wire_pod


async def isolated(node: Bench) -> FolderInstances:
    """The node in mode cgpu with a module, ready."""
    module = FolderInstances(node.folder / "instances")
    node.api.label(schedule="cgpu")
    await node.start(module)
    await node.ready(28)
    return module


async def running(node: Bench) -> Wire:
    """A pod with an instance."""
    pod = bound(wire_pod("p", 3), app0=0)
    await node.run(pod, "app0")
    return pod


async def deleted(node: Bench) -> None:
    """The API server has the pod no more, and the plugin has looked for what it left."""
    turns = node.kubelet.lists
    node.api.delete_pod("p")
    await until(lambda: node.kubelet.lists > turns)


async def test_a_module_that_goes_away_turns_every_id_and_withdraws_none(node: Bench) -> None:
    module = await isolated(node)
    await running(node)

    module.trouble = "the module is gone"
    node.plugin.inventory.wake.fire()
    await node.kubelet.devices_are(RESOURCE_MEM, 0, 28)
    await until(lambda: node.events("GPUModuleNotReady") == ["the module is gone"])
    module.trouble = ""
    node.plugin.inventory.wake.fire()

    await node.ready(28)


async def test_a_problem_withdraws_no_id_even_for_a_moment(node: Bench) -> None:
    module = await isolated(node)
    await node.run(bound(wire_pod("a", 3), app0=0), "app0")
    counts = []
    publish = node.plugin.inventory._listings[RESOURCE_MEM].publish
    node.plugin.inventory._listings[RESOURCE_MEM].publish = lambda rows: (counts.append(len(rows)), publish(rows))

    module.trouble = "the module is gone"
    node.plugin.inventory.wake.fire()
    await node.kubelet.devices_are(RESOURCE_MEM, 0, 28)

    assert set(counts) == {28}


async def test_instances_follow_their_pods(node: Bench) -> None:
    module = await isolated(node)
    pod = bound(wire_pod("p", 3, init=(8,), sidecars=(2,)), init0=0, side0=0, app0=0)
    seen = []
    node.api.put_pod(pod)
    await node.kubelet.admit(pod)
    for name in ("init0", "side0", "app0"):
        await node.kubelet.run_container(pod, name)
        seen.append([(row["container"], row["mem"]) for row in module.made()])

    assert seen == [[("init0", [8])], [("side0", [2])], [("app0", [3]), ("side0", [2])]]
    await until(
        lambda: (
            node.events("GPUShareAllocated")[-1:] == ["container app0: 3 GiB of GPU 0 (mode cgpu: memory is enforced)"]
        )
    )

    node.kubelet.remove(pod)
    node.api.delete_pod("p")
    await until(lambda: module.made() == [])
    assert list(node.plugin.records) == []
    assert list((node.folder / "cdi").glob("*.json")) == []


async def test_a_module_that_refuses_keeps_the_container_from_starting(node: Bench) -> None:
    module = await isolated(node)
    module.refuse = "no free instance"
    pod = bound(wire_pod("p", 3), app0=0)

    with pytest.raises(grpc.aio.AioRpcError, match="no free instance"):
        await node.run(pod, "app0")
    await until(lambda: node.events("GPUShareAllocateFailed") == ["no free instance"])
    assert list(node.plugin.records) == []

    module.refuse = ""
    assert await node.kubelet.run_container(pod, "app0")


async def test_an_instance_in_use_stays_until_it_is_free(node: Bench) -> None:
    module = await isolated(node)
    pod = await running(node)
    [grant] = list(node.plugin.records)
    module.busy = {grant.instance}
    node.kubelet.remove(pod)
    await deleted(node)
    assert [row["container"] for row in module.made()] == ["app0"]

    module.busy = set()
    await reconciler(node).turn()
    assert module.made() == []


@pytest.mark.parametrize(
    "held_by",
    [
        pytest.param("kubelet", id="by the kubelet, which the API server tells nothing of"),
        pytest.param("process", id="by a process that ends later"),
    ],
)
async def test_what_is_still_held_when_its_pod_has_gone_is_looked_at_again_soon(
    node: Bench, monkeypatch: pytest.MonkeyPatch, held_by: str
) -> None:
    monkeypatch.setattr("deviceplugin.reconcile._EVERY_S", 3600.0)
    module = await isolated(node)
    pod = await running(node)
    [grant] = list(node.plugin.records)
    module.busy = {grant.instance} if held_by == "process" else set()
    if held_by == "process":
        node.kubelet.remove(pod)
    await deleted(node)
    assert [row["container"] for row in module.made()] == ["app0"]

    module.busy = set()
    node.kubelet.remove(pod)
    await until(lambda: module.made() == [])


async def test_leftovers_of_a_killed_plugin_are_removed(node: Bench) -> None:
    module = FolderInstances(node.folder / "instances")
    (module.folder / "0123456789ab").write_text("{}")
    (node.folder / "cdi").mkdir()
    (node.folder / "cdi" / "aliyun.com-gpu-mem-stray.json").write_text("{}")
    (node.folder / "cdi" / "somebody-else.json").write_text("{}")
    (node.folder / "run" / "grants").mkdir(parents=True)
    (node.folder / "run" / "grants" / "half.json").write_text('{"hash": "ha')
    await node.start(module)
    await node.ready(28)

    await until(lambda: module.existing() == set())
    assert [path.name for path in (node.folder / "cdi").iterdir()] == ["somebody-else.json"]
    assert list((node.folder / "run" / "grants").iterdir()) == []


def reconciler(node: Bench) -> Reconciler:
    """The plugin's own."""
    return node.plugin._reconciler
