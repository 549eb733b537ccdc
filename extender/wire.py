# SPDX-License-Identifier: Apache-2.0
"""The scheduler's extender messages, pure: bytes in, values out, and back.

Keys are Go field names (k8s.io/kube-scheduler/extender/v1 has no JSON tags): written exactly, read in any case,
as Go's decoder does. Decoding raises WireError with the value, the rule and the remedy.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import msgspec

from cgpu.core.errors import InputError, UnavailableError
from cgpu.core.model import Pod
from cgpu.kube.objects import decode_pod

S = TypeVar("S", bound=msgspec.Struct)


class WireError(InputError):
    """A request that cannot be understood."""


class _Args(msgspec.Struct, rename="pascal"):
    pod: msgspec.Raw = msgspec.Raw()
    nodes: msgspec.Raw = msgspec.Raw()
    node_names: list[str] | None = None


class _Binding(msgspec.Struct):
    pod_name: str = msgspec.field(default="", name="PodName")
    pod_namespace: str = msgspec.field(default="", name="PodNamespace")
    pod_uid: str = msgspec.field(default="", name="PodUID")
    node: str = msgspec.field(default="", name="Node")


class _MetaPod(msgspec.Struct):
    uid: str = msgspec.field(default="", name="UID")


class _MetaVictims(msgspec.Struct):
    pods: list[_MetaPod] | None = msgspec.field(default=None, name="Pods")
    violations: int = msgspec.field(default=0, name="NumPDBViolations")


class _Preemption(msgspec.Struct):
    pod: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="Pod")
    full: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="NodeNameToVictims")
    meta: dict[str, _MetaVictims | None] | None = msgspec.field(default=None, name="NodeNameToMetaVictims")


@dataclass(frozen=True, slots=True)
class NodesRequest:
    """filter and prioritize: the pod and the nodes in question."""

    pod: Pod
    node_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BindRequest:
    """bind: who goes where."""

    namespace: str
    name: str
    uid: str
    node: str


@dataclass(frozen=True, slots=True)
class Victims:
    """Pods of one node (by UID) that would be evicted, and how many of them a PodDisruptionBudget protects."""

    uids: tuple[str, ...]
    violations: int = 0


@dataclass(frozen=True, slots=True)
class PreemptRequest:
    """preempt: the pod, and the victims that kube-scheduler proposes on each node."""

    pod: Pod
    victims: Mapping[str, Victims]


@dataclass(frozen=True, slots=True)
class FilterAnswer:
    """Nodes that take the pod; for the others a reason, for good or for the moment."""

    passed: Sequence[str] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    never: Mapping[str, str] = field(default_factory=dict)
    error: str = ""


def decode_nodes_request(raw: bytes) -> NodesRequest:
    """Body of filter or prioritize."""
    args = _decode(_ARGS, raw, ("Pod", "Nodes", "NodeNames"))
    if args.node_names is None:
        if _given(args.nodes):
            raise WireError("Nodes without NodeNames: set nodeCacheCapable: true for this extender")
        raise WireError("NodeNames is missing: name the nodes in question")
    return NodesRequest(_pod(args.pod), tuple(args.node_names))


def decode_bind_request(raw: bytes) -> BindRequest:
    """Body of bind."""
    args = _decode(_BINDING, raw, ("PodName", "PodNamespace", "PodUID", "Node"))
    for name, value in (
        ("PodName", args.pod_name),
        ("PodNamespace", args.pod_namespace),
        ("PodUID", args.pod_uid),
        ("Node", args.node),
    ):
        if not value:
            raise WireError(f"{name} is missing: a bind names pod, namespace, UID and node")
    return BindRequest(args.pod_namespace, args.pod_name, args.pod_uid, args.node)


def decode_preempt_request(raw: bytes) -> PreemptRequest:
    """Body of preempt; with nodeCacheCapable only UIDs of victims come."""
    args = _decode(_PREEMPTION, raw, ("Pod", "NodeNameToVictims", "NodeNameToMetaVictims"))
    if args.meta is None:
        if _given(args.full):
            raise WireError("NodeNameToVictims without NodeNameToMetaVictims: set nodeCacheCapable: true")
        raise WireError("NodeNameToMetaVictims is missing: name the nodes and their victims")
    victims = {
        node: Victims(tuple(pod.uid for pod in (meta.pods or ())), meta.violations) if meta else Victims(())
        for node, meta in args.meta.items()
    }
    return PreemptRequest(_pod(args.pod), victims)


def encode_filter(answer: FilterAnswer) -> bytes:
    """ExtenderFilterResult."""
    return _encode(
        {
            "Nodes": None,
            "NodeNames": list(answer.passed),
            "FailedNodes": answer.failed,
            "FailedAndUnresolvableNodes": answer.never,
            "Error": answer.error,
        }
    )


def encode_scores(scores: Mapping[str, int]) -> bytes:
    """HostPriorityList: a bare list."""
    return _encode([{"Host": name, "Score": score} for name, score in scores.items()])


def encode_error(text: str) -> bytes:
    """ExtenderBindingResult, and what every verb answers to a request that it cannot read; "" = done."""
    return _encode({"Error": text})


def encode_preempt(victims: Mapping[str, Victims]) -> bytes:
    """ExtenderPreemptionResult."""
    return _encode(
        {
            "NodeNameToMetaVictims": {
                node: {"Pods": [{"UID": uid} for uid in chosen.uids], "NumPDBViolations": chosen.violations}
                for node, chosen in victims.items()
            }
        }
    )


_ARGS: Final = msgspec.json.Decoder(_Args)
_BINDING: Final = msgspec.json.Decoder(_Binding)
_PREEMPTION: Final = msgspec.json.Decoder(_Preemption)
_encode: Final[Callable[[Any], bytes]] = msgspec.json.Encoder().encode
_INNER: Final = ("Pods", "NumPDBViolations", "UID")


def _decode(decoder: msgspec.json.Decoder[S], raw: bytes, keys: Sequence[str]) -> S:
    try:
        args = decoder.decode(raw)
        if any(getattr(args, name) for name in args.__struct_fields__[1:]):
            return args
        # nothing but the first key was found: written in another case, or really missing
        return decoder.decode(msgspec.json.encode(_recased(json.loads(raw), {key.lower(): key for key in keys})))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise WireError(
            f"the request body is not what kube-scheduler sends ({error}): {_excerpt(raw)};"
            f" expected a JSON object with {', '.join(keys)}"
        ) from error


def _recased(value: Any, keys: Mapping[str, str]) -> Any:
    """The object with the known keys in Go's case, three levels deep at most; the pod is left as it is."""
    if not isinstance(value, dict):
        return value
    found = {keys.get(key.lower(), key): inner for key, inner in value.items()}
    victims = found.get("NodeNameToMetaVictims")
    if isinstance(victims, dict):
        inner = {key.lower(): key for key in _INNER}
        found["NodeNameToMetaVictims"] = {node: _recased_victims(one, inner) for node, one in victims.items()}
    return found


def _recased_victims(victims: Any, keys: Mapping[str, str]) -> Any:
    found = _recased(victims, keys)
    if isinstance(found, dict) and isinstance(found.get("Pods"), list):
        found["Pods"] = [_recased(pod, keys) for pod in found["Pods"]]
    return found


def _given(raw: msgspec.Raw) -> bool:
    return bytes(raw) not in (b"", b"null")


def _pod(raw: msgspec.Raw) -> Pod:
    if not _given(raw):
        raise WireError("Pod is missing: send the pod object")
    try:
        pod = decode_pod(raw)
    except UnavailableError as error:
        raise WireError(f"Pod is no v1.Pod: {error.__cause__}: {_excerpt(bytes(raw))}") from error
    if not pod.uid or not pod.name:
        raise WireError(f"Pod has no metadata.uid or metadata.name: {_excerpt(bytes(raw))}")
    return pod


def _excerpt(raw: bytes) -> str:
    text = raw[:120].decode(errors="replace")
    return repr(text + "…" if len(raw) > 120 else text) if raw else "it is empty"
