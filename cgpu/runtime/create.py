# SPDX-License-Identifier: Apache-2.0
"""Before a container is created: what its config.json asks for is made, and the document is edited."""

from __future__ import annotations

import errno
import os

from cgpu import light_json as json
from cgpu.core.errors import ContainerError, UnavailableError
from cgpu.core.light import TYPE_CHECKING, NamedTuple
from cgpu.core.variables import ENV_CONTAINER, ENV_VISIBLE_DEVICES, MAX_INSTANCES_DEFAULT
from cgpu.light import Path
from cgpu.procfs import CgpuProc
from cgpu.runtime.arguments import Call, instance_of
from cgpu.runtime.choose import asks_for_gpus, chosen_gpus, env_of, gpu_hooks, is_kubernetes
from cgpu.runtime.config import UNISOLATED, Config
from cgpu.runtime.host import Host, Paths, nvidia_majors, read_host
from cgpu.runtime.instances import Instances, Owner
from cgpu.runtime.libraries import wanted
from cgpu.runtime.request import HostGpu, Request, is_off, request_of
from cgpu.runtime.spec import File, Node, has_driver_files, isolated, may_open_anything, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Final

STAND_IN: Final = "cgpu-gpus-hook"  # what install.sh puts where Docker looks for NVIDIA's hook, when there is none
_COMMON: Final = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
_NOT_LOADED: Final = (
    "the kernel module cgpu_km is not loaded: load it with `cgpu module load`, see /proc/cgpu_km/version"
)


class Tools(NamedTuple):
    """What `prepare` works with. `say`: one line for the log."""

    config: Config
    paths: Paths
    kernel: CgpuProc
    instances: Instances
    say: Callable[[str], None]
    read_host: Callable[[Paths], Host] = read_host


def read_document(bundle: Path) -> dict[str, Any]:
    """A bundle's config.json. Raises UnavailableError."""
    try:
        document: dict[str, Any] = json.loads((bundle / "config.json").read_bytes())
    except (OSError, ValueError) as error:
        raise UnavailableError(f"{bundle}/config.json cannot be read: {error}") from error
    return document


def write_document(bundle: Path, document: Mapping[str, Any]) -> None:
    """Replace a bundle's config.json; it is the old one or the new one, never half of it. Raises UnavailableError."""
    temporary = bundle / ".config.json.cgpu"
    try:
        temporary.write_text(json.dumps(document))
        os.chmod(temporary, (bundle / "config.json").stat().st_mode & 0o7777)  # noqa: PTH101 - as the caller had it
        temporary.replace(bundle / "config.json")
    except OSError as error:
        raise UnavailableError(f"{bundle}/config.json cannot be written: {error.strerror}") from error


def prepare(call: Call, document: Mapping[str, Any], tools: Tools) -> dict[str, Any] | None:
    """The edited document of a container, None when it is to stay as it is; its instance is made then.

    Raises CgpuError with one sentence when the container must not start; nothing is left then.
    """
    if is_kubernetes(document):
        return None  # the device plugin has handed out what it gets; its variables are its author's, not ours to trust
    env = env_of(document)
    off = is_off(env)
    majors = nvidia_majors(tools.paths.proc)
    if not asks_for_gpus(document, majors):
        if not off and not env.get(ENV_VISIBLE_DEVICES, "").strip():
            raise ContainerError(
                f"{ENV_CONTAINER}={env[ENV_CONTAINER][:80]}, but the container has no GPU:"
                f" add --gpus all, or -e {ENV_VISIBLE_DEVICES}=all"
            )
        return None
    if off:
        return _whole(call, document, env, majors, tools)
    return _isolated(call, document, env, majors, tools)


def _isolated(
    call: Call, document: Mapping[str, Any], env: Mapping[str, str], majors: frozenset[int], tools: Tools
) -> dict[str, Any] | None:
    if may_open_anything(document):
        _refuse_privileged(call, env, tools)
        return None
    if tools.kernel.version() is None:
        raise UnavailableError(f"{ENV_CONTAINER}={env[ENV_CONTAINER][:80]}: {_NOT_LOADED}")
    host = tools.read_host(tools.paths)
    gpus = chosen_gpus(document, host.gpus, majors)
    request = request_of(env, gpus, _most(gpus, tools.kernel))
    if request is None:  # the variable's numbers say off; `is_off` and this rule are one
        return None
    id_ = instance_of(call.container)
    try:
        nodes = tools.instances.make(id_, _owner(call), request)
    except UnavailableError as error:
        raise UnavailableError(_refused(request, env, tools.kernel, error)) from error
    tools.say(f"{id_}: {_described(request)}")
    return isolated(document, nodes, _files(call, document, env, host, tools), majors)


