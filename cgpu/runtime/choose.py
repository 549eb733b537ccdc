# SPDX-License-Identifier: Apache-2.0
"""Which GPUs a container has been given, read from its config.json. Pure.

Facts: NVIDIA's container toolkit 1.20 and Docker 29 (their sources). Whoever edited the document before us (the NVIDIA
runtime in CDI mode, Docker or Podman with a CDI name, `--device`) left device nodes in it; Docker's `--gpus` up to 29.1
leaves a prestart hook and NVIDIA_VISIBLE_DEVICES, that of containerd's clients (`ctr`, `nerdctl`) a hook that calls
NVIDIA's tool with the names; images and `-e` bring the variable alone.
"""

from __future__ import annotations

from cgpu.core.errors import ContainerError
from cgpu.core.light import TYPE_CHECKING
from cgpu.core.memory import is_number
from cgpu.core.variables import ENV_CONTAINER, ENV_VISIBLE_DEVICES
from cgpu.runtime.request import HostGpu

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from typing import Any, Final

    Spec = Mapping[str, Any]

HOOK: Final = "nvidia-container-runtime-hook"
_OLD_HOOK: Final = "nvidia-container-toolkit"  # its name before 1.4
_TOOL: Final = "nvidia-container-cli"  # what the hook of containerd's clients calls
_TOOL_DEVICE: Final = "--device="
# Podman speaks CRI-O's language in containers that no kubelet knows; CRI-O's own have many more of these.
_PODMANS: Final = frozenset(
    f"io.kubernetes.cri-o.{name}" for name in ("TTY", "Created", "SandboxID", "ContainerType", "ContainerManager")
)
_MOUNTS: Final = "/var/run/nvidia-container-devices/"
_NODE: Final = "/dev/nvidia"
_QUALIFIED: Final = "nvidia.com/gpu="


def env_of(spec: Spec) -> dict[str, str]:
    """The container's variables; of one that is written twice the last counts."""
    pairs = (entry.partition("=") for entry in (spec.get("process") or {}).get("env") or ())
    return {name: value for name, _, value in pairs}


def is_kubernetes(spec: Spec) -> bool:
    """Whether a kubelet made it: CRI annotations (containerd, CRI-O), or a cgroup below kubepods (dockershim's heirs)."""
    path = (spec.get("linux") or {}).get("cgroupsPath") or ""
    keys = set(spec.get("annotations") or ()) - _PODMANS
    return "kubepods" in path or any(key.startswith("io.kubernetes.") for key in keys)


def gpu_hooks(spec: Spec) -> tuple[Mapping[str, Any], ...]:
    """The hooks, of whatever stage, that would put NVIDIA's real nodes into the container after its creation."""
    stages = (spec.get("hooks") or {}).values()
    return tuple(hook for stage in stages for hook in stage or () if _puts_nodes(hook))


def _puts_nodes(hook: Mapping[str, Any]) -> bool:
    return _program(hook.get("path", "")) in (HOOK, _OLD_HOOK, _TOOL) or _calls_tool(hook)


def _calls_tool(hook: Mapping[str, Any]) -> bool:
    return any(_program(word) == _TOOL for word in hook.get("args") or ())


def _program(path: str) -> str:
    return path.rpartition("/")[2]


def asks_for_gpus(spec: Spec, majors: Collection[int]) -> bool:
    """Whether anything in the document names a GPU, without looking at what cards there are."""
    return bool(_minors(spec, majors) or gpu_hooks(spec) or _named(spec))


def chosen_gpus(spec: Spec, gpus: Sequence[HostGpu], majors: Collection[int]) -> tuple[HostGpu, ...]:
    """The container's GPUs, in the order in which the driver shows them to it: by index.

    `majors`: device majors of the NVIDIA driver. Raises ContainerError for a name that no card has.
    """
    minors = _minors(spec, majors)
    if minors:
        return _by_minor(minors, gpus)
    found = {gpu.ordinal: gpu for name in _named(spec) for gpu in _by_name(name, gpus)}
    return tuple(found[index] for index in sorted(found))


def _minors(spec: Spec, majors: Collection[int]) -> list[int]:
    devices = (spec.get("linux") or {}).get("devices") or ()
    nodes = (device for device in devices if device.get("type") in ("c", "u") and device.get("major") in majors)
    numbers = (device.get("path", "").removeprefix(_NODE) for device in nodes)
    return [int(number) for number in numbers if is_number(number)]


def _by_minor(minors: Sequence[int], gpus: Sequence[HostGpu]) -> tuple[HostGpu, ...]:
    known = {gpu.minor: gpu for gpu in gpus}
    lost = [minor for minor in minors if minor not in known]
    if lost:
        raise ContainerError(f"/dev/nvidia{lost[0]} was given to the container, but the driver lists no such GPU")
    return tuple(sorted({known[minor] for minor in minors}, key=lambda gpu: gpu.ordinal))


def _named(spec: Spec) -> tuple[str, ...]:
    """The names that were asked for: by mounts of NVIDIA's folder of names, by a client's hook, else by the variable."""
    names = tuple(_mounted(spec)) or tuple(_hooked(spec)) or _split(env_of(spec).get(ENV_VISIBLE_DEVICES, ""))
    return () if names in (("none",), ("void",)) else names


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _hooked(spec: Spec) -> Iterator[str]:
    for hook in filter(_calls_tool, gpu_hooks(spec)):
        for word in hook["args"]:
            if word.startswith(_TOOL_DEVICE):
                yield from _split(word[len(_TOOL_DEVICE) :])


def _mounted(spec: Spec) -> Iterator[str]:
    for mount in spec.get("mounts") or ():
        place = mount.get("destination", "")
        if place.startswith(_MOUNTS) and mount.get("source") == "/dev/null":
            yield place[len(_MOUNTS) :].removeprefix("cdi/nvidia.com/gpu/")


def _by_name(name: str, gpus: Sequence[HostGpu]) -> tuple[HostGpu, ...]:
    kind, qualified, device = name.partition(_QUALIFIED)
    plain = (device if qualified and device and "/" not in kind else name).lower()
    if plain == "all":
        return tuple(gpus)
    found = tuple(gpu for gpu in gpus if plain in (str(gpu.ordinal), gpu.uuid.lower()))
    if found:
        return found
    rule = (
        f"MIG devices cannot be shared: name a whole GPU, or leave {ENV_CONTAINER} out"
        if plain.startswith("mig-") or ":" in plain
        else f"must be all, none, void, an index or a UUID; this machine has {_listed(gpus)}"
    )
    raise ContainerError(f"{ENV_VISIBLE_DEVICES}={name[:80]}: {rule}")


def _listed(gpus: Sequence[HostGpu]) -> str:
    return ", ".join(f"{gpu.ordinal} ({gpu.uuid})" for gpu in gpus) or "no GPU"
