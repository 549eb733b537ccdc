# SPDX-License-Identifier: Apache-2.0
"""Containers that the kubelet runs without the devices that their pods were bound with."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from cgpu.core.errors import UnavailableError
from cgpu.core.model import Container, ContainerKind, Pod, Start
from cgpu.core.names import ANNOTATION_ALLOCATION, EVENT_ALLOCATE_FAILED, RESOURCE_CORE, RESOURCE_MEM
from deviceplugin.pairing import Books, Entry
from deviceplugin.unserved import Unserved, UnservedWatch, booted_at, doubtful, is_without_ids
from tests.builders import make_card, make_pod
from tests.deviceplugin.conftest import Bench, bound, until
from tests.fakes import Wire, wire_pod

CARDS = (make_card(0), make_card(1))
BOUND = {ANNOTATION_ALLOCATION: '{"app0":{"GPU-0":{"mem":6,"core":0}},"app1":{"GPU-0":{"mem":2,"core":0}}}'}
BOOT = 1_760_000_000.0  # 2025-10-09T08:53:20Z
BEFORE, AFTER = "2025-10-09T08:53:19Z", "2025-10-09T08:53:20Z"
RUNS = {"app0": Start("containerd://1", AFTER)}
IDS = frozenset({"u1", "u2"})


def pod(**fields: object) -> Pod:
    """A pod of two containers with 6 and 2 GiB that was bound, and whose first one runs."""
    return make_pod("6", "2", **{"annotations": BOUND, "phase": "Running", "running": RUNS, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("seen", "granted", "want"),
    [
        pytest.param(pod(), (), ["app0"], id="it runs and was given nothing"),
        pytest.param(pod(running={**RUNS, "app1": Start("2", AFTER)}), (), ["app0", "app1"], id="both"),
        pytest.param(pod(), [("uid-pod", "app0")], [], id="it was given its share"),
        pytest.param(pod(), [("uid-pod", "app1")], ["app0"], id="the other container was given its own"),
        pytest.param(pod(), [("uid-old", "app0")], ["app0"], id="a pod that had the name before was given one"),
        pytest.param(pod(running={}), (), [], id="it waits"),
        pytest.param(pod(phase="Failed"), (), [], id="the pod has failed"),
        pytest.param(pod(phase="Succeeded"), (), [], id="the pod has ended"),
        pytest.param(pod(ended=True), (), [], id="its containers have ended"),
        pytest.param(pod(deleting=True), (), [], id="it is being deleted: what was to be done is done"),
        pytest.param(pod(annotations={}), (), [], id="it was not bound by our scheduler"),
        pytest.param(pod(annotations={ANNOTATION_ALLOCATION: "{"}), (), ["app0"], id="its allocation cannot be read"),
        pytest.param(pod(running={"app0": Start("1", BEFORE)}), (), [], id="the API server still speaks of the time before the boot"),
        pytest.param(pod(running={"app0": Start("1")}), (), [], id="nobody has said when it started"),
        pytest.param(replace(pod(), containers=(Container("app0"),)), (), [], id="it asks for nothing"),
        pytest.param(replace(pod(), containers=(Container("app0", mem="six"),)), (), [], id="what it asks for cannot be read"),
    ],
)  # fmt: skip
def test_who_runs_without_a_grant(seen: Pod, granted: Iterable[tuple[str, str]], want: list[str]) -> None:
    found = doubtful([seen, pod(name="other", running={})], frozenset(granted), CARDS, BOOT)

    assert [row.container for row in found] == want


def row(kind: ContainerKind = ContainerKind.APP) -> Unserved:
    return Unserved("uid", "default", "pod", "app0", kind, "1", f"{RESOURCE_MEM}: 6")


def books(
    *listed: Entry,
    checkpoint: tuple[Entry, ...] | None = (),
    active: tuple[tuple[str, str], ...] = (("default", "pod"),),
) -> Books:
    return Books(listed, checkpoint, frozenset(active))


def listed(
    container: str = "app0", name: str = "pod", resource: str = RESOURCE_MEM, ids: frozenset[str] = IDS
) -> Entry:
    return Entry(container, resource, ids, namespace="default", name=name)


def checked(container: str = "app0", uid: str = "uid") -> Entry:
    return Entry(container, RESOURCE_MEM, IDS, uid=uid)


@pytest.mark.parametrize(
    ("kind", "said", "want"),
    [
        pytest.param(ContainerKind.APP, books(), True, id="the kubelet has the pod and no ids"),
        pytest.param(ContainerKind.APP, books(checkpoint=None), True, id="nor a checkpoint"),
        pytest.param(ContainerKind.SIDECAR, books(checkpoint=None), True, id="a sidecar"),
        pytest.param(ContainerKind.APP, books(active=()), False, id="the kubelet does not know the pod yet, or not any more"),
        pytest.param(ContainerKind.APP, books(listed()), False, id="PodResources has its ids"),
        pytest.param(ContainerKind.APP, books(checkpoint=(checked(),)), False, id="the checkpoint has its ids"),
        pytest.param(ContainerKind.APP, books(listed("app1"), checkpoint=(checked("app1"),)), True, id="the ids are another container's"),
        pytest.param(ContainerKind.APP, books(listed(name="other"), checkpoint=(checked(uid="old"),)), True, id="the ids are another pod's"),
        pytest.param(ContainerKind.APP, books(listed(resource=RESOURCE_CORE)), True, id="only its percentages have ids"),
        pytest.param(ContainerKind.APP, books(listed(ids=frozenset())), True, id="an entry without ids"),
        pytest.param(ContainerKind.INIT, books(), True, id="an init container that the checkpoint does not have"),
        pytest.param(ContainerKind.INIT, books(checkpoint=None), False, id="an init container: nothing is known of it"),
        pytest.param(ContainerKind.INIT, books(checkpoint=(checked(),)), False, id="an init container with its ids"),
    ],
)  # fmt: skip
def test_whether_the_kubelet_has_no_ids(kind: ContainerKind, said: Books, want: bool) -> None:
    assert is_without_ids(row(kind), said) is want


def test_the_text_names_container_ask_reason_and_remedy() -> None:
    [found] = doubtful([make_pod("6", core="30", annotations=BOUND, phase="Running", running=RUNS)], (), CARDS)

    for words in (
        "container app0 asks for aliyun.com/gpu-mem: 6 and aliyun.com/gpu-core.percentage: 30 and runs without it",
        "the kubelet started it without the devices",
        "delete the pod",
    ):
        assert words in found.text()


@pytest.mark.parametrize(
    ("stat", "want"),
    [
        pytest.param("cpu 1 2\nbtime 1760000000\nprocesses 3\n", BOOT, id="as the kernel writes it"),
        pytest.param("cpu 1 2\n", 0.0, id="no such line"),
        pytest.param(None, 0.0, id="no file"),
    ],
)
def test_when_the_machine_started(tmp_path: Path, stat: str | None, want: float) -> None:
    if stat is not None:
        (tmp_path / "stat").write_text(stat)
    assert booted_at(tmp_path) == want


def runs(wire: Wire, start: str, container: str = "app0") -> Wire:
    """The pod with a container of it running."""
    state = {"running": {"startedAt": AFTER}}
    return {**wire, "status": {"phase": "Running", "containerStatuses": [{"name": container, "containerID": start, "state": state}]}}  # fmt: skip


def _shows(node: Bench, uid: str, start: str) -> bool:
    """Whether the plugin's watch has brought that start of a pod's first container."""
    seen = node.plugin.pods.pods.get(uid)
    return seen is not None and "app0" in seen.running and seen.running["app0"].id == start


async def watch_of(node: Bench) -> UnservedWatch:
    """The plugin's own, looking when the test says so; its loop would take its time."""
    plugin = node.plugin
    watch = UnservedWatch(
        plugin.books, plugin.pods, plugin.records, plugin.recorder,
        cards=lambda: plugin.inventory.serving.cards, proc_root=node.options.proc_root,
    )  # fmt: skip
    await until(lambda: plugin.inventory.problem == "")
    return watch


