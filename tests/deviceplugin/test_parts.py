# SPDX-License-Identifier: Apache-2.0
"""Parts of the plugin that have more cases than the life of a node shows."""

import asyncio
import json
from pathlib import Path

import aiohttp
import grpc
import pytest

from cgpu.core.errors import InputError, PlacementError, SettingError, UnavailableError
from cgpu.core.model import Container, ContainerKind, Pod, Share
from cgpu.core.names import RESOURCE_MEM, Mode
from cgpu.kubelet import deviceplugin_pb2 as dp
from cgpu.kubelet import deviceplugin_pb2_grpc as dp_grpc
from cgpu.procfs import Instance
from deviceplugin.__main__ import main, serve
from deviceplugin.grants import Grant, grant_of, has_allocation
from deviceplugin.metrics import UsageCollector
from deviceplugin.modes import choose_mode
from deviceplugin.options import Options
from deviceplugin.pairing import Books, Entry, KubeletBooks, pair, parse_checkpoint
from deviceplugin.runtime import runtime_problem
from deviceplugin.usage import BusyMeter, gpu_rows, instance_rows
from tests.builders import make_card, make_pod
from tests.deviceplugin.conftest import Bench, bound, until
from tests.fakes import wire_pod

IDS = frozenset({"u1", "u2"})


def make_owner(uid: str = "uid", name: str = "pod", phase: str = "Running") -> Pod:
    return Pod(uid, "default", name, (Container("c", ContainerKind.APP, "2"),), node="node-a", phase=phase)


def listed(name: str = "pod", container: str = "c", ids: frozenset[str] = IDS) -> Entry:
    return Entry(container, RESOURCE_MEM, ids, namespace="default", name=name)


def checked(uid: str = "uid", container: str = "c", ids: frozenset[str] = IDS) -> Entry:
    return Entry(container, RESOURCE_MEM, ids, uid=uid)


@pytest.mark.parametrize(
    ("books", "pods", "want"),
    [
        pytest.param(Books((listed(),), (checked(),)), [make_owner()], "uid", id="both books agree"),
        pytest.param(Books((listed(),), None), [make_owner()], "uid", id="the checkpoint cannot be read"),
        pytest.param(Books((), (checked(),)), [make_owner()], "uid", id="an init container is in the checkpoint only"),
        pytest.param(Books((listed(),), (checked("new"),)), [make_owner("old")], None, id="the watch still shows the pod that had the name before"),
        pytest.param(Books((listed(),), (checked("old"), checked("new"))), [make_owner("new")], "new", id="the checkpoint still has the pod that had the ids before"),
        pytest.param(Books((listed(ids=frozenset({"u1"})),), ()), [make_owner()], None, id="a subset is somebody else's"),
        pytest.param(Books((), (checked("a"), checked("b"))), [make_owner("a", "a"), make_owner("b", "b")], None, id="two living pods with the same ids: not guessed"),
        pytest.param(Books((), (checked("a"), checked("b"))), [make_owner("a", "a", phase="Succeeded"), make_owner("b", "b")], "b", id="one of the two has ended"),
        pytest.param(Books(), [make_owner()], None, id="nobody holds them"),
    ],
)  # fmt: skip
def test_who_holds_these_ids(books: Books, pods: list[Pod], want: str | None) -> None:
    found = pair(["u2", "u1"], books, {pod.uid: pod for pod in pods})

    assert (found and found[0].uid) == want


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("[]", id="a list"),
        pytest.param('{"Data":{}}', id="no entries"),
        pytest.param('{"Data":{"PodDeviceEntries":[{"PodUID":"a"}]}}', id="half an entry"),
    ],
)
def test_a_checkpoint_of_unknown_form_is_not_read(text: str) -> None:
    with pytest.raises(UnavailableError, match="unknown form"):
        parse_checkpoint(text)


async def test_a_checkpoint_of_unknown_form_costs_init_containers_only(started: Bench) -> None:
    started.plugin.handover.wait_s = 0.1
    pod = bound(wire_pod("p", 3, init=(8,)), init0=0, app0=0)
    started.api.put_pod(pod)
    await started.kubelet.admit(pod)
    (started.options.kubelet_root / "device-plugins" / "kubelet_internal_checkpoint").write_text("{}")

    with pytest.raises(grpc.aio.AioRpcError, match="its checkpoint, where init containers are, cannot be read"):
        await started.kubelet.run_container(pod, "init0")
    assert (await started.kubelet.run_container(pod, "app0"))["ALIYUN_COM_GPU_MEM_CONTAINER"] == "3"