def _refused(request: Request, env: Mapping[str, str], kernel: CgpuProc, error: UnavailableError) -> str:
    """What the kernel's refusal means for the one who wrote the variables."""
    if getattr(error.__cause__, "errno", None) != errno.ENOSPC:
        return str(error)
    rows = kernel.instances()
    for part in request.slices:
        given, count = (
            sum(row.mem for row in rows if row.gpu == part.gpu.minor),
            sum(row.gpu == part.gpu.minor for row in rows),
        )
        if given + part.mem > part.gpu.total_mib << 20:
            return (
                f"{ENV_CONTAINER}={env[ENV_CONTAINER]} asks for {part.mem >> 20} MiB of GPU {part.gpu.ordinal}, whose"
                f" {count} instances leave {(part.gpu.total_mib - (given >> 20))} of {part.gpu.total_mib} MiB:"
                " ask for less, or end a container (cgpu-smi lists them)"
            )
    return f"no GPU of the container takes another instance (max_inst in /proc/cgpu_km/N): {error}"


def _refuse_privileged(call: Call, env: Mapping[str, str], tools: Tools) -> None:
    sentence = f"{ENV_CONTAINER}={env[ENV_CONTAINER][:80]}: a privileged container can open every device, so no share can be kept"
    if tools.config.privileged != UNISOLATED:
        raise ContainerError(
            f'{sentence}: drop --privileged, or set privileged = "{UNISOLATED}" in /etc/cgpu/config.toml'
        )
    tools.say(f"{instance_of(call.container)}: {sentence}; it runs unisolated, as config.toml allows")


def _whole(
    call: Call, document: Mapping[str, Any], env: Mapping[str, str], majors: frozenset[int], tools: Tools
) -> dict[str, Any] | None:
    """For a container without cGPU: what NVIDIA's runtime would do, unless it or its hook is there to do it."""
    hooks = gpu_hooks(document)
    if any(Path(hook["path"]).resolve().name != STAND_IN for hook in hooks):
        return None
    linux = document.get("linux") or {}
    if may_open_anything(document) or any(device.get("major") in majors for device in linux.get("devices") or ()):
        return None
    try:
        host = tools.read_host(tools.paths)
        gpus = chosen_gpus(document, host.gpus, majors)
        nodes = [*(_real(f"nvidia{gpu.minor}", tools.paths.dev) for gpu in gpus), *_common(tools.paths.dev)]
    except (UnavailableError, OSError) as error:
        if hooks:
            raise UnavailableError(f"--gpus: {error}") from error
        tools.say(f"{ENV_VISIBLE_DEVICES}={env.get(ENV_VISIBLE_DEVICES, '')} is left alone: {error}")
        return None
    return whole(document, nodes, _files(call, document, env, host, tools))


def _most(gpus: tuple[HostGpu, ...], kernel: CgpuProc) -> int:
    return min((kernel.get_gpu(gpu.minor, "max_inst") for gpu in gpus), default=MAX_INSTANCES_DEFAULT)


def _owner(call: Call) -> Owner:
    """Docker and containerd keep state below a root that they name; without one it is where runc or crun has it.

    A runtime of another name is taken for a script around one of the two, for the one that its name has in it.
    """
    root = Path(call.root or f"/run/{'crun' if 'crun' in Path(call.runtime).name else 'runc'}")
    maker = "docker" if "moby" in call.root else "containerd" if "containerd" in call.root else "oci"
    return Owner(maker, call.container, str(root / call.container), os.getpid())


def _described(request: Request) -> str:
    shares = ", ".join(f"{part.mem >> 20} MiB of GPU {part.gpu.ordinal}" for part in request.slices)
    weight = f", weight {request.weight}" if request.weight is not None else ""
    return shares + weight + (", high priority" if request.highprio else "")


def _files(call: Call, document: Mapping[str, Any], env: Mapping[str, str], host: Host, tools: Tools) -> list[File]:
    if not tools.config.libraries or has_driver_files(document):
        return []
    return wanted(host.files, env, Path(call.bundle) / (document.get("root") or {}).get("path", "rootfs"))


def _real(name: str, dev: Path) -> Node:
    found = (dev / name).stat()
    return Node(str(dev / name), f"/dev/{name}", os.major(found.st_rdev), os.minor(found.st_rdev))


def _common(dev: Path) -> list[Node]:
    return [_real(name, dev) for name in _COMMON if (dev / name).exists()]
