# SPDX-License-Identifier: Apache-2.0
"""A container's config.json, edited: NVIDIA's nodes out, its instance's in. Pure; the document given is never changed.

Format: OCI runtime specification 1.2, config-linux.md. A device entry would make the runtime create a genuine NVIDIA
node, so the instance's nodes come as bind mounts, and the device cgroup gets exact rules for their own numbers.
"""

from __future__ import annotations

from cgpu.core.light import TYPE_CHECKING, NamedTuple
from cgpu.runtime.choose import gpu_hooks

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import Any, Final

    from cgpu.runtime.choose import Spec

_ALL: Final = -1
_CHARACTER: Final = (None, "", "a", "c", "u")  # what a rule may call character devices, alone or among all
_BIND: Final = ("bind", "nosuid", "rprivate")  # never nodev: a node could not be opened
_READ_ONLY: Final = ("ro", "bind", "nosuid", "nodev", "rprivate")


class Node(NamedTuple):
    """A device node: where it is on the host, its path in the container, and the numbers that the cgroup sees."""

    source: str
    path: str
    major: int
    minor: int


class File(NamedTuple):
    """A file of the driver's user space for the container."""

    source: str
    path: str


def isolated(spec: Spec, nodes: Sequence[Node], files: Iterable[File], majors: Collection[int]) -> dict[str, Any]:
    """The document with an instance's nodes and the driver's files in place of everything that leads to `majors`."""
    paths = {node.path for node in nodes}
    kept = [mount for mount in spec.get("mounts") or () if mount.get("destination") not in paths]
    mounts = [_mount(node.source, node.path, _BIND) for node in nodes]
    edited = _with_linux(
        without_gpu_hooks(spec),
        [device for device in _linux(spec).get("devices") or () if device.get("major") not in majors],
        _closed([rule for rule in _rules(spec) if not _allows(rule, majors)]) + [_rule(node) for node in nodes],
    )
    return edited | {"mounts": kept + mounts + _file_mounts(files)}


def whole(spec: Spec, nodes: Sequence[Node], files: Iterable[File]) -> dict[str, Any]:
    """The document with the driver's real nodes: for a container that has GPUs while cGPU is off for it."""
    devices = [
        {
            "path": node.path,
            "type": "c",
            "major": node.major,
            "minor": node.minor,
            "fileMode": 0o666,
            "uid": 0,
            "gid": 0,
        }
        for node in nodes
    ]
    edited = _with_linux(
        without_gpu_hooks(spec),
        [*(_linux(spec).get("devices") or ()), *devices],
        _rules(spec) + [_rule(node) for node in nodes],
    )
    return edited | {"mounts": [*(spec.get("mounts") or ()), *_file_mounts(files)]}


def without_gpu_hooks(spec: Spec) -> dict[str, Any]:
    """The document without the hooks that would put NVIDIA's real nodes in."""
    doomed = gpu_hooks(spec)
    if not doomed:
        return dict(spec)
    hooks = {stage: [hook for hook in listed or () if hook not in doomed] for stage, listed in spec["hooks"].items()}
    return dict(spec) | {"hooks": hooks}


def may_open_anything(spec: Spec) -> bool:
    """Whether the device cgroup is open: `--privileged`, or a rule that allows every character device."""
    return any(_opens(rule) and _number(rule, "major") == _ALL for rule in _rules(spec))


def has_driver_files(spec: Spec) -> bool:
    """Whether somebody (NVIDIA's runtime, a CDI name, the user) mounts the driver's libraries already."""
    return any(
        "/libcuda.so" in mount.get("destination", "") or "/libnvidia-ml.so" in mount.get("destination", "")
        for mount in spec.get("mounts") or ()
    )


def _file_mounts(files: Iterable[File]) -> list[dict[str, Any]]:
    return [_mount(file.source, file.path, _READ_ONLY) for file in files]


def _mount(source: str, path: str, options: Sequence[str]) -> dict[str, Any]:
    return {"destination": path, "type": "bind", "source": source, "options": list(options)}


def _linux(spec: Spec) -> Mapping[str, Any]:
    return spec.get("linux") or {}


def _rules(spec: Spec) -> list[Mapping[str, Any]]:
    return list((_linux(spec).get("resources") or {}).get("devices") or ())


def _with_linux(spec: dict[str, Any], devices: list[Any], rules: list[Any]) -> dict[str, Any]:
    linux = dict(_linux(spec))
    resources = dict(linux.get("resources") or {}) | {"devices": rules}
    return spec | {"linux": linux | {"devices": devices, "resources": resources}}


def _rule(node: Node) -> dict[str, Any]:
    return {"allow": True, "type": "c", "major": node.major, "minor": node.minor, "access": "rw"}


def _allows(rule: Mapping[str, Any], majors: Collection[int]) -> bool:
    return bool(rule.get("allow")) and rule.get("type") in _CHARACTER and _number(rule, "major") in majors


def _closed(rules: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Rules that begin by denying everything, as Docker and Podman write them; others may leave that out."""
    first = rules[0] if rules else {}
    denies = first.get("allow") is False and first.get("type") in (None, "", "a") and _number(first, "major") == _ALL
    return rules if denies else [{"allow": False, "access": "rwm"}, *rules]


def _opens(rule: Mapping[str, Any]) -> bool:
    """Whether a rule lets character devices be read or written; making a node alone opens nothing."""
    access = rule.get("access") or "rwm"
    return bool(rule.get("allow")) and rule.get("type") in _CHARACTER and access.strip("m") != ""


def _number(rule: Mapping[str, Any], name: str) -> int:
    value = rule.get(name)
    return _ALL if value is None else int(value)