def test_a_checkpoint_without_pods() -> None:
    assert parse_checkpoint('{"Data":{"PodDeviceEntries":null}}') == ()


async def test_concurrent_lookups_share_a_list_and_never_see_an_older_one(started: Bench) -> None:
    books = KubeletBooks(started.options.kubelet_root)
    before = started.kubelet.lists
    await asyncio.gather(*(books.read() for _ in range(50)))
    assert 1 <= started.kubelet.lists - before <= 2

    late = asyncio.create_task(books.read())
    await asyncio.sleep(0)
    pod = bound(wire_pod("p", 3), app0=0)
    await started.kubelet.admit(pod)
    found = await books.read()
    await late
    assert [entry.name for entry in found.listed] == ["p"]
    await books.close()


async def test_a_kubelet_that_was_asked_too_often_is_asked_again(started: Bench) -> None:
    books = KubeletBooks(started.options.kubelet_root)
    started.kubelet.refuse_lists = 3
    assert (await books.read()).listed == ()

    started.kubelet.refuse_lists = 4
    with pytest.raises(UnavailableError, match="rejected by rate limit"):
        await books.read()
    await books.close()


async def test_a_kubelet_that_is_away_is_an_error_in_words(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match=r"kubelet PodResources: .*kubelet\.sock is not there"):
        await KubeletBooks(tmp_path).read()


CARDS = (make_card(0, 14), make_card(1, 14))


def given(text: str, mem: str = "4", core: str = "", **fields: object) -> Pod:
    return make_pod(mem, core=core, annotations={"cgpu.aliyun.com/allocation": text}, **fields)


def allocation(**cards: tuple[int, int]) -> str:
    return json.dumps(
        {"app0": {uuid.replace("_", "-"): {"mem": mem, "core": core} for uuid, (mem, core) in cards.items()}}
    )


@pytest.mark.parametrize(
    ("pod", "ids", "want"),
    [
        pytest.param(make_pod("4"), 4, "it was not bound by our scheduler", id="no annotation"),
        pytest.param(make_pod(""), 4, "it was not bound by our scheduler", id="asks for nothing"),
        pytest.param(given("{"), 4, "no JSON", id="no JSON"),
        pytest.param(given("{}"), 4, "has no card for container app0", id="the container is missing"),
        pytest.param(given(allocation(GPU_0=(9, 0))), 4, "says 9", id="more than the limits say"),
        pytest.param(given(allocation(GPU_0=(3, 0))), 4, "says 3", id="less than the limits say"),
        pytest.param(given(allocation(GPU_0=(4, 0))), 3, "gave 3 ids", id="the kubelet gave fewer ids"),
        pytest.param(given(allocation(GPU_0=(2, 0), GPU_1=(2, 0))), 4, "on each of 1 cards", id="spread over two cards unasked"),
        pytest.param(given(allocation(GPU_0=(1, 0), GPU_1=(3, 0)), gpu_count="2"), 4, "should have 2 GiB", id="uneven halves"),
        pytest.param(given(allocation(GPU_0=(4, 50)), core="30"), 4, "and 30 percent", id="more compute than asked"),
        pytest.param(given(allocation(GPU_9=(4, 0))), 4, "GPU-9 is not on this node", id="a card that is not here"),
    ],
)  # fmt: skip
def test_an_annotation_that_does_not_match_is_refused(pod: Pod, ids: int, want: str) -> None:
    with pytest.raises((PlacementError, InputError), match=want):
        grant_of(pod, "app0", [f"u{i}" for i in range(ids)], CARDS, (), mode=Mode.SHARE)


def test_a_resized_container_gets_its_new_size_at_every_restart() -> None:
    pod = make_pod(
        "4",
        annotations={
            "cgpu.aliyun.com/allocation": allocation(GPU_0=(4, 0)),
            "cgpu.aliyun.com/resized": '{"app0":{"mem":8}}',
        },
    )

    grant = grant_of(pod, "app0", ["u0", "u1", "u2", "u3"], CARDS, (), mode=Mode.CGPU)

    assert grant.shares == {"GPU-0": Share(8)}


def test_a_priority_class_of_the_list_makes_a_high_priority_instance() -> None:
    def high(pod: Pod) -> bool:
        return grant_of(
            pod, "app0", ["u0", "u1", "u2", "u3"], CARDS, (), mode=Mode.CGPU, high_priority_classes=["gold"]
        ).high_prio

    assert high(given(allocation(GPU_0=(4, 0)), priority_class="gold"))
    assert not high(given(allocation(GPU_0=(4, 0)), priority_class="silver"))
    assert not high(given(allocation(GPU_0=(4, 0))))


