# SPDX-License-Identifier: Apache-2.0
"""Extender messages: exact keys out, any case in, and a clear answer to everything else."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.wire import (
    BindRequest,
    FilterAnswer,
    Victims,
    WireError,
    decode_bind_request,
    decode_nodes_request,
    decode_preempt_request,
    encode_error,
    encode_filter,
    encode_preempt,
    encode_scores,
)
from tests.fake_api import make_pod

POD = make_pod("p", 6, uid="u1")


def _raw(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"Pod": POD, "Nodes": None, "NodeNames": ["a", "b"]}, id="as kube-scheduler writes it"),
        pytest.param({"pod": POD, "nodenames": ["a", "b"]}, id="all keys in lower case"),
        pytest.param({"pod": POD, "nodeNames": ["a", "b"], "NODES": None}, id="keys in mixed case"),
        pytest.param({"Pod": POD, "NodeNames": ["a", "b"], "Extra": {"x": 1}}, id="an unknown key is ignored"),
    ],
)
def test_a_nodes_request_is_read(body: Any) -> None:
    request = decode_nodes_request(_raw(body))
    assert (request.pod.uid, request.pod.name, request.node_names) == ("u1", "p", ("a", "b"))


@pytest.mark.parametrize(
    ("body", "want"),
    [
        pytest.param(b"", "it is empty", id="nothing at all"),
        pytest.param(b"{", "not what kube-scheduler sends", id="cut off"),
        pytest.param(b"\xff\xfe\x00", "not what kube-scheduler sends", id="no text"),
        pytest.param(b"[]", "expected a JSON object with Pod, Nodes, NodeNames", id="a list"),
        pytest.param(b'"x"', "expected a JSON object", id="a string"),
        pytest.param(b"null", "expected a JSON object", id="null"),
        pytest.param(b"[" * 100_000, "not what kube-scheduler sends", id="nested without end"),
        pytest.param(_raw({}), "NodeNames is missing", id="an empty object"),
        pytest.param(_raw({"Pod": POD}), "NodeNames is missing", id="no nodes"),
        pytest.param(_raw({"Pod": POD, "Nodes": {"items": []}}), "nodeCacheCapable: true", id="nodes in full"),
        pytest.param(_raw({"NodeNames": ["a"]}), "Pod is missing", id="no pod"),
        pytest.param(_raw({"Pod": None, "NodeNames": ["a"]}), "Pod is missing", id="a null pod"),
        pytest.param(_raw({"Pod": 5, "NodeNames": ["a"]}), "Pod is no v1.Pod", id="a pod that is a number"),
        pytest.param(_raw({"Pod": {}, "NodeNames": ["a"]}), "Pod is no v1.Pod", id="a pod without metadata"),
        pytest.param(
            _raw({"Pod": {"metadata": {"name": "p"}}, "NodeNames": []}), "no metadata.uid", id="a pod without UID"
        ),
        pytest.param(_raw({"Pod": POD, "NodeNames": [1]}), r"\$.NodeNames", id="a node name that is a number"),
        pytest.param(_raw({"Pod": POD, "NodeNames": "a"}), r"\$.NodeNames", id="node names that are a string"),
    ],
)
def test_a_nodes_request_that_cannot_be_read_says_why(body: bytes, want: str) -> None:
    with pytest.raises(WireError, match=want):
        decode_nodes_request(body)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            {"PodName": "p", "PodNamespace": "d", "PodUID": "u", "Node": "n"}, id="as kube-scheduler writes it"
        ),
        pytest.param({"podname": "p", "podnamespace": "d", "poduid": "u", "node": "n"}, id="in lower case"),
    ],
)
def test_a_bind_request_is_read(body: Any) -> None:
    assert decode_bind_request(_raw(body)) == BindRequest("d", "p", "u", "n")


@pytest.mark.parametrize("missing", ["PodName", "PodNamespace", "PodUID", "Node"])
def test_a_bind_request_names_what_is_missing(missing: str) -> None:
    body = {"PodName": "p", "PodNamespace": "d", "PodUID": "u", "Node": "n"}
    del body[missing]
    with pytest.raises(WireError, match=f"{missing} is missing"):
        decode_bind_request(_raw(body))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            {"Pod": POD, "NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "x"}], "NumPDBViolations": 1}, "b": None}},
            id="as kube-scheduler writes it",
        ),
        pytest.param(
            {"pod": POD, "nodenametometavictims": {"a": {"pods": [{"uid": "x"}], "numpdbviolations": 1}, "b": None}},
            id="in lower case",
        ),
    ],
)
def test_a_preempt_request_is_read(body: Any) -> None:
    request = decode_preempt_request(_raw(body))
    assert request.victims == {"a": Victims(("x",), 1), "b": Victims(())}


@pytest.mark.parametrize(
    ("body", "want"),
    [
        pytest.param({"Pod": POD}, "NodeNameToMetaVictims is missing", id="no victims"),
        pytest.param({"Pod": POD, "NodeNameToVictims": {"a": {}}}, "nodeCacheCapable", id="victims in full"),
        pytest.param({"Pod": POD, "NodeNameToMetaVictims": {"a": {"Pods": 5}}}, "Pods", id="victims of a wrong type"),
    ],
)
def test_a_preempt_request_that_cannot_be_read_says_why(body: Any, want: str) -> None:
    with pytest.raises(WireError, match=want):
        decode_preempt_request(_raw(body))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["Pod", "pod", "NodeNames", "Node", "PodUID", "NodeNameToMetaVictims", "Pods", "metadata"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@given(st.binary(max_size=60) | _JSON.map(lambda value: json.dumps(value).encode()))
def test_whatever_comes_is_read_or_refused(raw: bytes) -> None:
    for decode in (decode_nodes_request, decode_bind_request, decode_preempt_request):
        with contextlib.suppress(WireError):
            decode(raw)


@pytest.mark.parametrize(
    ("raw", "want"),
    [
        pytest.param(
            encode_filter(FilterAnswer(["a"], {"b": "full"}, {"c": "never"})),
            {
                "Nodes": None,
                "NodeNames": ["a"],
                "FailedNodes": {"b": "full"},
                "FailedAndUnresolvableNodes": {"c": "never"},
                "Error": "",
            },
            id="filter",
        ),
        pytest.param(
            encode_scores({"a": 10, "b": 0}), [{"Host": "a", "Score": 10}, {"Host": "b", "Score": 0}], id="prioritize"
        ),
        pytest.param(encode_error(""), {"Error": ""}, id="bind that succeeded"),
        pytest.param(
            encode_preempt({"a": Victims(("x", "y"), 1)}),
            {"NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "x"}, {"UID": "y"}], "NumPDBViolations": 1}}},
            id="preempt",
        ),
    ],
)
def test_answers_have_go_field_names(raw: bytes, want: Any) -> None:
    assert json.loads(raw) == want
