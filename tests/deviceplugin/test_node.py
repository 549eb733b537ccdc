# SPDX-License-Identifier: Apache-2.0
"""What happens to a node: cards fail and return, labels change, kubelet and plugin restart, parts are missing."""

import asyncio

import grpc
import pytest

from cgpu.core.errors import UnavailableError
from cgpu.core.names import LABEL_SERVING, RESOURCE_COUNT, RESOURCE_MEM
from tests.deviceplugin.conftest import T4, UUIDS, Bench, bound, until
from tests.fakes import AdmissionError, wire_pod

SICK = f"{T4}, healthy: false"


async def test_a_sick_card_takes_its_pods_ids_along_and_no_other(started: Bench) -> None:
    on_sick, on_well = bound(wire_pod("a", 5), app0=0), bound(wire_pod("b", 6), app0=1)
    await started.run(on_sick, "app0")
    await started.run(on_well, "app0")

    started.write_cards(SICK, T4)
    await started.kubelet.devices_are(RESOURCE_MEM, 14, 14)

    turned = {id_ for id_, health in started.kubelet.devices[RESOURCE_MEM].items() if health == "Unhealthy"}
    assert started.kubelet.held["uid-a", "app0", RESOURCE_MEM] <= turned
    assert not started.kubelet.held["uid-b", "app0", RESOURCE_MEM] & turned
    assert await started.kubelet.run_container(on_well, "app0")
    with pytest.raises(AdmissionError):
        await started.kubelet.run_container(on_sick, "app0")
    await until(lambda: [card.healthy for card in started.published() or ()] == [False, True])
    [message] = await until(lambda: started.events("GPUUnhealthy"))
    assert f"GPU 0 ({UUIDS[0]})" in message
    assert message.endswith("(default/a)")

    started.write_cards(T4, T4)
    await started.ready(28)

    assert await started.kubelet.run_container(on_sick, "app0")
    await until(lambda: [card.healthy for card in started.published() or ()] == [True, True])
    await until(lambda: started.events("GPURecovered"))


async def test_a_pod_that_the_books_send_to_a_sick_card_waits(started: Bench) -> None:
    started.write_cards(SICK, T4)
    await started.kubelet.devices_are(RESOURCE_MEM, 14, 14)

    # either the plugin refuses, or it was quick to take the pod's ids along, and then the kubelet does
    with pytest.raises(
        (grpc.aio.AioRpcError, AdmissionError), match=r"is unhealthy: waiting for it|are no longer healthy"
    ):
        await started.run(bound(wire_pod("a", 3), app0=0), "app0")


async def test_a_node_that_comes_back_smaller_keeps_the_ids_of_its_pods(started: Bench) -> None:
    pod = bound(wire_pod("a", 14), app0=0)
    await started.run(pod, "app0")
    await started.stop()
    started.write_cards(T4)
    await started.start()

    await started.ready(14)

    assert started.kubelet.held["uid-a", "app0", RESOURCE_MEM] == set(started.kubelet.devices[RESOURCE_MEM])
    assert await started.kubelet.run_container(pod, "app0")
    await until(lambda: started.api.node["status"]["capacity"].get(RESOURCE_COUNT) == "1")


async def test_a_pod_of_a_card_that_is_gone_cannot_restart(started: Bench) -> None:
    pod = bound(wire_pod("a", 10), app0=1)
    await started.run(pod, "app0")
    await started.stop()
    started.write_cards(T4)
    await started.start()
    await started.kubelet.devices_are(RESOURCE_MEM, 4, 10)

    with pytest.raises(AdmissionError):
        await started.kubelet.run_container(pod, "app0")
    [message] = await until(lambda: started.events("GPUUnhealthy"))
    assert message == f"GPU {UUIDS[1]}: not on this node any more; its pods cannot start again: delete them (default/a)"

    started.write_cards(T4, T4)
    await until(lambda: started.events("GPURecovered"))
    assert await started.kubelet.run_container(pod, "app0")


async def test_the_others_of_a_card_that_was_taken_out_keep_theirs(started: Bench) -> None:
    """Their cards have other numbers afterwards; the UUID is what they were given."""
    on_first, on_second = bound(wire_pod("a", 3), app0=0), bound(wire_pod("b", 5), app0=1)
    await started.run(on_first, "app0")
    await started.run(on_second, "app0")
    await started.stop()
    started.write_cards(f"{T4}, uuid: {UUIDS[1]}")
    await started.start()
    await started.kubelet.devices_are(RESOURCE_MEM, 11, 3)

    env = await started.kubelet.run_container(on_second, "app0")

    assert (env["ALIYUN_COM_GPU_MEM_IDX"], env["NVIDIA_VISIBLE_DEVICES"]) == ("0", UUIDS[1])
    with pytest.raises(AdmissionError):
        await started.kubelet.run_container(on_first, "app0")
    [message] = await until(lambda: started.events("GPUUnhealthy"))
    assert message.endswith("(default/a)")