def test_a_broken_annotation_counts_as_arrived_so_that_its_text_is_shown() -> None:
    assert has_allocation(given("{"), CARDS)
    assert not has_allocation(make_pod("4"), CARDS)


@pytest.mark.parametrize(
    ("label", "current", "holding", "want"),
    [
        pytest.param("cgpu", None, {}, Mode.CGPU, id="at start the label decides"),
        pytest.param("cgpu", None, {"a": Mode.SHARE}, Mode.SHARE, id="at start shares of another mode keep theirs"),
        pytest.param("cgpu", Mode.SHARE, {}, Mode.CGPU, id="nobody holds: it changes"),
        pytest.param("cgpu", Mode.SHARE, {"a": Mode.SHARE}, Mode.SHARE, id="somebody holds: it stays"),
        pytest.param("share", Mode.SHARE, {"a": Mode.SHARE}, Mode.SHARE, id="nothing changes"),
        pytest.param("nonsense", None, {}, Mode.DEFAULT, id="no mode at start"),
        pytest.param("nonsense", Mode.CGPU, {}, Mode.CGPU, id="no mode later"),
    ],
)
def test_the_mode_of_a_node(label: str, current: Mode | None, holding: dict[str, Mode], want: Mode) -> None:
    mode, refusal = choose_mode({"ack.node.gpu.schedule": label}, Mode.DEFAULT, current, holding)

    assert mode is want
    assert bool(refusal) is (mode.value != label)


@pytest.mark.parametrize(
    ("version", "assume", "want"),
    [
        pytest.param("containerd://2.4.2", False, "", id="containerd 2"),
        pytest.param("containerd://v2.0.0-rc.1", False, "", id="a version with a v"),
        pytest.param("cri-o://1.36.0", False, "", id="CRI-O"),
        pytest.param("containerd://1.7.30", True, "", id="containerd 1.7, switched on by the administrator"),
        pytest.param("containerd://1.7.30", False, "--assume-cdi", id="containerd 1.7"),
        pytest.param("containerd://1.6.20", True, "containerd 2.0 or CRI-O 1.23 is needed", id="containerd 1.6 cannot, whatever is assumed"),
        pytest.param("docker://29.1.0", False, "--assume-cdi", id="another runtime"),
        pytest.param("", False, "not reported", id="none reported"),
    ],
)  # fmt: skip
def test_whether_a_runtime_applies_cdi(version: str, assume: bool, want: str) -> None:
    found = runtime_problem(version, assume)

    assert want in found
    assert bool(want) is bool(found)


async def test_the_web_answers(started: Bench) -> None:
    await started.run(bound(wire_pod("p", 6), app0=1), "app0")
    site = next(iter(started.plugin.runner.sites))
    base = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"  # type: ignore[union-attr]
    await until(lambda: started.plugin.inventory.problem == "")
    async with aiohttp.ClientSession() as session:

        async def get(path: str) -> tuple[int, str]:
            async with session.get(base + path) as answer:
                return answer.status, await answer.text()

        assert await get("/healthz") == (200, "ok\n")
        usage = json.loads((await get("/usage"))[1])
        _, metrics = await get("/metrics")
        started.api.label(schedule="cgpu")
        started.kubelet.remove(next(iter(started.kubelet.pods.values())))
        started.api.delete_pod("p")
        await until(lambda: started.plugin.inventory.problem)
        status, text = await get("/healthz")

    assert [(row["gpu"], row["healthy"], row["allocatedBytes"], row["usedBytes"]) for row in usage["gpus"]] == [
        (0, True, 0, None),
        (1, True, 6 << 30, None),
    ]
    [row] = usage["instances"]
    assert (row["namespace"], row["pod"], row["container"], row["limitBytes"]) == ("default", "p", "app0", 6475 << 20)
    assert 'cgpu_gpu_memory_allocated_bytes{gpu="1",node="node-a",uuid="' in metrics
    assert 'container="app0",gpu="1",namespace="default",node="node-a",pod="p"' in metrics
    assert metrics.rstrip().endswith("# EOF")
    assert (status, "kernel module cgpu_km" in text) == (503, True)