async def test_a_container_that_was_started_without_its_devices_is_told_once_a_start(started: Bench) -> None:
    """The kubelet knows the pod and did not ask us."""
    watch = await watch_of(started)
    lost = bound(wire_pod("lost", 3), app0=1)
    for start in ("containerd://1", "containerd://2"):
        started.api.put_pod(runs(lost, start))
        started.kubelet.pods["uid-lost"] = lost
        await until(partial(_shows, started, "uid-lost", start))
        await watch.turn()
        assert not watch.rows
        await watch.turn()
        await watch.turn()
        assert [(told.container, told.start) for told in watch.rows] == [("app0", start)]

    [first, *_] = await until(lambda: started.events(EVENT_ALLOCATE_FAILED))
    assert "container app0 asks for aliyun.com/gpu-mem: 3 and runs without it" in first
    started.api.delete_pod("lost")
    await until(lambda: not started.plugin.pods.pods)
    await watch.turn()
    assert not watch.rows


async def test_a_container_with_its_share_is_never_told_not_by_a_plugin_that_was_restarted_either(
    started: Bench,
) -> None:
    served = bound(wire_pod("served", 3), app0=1)
    await started.run(served, "app0")
    started.api.put_pod(runs(served, "containerd://1"))
    await started.stop()
    await started.start()
    watch = await watch_of(started)
    await until(partial(_shows, started, "uid-served", "containerd://1"))
    for _ in range(2):
        await watch.turn()
    assert not watch.rows

    for grant in started.plugin.records:
        started.plugin.records.remove(grant.hash)
    for _ in range(2):
        await watch.turn()
    assert (watch.rows, started.events(EVENT_ALLOCATE_FAILED)) == ((), [])


async def test_what_changed_while_the_kubelet_was_asked_is_not_judged(started: Bench) -> None:
    watch = await watch_of(started)
    store, held = started.plugin.pods, started.plugin.books.read
    store.changed(replace(pod(), running=RUNS))

    class Ending:
        """A kubelet that has the pod without ids; the pod's container ends before the answer is there."""

        async def read(self) -> Books:
            await held()
            store.changed(pod(running={}))
            return books()

    watch._kubelet = Ending()
    for _ in range(2):
        store.changed(pod())
        await watch.turn()
    assert not watch.rows


async def test_a_kubelet_that_does_not_answer_leaves_it_open(started: Bench) -> None:
    watch = await watch_of(started)
    started.plugin.pods.changed(pod())
    await started.kubelet.stop()
    (started.folder / "kubelet" / "pod-resources" / "kubelet.sock").unlink(missing_ok=True)

    with pytest.raises(UnavailableError):
        await watch.turn()
    assert not watch.rows
