# SPDX-License-Identifier: Apache-2.0
"""What variables ask for: the table of the documentation, and one sentence for each mistake."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgpu.core.errors import InputError
from cgpu.core.names import ENV_CONTAINER, ENV_DEV, ENV_DISABLE, ENV_HIGH_PRIO, ENV_IDX, ENV_POD, ENV_WEIGHT
from cgpu.runtime.request import HostGpu, is_off, request_of
from tests.runtime.documents import A10, T4


def env(container: str | None = None, dev: str | None = "23", **more: str) -> dict[str, str]:
    """Variables of a container; those that are None are unset."""
    pairs = {ENV_CONTAINER: container, ENV_DEV: dev, **more}
    return {key: value for key, value in pairs.items() if value is not None}


@pytest.mark.parametrize(
    ("container", "dev", "gpus", "mibs"),
    [
        pytest.param("6", "15", T4, [6043], id="6 of 15 on a T4"),
        pytest.param("8", "15", T4, [8058], id="8 of 15 on a T4"),
        pytest.param("3,4,5,6", "23", A10, [3003, 4004, 5006, 6007], id="one number a card"),
        pytest.param("3", "23", A10, [3003, 3003, 3003, 3003], id="one number for all cards"),
        pytest.param("3,1", "23", A10, [3003, 1001, 1001, 1001], id="the last number repeats"),
        pytest.param("23", "23", A10[:1], [23028], id="a whole card"),
        pytest.param(" 3 , 1 ", " 23 ", A10[:2], [3003, 1001], id="blanks do not matter"),
    ],
)
def test_the_documentations_shares(container: str, dev: str, gpus: tuple[HostGpu, ...], mibs: list[int]) -> None:
    request = request_of(env(container, dev), gpus)

    assert request
    assert [part.mem for part in request.slices] == [mib << 20 for mib in mibs]
    assert [part.gpu for part in request.slices] == list(gpus)
    assert (request.weight, request.highprio) == (None, False)


@pytest.mark.parametrize(
    "variables",
    [
        pytest.param({}, id="nothing is set"),
        pytest.param(env(), id="only the denominator"),
        pytest.param(env(""), id="empty is unset"),
        pytest.param(env("0"), id="zero"),
        pytest.param(env("1,0,0"), id="a list with a zero"),
        pytest.param(env("3", **{ENV_DISABLE: "true"}), id="CGPU_DISABLE=true"),
        pytest.param(env("3", **{ENV_DISABLE: "1"}), id="CGPU_DISABLE=1"),
    ],
)
def test_cgpu_is_off(variables: dict[str, str]) -> None:
    assert is_off(variables)
    assert request_of(variables, A10[:3]) is None


@pytest.mark.parametrize(
    ("variables", "weight", "highprio"),
    [
        pytest.param({ENV_WEIGHT: "4"}, 4, False, id="a weight"),
        pytest.param({ENV_WEIGHT: ""}, None, False, id="an empty weight"),
        pytest.param({ENV_HIGH_PRIO: "1"}, None, True, id="high priority"),
        pytest.param({ENV_HIGH_PRIO: "0", ENV_IDX: "0,1", ENV_POD: "6"}, None, False, id="variables for compatibility"),
    ],
)
def test_weight_and_priority(variables: dict[str, str], weight: int | None, highprio: bool) -> None:
    request = request_of(env("3", **variables), A10)

    assert request
    assert (request.weight, request.highprio) == (weight, highprio)


@pytest.mark.parametrize(
    ("variables", "gpus", "parts"),
    [
        pytest.param(env("six"), T4, (ENV_CONTAINER, "six", "whole number"), id="letters"),
        pytest.param(env("-1"), T4, (ENV_CONTAINER, "-1", "whole number"), id="negative"),
        pytest.param(env("1.5"), T4, (ENV_CONTAINER, "1.5", "whole number"), id="a fraction"),
        pytest.param(env("1,,2"), A10, (ENV_CONTAINER, "1,,2", "whole number"), id="a hole in the list"),
        pytest.param(env("3,1"), T4, (ENV_CONTAINER, "3,1", "2 entries for 1 GPUs"), id="more entries than cards"),
        pytest.param(env("24"), A10, (ENV_CONTAINER, "24", f"{ENV_DEV}=23"), id="more than the card"),
        pytest.param(env("3", None), T4, (ENV_CONTAINER, "3", f"without {ENV_DEV}"), id="no denominator"),
        pytest.param(env("3", "x"), T4, (ENV_DEV, "x", "whole number"), id="a denominator of letters"),
        pytest.param(env("3", "23,23"), T4, (ENV_DEV, "23,23", "2 entries"), id="two denominators for one card"),
        pytest.param(env("3", "0"), T4, (ENV_CONTAINER, "3", f"{ENV_DEV}=0"), id="a denominator of zero"),
        pytest.param(env("1", "99999"), T4, (ENV_CONTAINER, "99999", "less than 1 MiB"), id="a share of nothing"),
        pytest.param(env("3", **{ENV_WEIGHT: "0"}), T4, (ENV_WEIGHT, "0", "from 1 to 20"), id="weight 0"),
        pytest.param(env("3", **{ENV_WEIGHT: "21"}), T4, (ENV_WEIGHT, "21", "from 1 to 20"), id="weight 21"),
        pytest.param(env("3", **{ENV_WEIGHT: "much"}), T4, (ENV_WEIGHT, "much", "from 1 to 20"), id="weight of letters"),
        pytest.param(env("3", **{ENV_WEIGHT: "1.5"}), T4, (ENV_WEIGHT, "1.5", "from 1 to 20"), id="a fraction of a weight"),
        pytest.param(env("3", **{ENV_WEIGHT: "2,3"}), T4, (ENV_WEIGHT, "2,3", "from 1 to 20"), id="two weights"),
        pytest.param(env("3", "-15"), T4, (ENV_DEV, "-15", "whole number"), id="a negative denominator"),
        pytest.param(env("3", "15,"), A10, (ENV_DEV, "15,", "whole number"), id="a hole in the denominators"),
        pytest.param(env("1٣"), T4, (ENV_CONTAINER, "1٣", "whole number"), id="digits of another script"),
        pytest.param(env("9" * 500), T4, (ENV_CONTAINER, "999"), id="more digits than any card has"),
        pytest.param(env("3", **{ENV_HIGH_PRIO: "2"}), T4, (ENV_HIGH_PRIO, "2", "1 or true"), id="priority 2"),
        pytest.param(env("3", **{ENV_IDX: "0,,1"}), T4, (ENV_IDX, "0,,1", "whole number"), id="a hole in the indices"),
        pytest.param(env("3", **{ENV_POD: "6 GiB"}), T4, (ENV_POD, "6 GiB", "whole number"), id="a pod's total with a unit"),
        pytest.param(env("3", **{ENV_HIGH_PRIO: "yes"}), T4, (ENV_HIGH_PRIO, "yes", "1 or true"), id="priority yes"),
        pytest.param(env("3", **{ENV_DISABLE: "perhaps"}), T4, (ENV_DISABLE, "perhaps", "1 or true"), id="disable perhaps"),
        pytest.param(env("3", **{ENV_IDX: "a"}), T4, (ENV_IDX, "a", "whole number"), id="an index of letters"),
        pytest.param(env("3", **{ENV_POD: "-6"}), T4, (ENV_POD, "-6", "whole number"), id="a negative pod"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence(
    variables: dict[str, str], gpus: tuple[HostGpu, ...], parts: tuple[str, ...]
) -> None:
    with pytest.raises(InputError) as raised:
        request_of(variables, gpus)

    text = str(raised.value)
    assert [part for part in parts if part not in text] == []
    assert "\n" not in text


@given(st.text(max_size=12), st.text(max_size=12), st.integers(1, 4))
def test_any_text_is_off_or_a_share_within_the_card_or_a_sentence(container: str, dev: str, count: int) -> None:
    variables = env(container, dev)
    try:
        request = request_of(variables, A10[:count])
    except InputError:
        return
    assert (request is None) == is_off(variables)
    if request:
        assert len(request.slices) == count
        assert all(1 << 20 <= part.mem <= part.gpu.total_mib << 20 for part in request.slices)