def test_the_kernels_numbers_win_over_the_books() -> None:
    grant = Grant("h", "0a1b2c3d4e5f", ("u0",), "uid", "ns", "p", "c", Mode.CGPU, {"GPU-0": Share(4)})
    kernel = Instance("0a1b2c3d4e5f", 0, 1, 5 << 30, 7, 3, 0, 100, 2, (1, 1), (1, 2), (1, 3))

    [row] = instance_rows([grant], CARDS, [kernel], {("0a1b2c3d4e5f", 0): 0.25})

    assert (row.limit_bytes, row.used_bytes, row.weight, row.oom, row.utilization) == (5 << 30, 7, 3, 2, 0.25)
    assert [gpu.used_bytes for gpu in gpu_rows(CARDS, (), [row])] == [7, None]


def test_use_is_told_by_container_of_pods_with_the_same_name_too() -> None:
    def grant(number: int, namespace: str, container: str) -> Grant:
        instance = f"{number:012x}"
        return Grant(
            instance,
            instance,
            (f"u{number}",),
            f"uid-{namespace}",
            namespace,
            "p",
            container,
            Mode.CGPU,
            {"GPU-0": Share(1)},
        )

    grants = [grant(1, "blue", "a"), grant(2, "blue", "b"), grant(3, "red", "a")]
    kernel = [
        Instance(g.instance, 0, n, 1 << 30, 100 * n, 1, 0, 0, n, (1, 1), (1, 2), (1, 3)) for n, g in enumerate(grants)
    ]

    rows = instance_rows(grants, CARDS, kernel)

    assert {(row.namespace, row.pod, row.container): (row.used_bytes, row.oom) for row in rows} == {
        ("blue", "p", "a"): (0, 0),
        ("blue", "p", "b"): (100, 1),
        ("red", "p", "a"): (200, 2),
    }


async def test_ids_that_nobody_holds_and_preferences_that_nobody_has(started: Bench) -> None:
    folder = started.options.kubelet_root / "device-plugins"
    async with grpc.aio.insecure_channel(f"unix://{folder}/cgpu-gpu-mem.sock") as channel:
        stub = dp_grpc.DevicePluginStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.GetPreferredAllocation(dp.PreferredAllocationRequest())
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
        started.plugin.handover.wait_s = 0.1
        with pytest.raises(grpc.aio.AioRpcError, match="no container on record that holds exactly these 1 ids"):
            await stub.PreStartContainer(dp.PreStartContainerRequest(devices_ids=["u5"]))


async def test_a_plugin_without_a_node_name_does_not_start() -> None:
    with pytest.raises(SettingError, match="--node is missing"):
        await serve(Options())


def test_an_unknown_flag_ends_with_status_2(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["cgpu-device-plugin", "--simulat", "x"])

    with pytest.raises(SystemExit) as caught:
        main()

    assert caught.value.code == 2
    assert "did you mean --simulate?" in capsys.readouterr().err


def test_a_busy_ratio_covers_a_second_at_least_however_often_one_looks() -> None:
    meter, key = BusyMeter(), ("0a1b2c3d4e5f", 0)

    def look(now: float, busy_ms: int) -> float | None:
        row = Instance("0a1b2c3d4e5f", 0, 1, 1, 0, 1, 0, busy_ms * 1_000_000, 0, (1, 1), (1, 2), (1, 3))
        return meter.ratios([row], now).get(key)

    assert [look(0, 0), look(0.5, 400)] == [None, None]
    assert [look(1, 500), look(1.5, 900), look(2, 1500)] == [0.5, 0.6, 1.0]
    assert meter.ratios([], 3) == {}


def test_memory_that_others_than_pods_hold_is_told() -> None:
    row = Instance("dddddddddddd", 0, 1, 5 << 30, 0, 1, 0, 0, 0, (1, 1), (1, 2), (1, 3))

    assert [gpu.outside_bytes for gpu in gpu_rows(CARDS, (), [], [row])] == [5 << 30, 0]
    assert [gpu.outside_bytes for gpu in gpu_rows(CARDS, (), [])] == [None, None]


def test_memory_that_nobody_booked_is_told_as_the_driver_counts_it() -> None:
    gpus = gpu_rows(CARDS, (), [], driver_used={"GPU-0": 10 << 30})
    families = UsageCollector("n", lambda: (gpus, [])).collect()
    told = {family.name: [sample.value for sample in family.samples] for family in families}

    assert told["cgpu_gpu_memory_allocated_bytes"] == [0, 0]
    assert told["cgpu_gpu_memory_driver_used_bytes"] == [10 << 30]