async def test_a_mistake_in_the_card_file_keeps_the_last_good_list(started: Bench) -> None:
    await started.run(bound(wire_pod("a", 3), app0=0), "app0")
    started.write_cards("model: T4, memMiB: lots")
    await until(lambda: started.plugin.inventory._source._seen == started.plugin.inventory._source._stamp())

    assert len(started.plugin.inventory.gpus) == 2
    assert started.plugin.inventory.problem == ""


async def test_a_restarted_kubelet_is_registered_with_again(started: Bench) -> None:
    pod = bound(wire_pod("a", 3), app0=1)
    await started.run(pod, "app0")
    grants = list(started.plugin.records)
    await started.kubelet.stop()
    await started.kubelet.start()

    await started.ready(28)

    assert started.kubelet.registrations == [RESOURCE_MEM, RESOURCE_MEM]
    assert list(started.plugin.records) == grants
    assert (await started.kubelet.run_container(pod, "app0"))["ALIYUN_COM_GPU_MEM_IDX"] == "1"


async def test_a_kubelet_that_comes_late_is_waited_for(node: Bench) -> None:
    await node.kubelet.stop()
    (node.folder / "kubelet" / "device-plugins" / "kubelet.sock").unlink(missing_ok=True)
    await node.start()
    await until(lambda: node.plugin.inventory.problem == "not registered with the kubelet")
    assert RESOURCE_COUNT not in node.api.node["status"]["capacity"]

    await node.kubelet.start()

    await node.ready(28)
    await until(lambda: node.api.node["status"]["capacity"].get(RESOURCE_COUNT) == "2")


