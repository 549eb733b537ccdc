# SPDX-License-Identifier: Apache-2.0
import pytest

from cgpu.core.errors import ClaimError, LabelError
from cgpu.core.model import Ask, Claim, Container, ContainerKind, Pod
from cgpu.core.names import Mode, Placement
from cgpu.core.pods import asks_for_gpu, claim_of, holds, is_ignored, largest_phase, mode_of, placement_of
from tests.builders import make_pod

APP, SIDECAR, INIT = ContainerKind.APP, ContainerKind.SIDECAR, ContainerKind.INIT


def test_a_pod_without_our_resources_asks_for_nothing() -> None:
    pod = Pod("u", "ns", "n", (Container("c"),))

    assert claim_of(pod) is None
    assert not asks_for_gpu(pod)


def test_several_containers_keep_their_order_and_kind() -> None:
    pod = Pod(
        "u",
        "ns",
        "n",
        (Container("i", INIT, "8"), Container("s", SIDECAR, "2"), Container("c", APP, "3"), Container("web")),
    )

    assert Claim((Ask("i", INIT, 8), Ask("s", SIDECAR, 2), Ask("c", APP, 3))) == claim_of(pod)


def test_gpu_count_divides_each_container() -> None:
    claim = claim_of(make_pod("8", gpu_count="2"))

    assert claim is not None
    assert [claim.per_card(ask).mem for ask in claim.asks] == [4]


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(make_pod("7", gpu_count="2"), "7 not divisible by 2", id="gpu-count that does not divide"),
        pytest.param(make_pod("8", gpu_count="0"), "from 1 to", id="no cards"),
        pytest.param(make_pod("8", gpu_count="two"), "'two'", id="gpu-count in letters"),
        pytest.param(make_pod("8", gpu_count="99999"), "from 1 to", id="more cards than a node has"),
        pytest.param(make_pod("8", core="4"), "4 is not allowed.*multiple of 5", id="under the grid"),
        pytest.param(make_pod("8", core="33"), "33 is not allowed", id="off the grid"),
        pytest.param(make_pod("8", core="105"), "105 is not allowed", id="more than a card"),
        pytest.param(make_pod("0", core="50"), "ask for both", id="compute without memory"),
        pytest.param(make_pod("8", core="50", gpu_count="2"), "exclude each other", id="percent on two cards"),
        pytest.param(make_pod("6GB"), "'6GB' is no Kubernetes quantity", id="no quantity"),
    ],
)
def test_what_can_never_be_given_is_refused_with_its_value(pod: Pod, want: str) -> None:
    with pytest.raises(ClaimError, match=want):
        claim_of(pod)


def test_bytes_by_mistake_are_a_claim_that_explain_answers() -> None:
    claim = claim_of(make_pod("10G"))

    assert claim is not None
    assert claim.asks[0].mem == 10_000_000_000


@pytest.mark.parametrize(("core", "weight"), [("5", 1), ("50", 10), ("100", 20)])
def test_percent_on_the_grid(core: str, weight: int) -> None:
    claim = claim_of(make_pod("1", core=core))

    assert claim is not None
    assert weight == claim.asks[0].core // 5


@pytest.mark.parametrize(
    ("steps", "want"),
    [
        pytest.param([(INIT, 8), (APP, 3), (APP, 2)], 8, id="a large init container decides"),
        pytest.param([(INIT, 3), (APP, 3)], 3, id="init and app follow each other"),
        pytest.param([(INIT, 8), (SIDECAR, 2), (APP, 3)], 8, id="a sidecar after the init container"),
        pytest.param([(SIDECAR, 2), (INIT, 8), (APP, 3)], 10, id="a sidecar before it adds"),
        pytest.param([(SIDECAR, 2), (APP, 3), (APP, 4)], 9, id="what runs together adds up"),
        pytest.param([], 0, id="nothing"),
    ],
)
def test_the_largest_phase_is_held(steps: list[tuple[ContainerKind, int]], want: int) -> None:
    assert want == largest_phase(steps)


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        ({"phase": "Running"}, True),
        ({"phase": "Running", "deleting": True}, True),
        ({"phase": "Running", "deleting": True, "ended": True}, False),
        ({"phase": "Succeeded"}, False),
        ({"phase": "Failed"}, False),
        ({"phase": "Unknown"}, True),
    ],
)
def test_a_share_is_held_until_the_containers_have_ended(fields: dict[str, object], want: bool) -> None:
    assert want == holds(make_pod("1", **fields))


@pytest.mark.parametrize(
    ("labels", "want"),
    [
        ({}, Mode.DEFAULT),
        ({"ack.node.gpu.schedule": "core_mem", "gpushare": "true"}, Mode.CORE_MEM),
        ({"gpushare": "true"}, Mode.CGPU),
        ({"cgpu": "true"}, Mode.CGPU),
        ({"cgpu": "false"}, Mode.DEFAULT),
        ({"cgpu": "true", "cgpu.disable.isolation": "true"}, Mode.SHARE),
        ({"ack.node.gpu.schedule": "cgpu", "cgpu.disable.isolation": "true"}, Mode.CGPU),
    ],
)
def test_modes(labels: dict[str, str], want: Mode) -> None:
    assert want is mode_of(labels)


def test_no_label_means_the_default_that_is_set() -> None:
    assert mode_of({}, Mode.SHARE) is Mode.SHARE


def test_values_outside_the_tables_are_refused() -> None:
    with pytest.raises(LabelError, match="ack.node.gpu.schedule='fast'.*cgpu, core_mem, share, default"):
        mode_of({"ack.node.gpu.schedule": "fast"})
    with pytest.raises(LabelError, match="ack.node.gpu.placement='tight'"):
        placement_of({"ack.node.gpu.placement": "tight"})


def test_placements() -> None:
    assert placement_of({}) is Placement.BINPACK
    assert placement_of({"ack.node.gpu.placement": "spread"}) is Placement.SPREAD


def test_opting_out_of_admission() -> None:
    assert is_ignored(make_pod("1", labels={"cgpu.aliyun.com/ignore": "true"}))
    assert not is_ignored(make_pod("1"))