async def test_the_number_of_cards_goes_with_the_memory_when_the_kubelet_does_not_know_the_plugin(
    started: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deviceplugin.inventory._GRACE_S", 0.0)
    await until(lambda: started.api.node["status"]["capacity"].get(RESOURCE_COUNT) == "2")
    await started.kubelet.stop()
    (started.folder / "kubelet" / "device-plugins" / "kubelet.sock").unlink(missing_ok=True)

    await until(lambda: RESOURCE_COUNT not in started.api.node["status"]["capacity"])
    assert started.plugin.inventory.problem == "not registered with the kubelet"

    await started.kubelet.start()
    await until(lambda: started.api.node["status"]["capacity"].get(RESOURCE_COUNT) == "2")


async def test_a_restarted_plugin_knows_what_it_gave(started: Bench) -> None:
    first = bound(wire_pod("first", 8), app0=0)
    await started.run(first, "app0")
    await started.stop()
    await started.kubelet.devices_are(RESOURCE_MEM, 0, 28)
    await started.start()
    await started.ready(28)

    assert await started.kubelet.run_container(first, "app0")
    with pytest.raises(grpc.aio.AioRpcError, match="8 GiB and 0 percent are held"):
        await started.run(bound(wire_pod("second", 8), app0=0), "app0")


async def test_mode_changes_wait_until_the_shares_are_gone(started: Bench) -> None:
    pod = bound(wire_pod("a", 3), app0=0)
    await started.run(pod, "app0")
    started.api.label(schedule="default")

    [message] = await until(lambda: started.events("GPUShareModeRefused"))
    assert "asks for mode default, but 1 pods hold shares in mode share (default/a)" in message
    assert await started.kubelet.run_container(pod, "app0")

    started.kubelet.remove(pod)
    started.api.delete_pod("a")
    await started.kubelet.devices_are(RESOURCE_MEM, 0)
    await until(lambda: started.published() is None)
    await until(lambda: RESOURCE_COUNT not in started.api.node["status"]["capacity"])
    await until(lambda: LABEL_SERVING not in started.api.node["metadata"]["labels"])

    started.api.label(schedule="share")
    await started.ready(28)


async def test_the_plugins_own_label_comes_first_and_goes_last(started: Bench) -> None:
    """The DaemonSet ends the plugin's pod once it is gone: nothing may be left to do then."""
    await until(lambda: RESOURCE_COUNT in started.api.node["status"]["capacity"])
    assert started.api.writes[0] == f"labels {{'{LABEL_SERVING}': 'true'}}"
    started.api.writes.clear()

    started.api.label(schedule=None)

    await until(lambda: LABEL_SERVING not in started.api.node["metadata"]["labels"])
    assert started.api.writes == [
        "annotations ['cgpu.aliyun.com/devices']",
        f"capacity {{'{RESOURCE_COUNT}': None}}",
        f"labels {{'{LABEL_SERVING}': None}}",
    ]


async def test_a_label_that_is_no_mode_is_said_and_changes_nothing(started: Bench) -> None:
    started.api.label(schedule="shared")

    [message] = await until(lambda: started.events("GPUShareModeRefused"))

    assert "ack.node.gpu.schedule='shared': must be one of cgpu, core_mem, share, default" in message
    await started.ready(28)


async def test_a_node_without_our_label_is_left_alone(node: Bench) -> None:
    node.api.label(schedule=None)
    await node.start()
    await until(lambda: node.plugin.inventory._mode is not None)

    assert node.plugin.inventory.problem == ""
    assert (node.kubelet.registrations, node.published(), node.api.writes) == ([], None, [])


async def test_cgpu_without_the_kernel_module_offers_nothing_and_says_so(node: Bench) -> None:
    node.api.label(schedule="cgpu")
    await node.start()

    [message] = await until(lambda: node.events("GPUModuleNotReady"))

    assert "needs the kernel module cgpu_km" in message
    assert node.plugin.inventory.problem == message
    assert (node.kubelet.registrations, node.published()) == ([], None)


@pytest.mark.parametrize(
    ("runtime", "want"),
    [
        pytest.param("containerd://1.6.20", "knows no CDI devices", id="containerd 1.6 has none"),
        pytest.param("containerd://1.7.28", "enable_cdi = true", id="containerd 1.7 may have it switched off"),
    ],
)
async def test_a_runtime_that_cannot_apply_shares_is_said(node: Bench, runtime: str, want: str) -> None:
    node.api.node["status"]["nodeInfo"]["containerRuntimeVersion"] = runtime
    await node.start()

    await until(lambda: want in node.plugin.inventory.problem)
    assert node.kubelet.registrations == []


async def test_a_runtime_that_restarts_is_not_taken_for_another(started: Bench) -> None:
    """A kubelet reports containerd://Unknown while containerd is away."""
    started.api.node["status"]["nodeInfo"]["containerRuntimeVersion"] = "containerd://Unknown"
    started.api.label(schedule="share")
    await until(lambda: started.plugin.nodes.node.runtime == "containerd://Unknown")
    await started.plugin.inventory.turn()

    assert started.plugin.inventory.problem == ""
    await started.ready(28)


async def test_no_card_is_said_and_offers_nothing(node: Bench) -> None:
    await node.start(simulate=None)

    await until(lambda: "no NVIDIA GPU can be used on this node" in node.plugin.inventory.problem)
    assert (node.kubelet.registrations, node.published()) == ([], None)


async def test_too_many_ids_for_the_kubelet_are_refused_with_the_size(node: Bench) -> None:
    node.write_cards(*["model: huge, memMiB: 16777216, count: 16"])
    await node.start()

    await until(lambda: "make a ListAndWatch message of" in node.plugin.inventory.problem)
    assert node.kubelet.registrations == []


async def test_a_node_that_cannot_be_written_is_tried_again(node: Bench) -> None:
    node.api.fail = UnavailableError("the API server is away")
    await node.start()
    await node.ready(28)
    assert node.published() is None

    node.api.fail = None

    await until(node.published)
    await until(lambda: node.api.node["status"]["capacity"].get(RESOURCE_COUNT) == "2")


async def test_somebody_elses_edit_of_the_annotation_is_undone(started: Bench) -> None:
    await until(started.published)
    await started.api.patch_node_annotations("node-a", {"cgpu.aliyun.com/devices": "[]"})

    await until(lambda: len(started.published() or ()) == 2)


async def test_starts_at_once_do_not_pass_the_card(started: Bench) -> None:
    pods = [bound(wire_pod(f"p{i}", 5), app0=0) for i in range(4)]
    for pod in pods:
        started.api.put_pod(pod)
        await started.kubelet.admit(pod)

    answers = await asyncio.gather(
        *(started.kubelet.run_container(pod, "app0") for pod in pods), return_exceptions=True
    )

    assert sorted(isinstance(answer, Exception) for answer in answers) == [False, False, True, True]
