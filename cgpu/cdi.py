# SPDX-License-Identifier: Apache-2.0
"""Container Device Interface: spec files that tell a container runtime what a container of ours gets.

A file holds one device, named after the ids that the kubelet handed out (`cgpu.core.devices.cdi_name`). It is written
just before the container is created; containerd 2 and CRI-O read the folder again at every injection. Format: CDI
specification 1.1.0; the version written is the lowest that knows every field in use, so that old runtimes read it.
"""

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cgpu.core.errors import UnavailableError
from cgpu.core.names import CDI_KIND

_PREFIX: Final = CDI_KIND.replace("/", "-") + "-"
# NVIDIA's nodes that belong to no card; those that exist on the node go to a container that may use the whole driver.
COMMON_NODES: Final = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")


@dataclass(frozen=True, slots=True)
class DeviceNode:
    """A device entry. `host_path` "" = the same path on the host; `numbers` set = an inert entry that only carries rules."""

    path: str
    host_path: str = ""
    numbers: tuple[int, int] | None = None
    permissions: str = "rw"


@dataclass(frozen=True, slots=True)
class BindMount:
    """A bind mount. Device nodes need the default options: a mount with `nodev` could not be opened."""

    host_path: str
    container_path: str
    options: tuple[str, ...] = ("bind", "nosuid")


@dataclass(frozen=True, slots=True)
class Edits:
    """What a container gets; `env` comes last and wins over the pod's own."""

    env: Mapping[str, str]
    nodes: tuple[DeviceNode, ...] = ()
    mounts: tuple[BindMount, ...] = ()


def env_only(env: Mapping[str, str]) -> Edits:
    """For simulated cards: there is nothing to open."""
    return Edits(env)


def real_nodes(env: Mapping[str, str], minors: Sequence[int], dev_root: Path = Path("/dev")) -> Edits:
    """For mode `share`: the cards' real device nodes, and those common nodes that this host has."""
    common = [name for name in COMMON_NODES if (dev_root / name).exists()]
    names = [*(f"nvidia{minor}" for minor in minors), *common]
    return Edits(env, tuple(DeviceNode(f"/dev/{name}") for name in names))


def virtual_nodes(
    env: Mapping[str, str],
    folder: Path,
    devices: Mapping[str, tuple[int, int]],
    libraries: Sequence[BindMount] = (),
) -> Edits:
    """For modes with the kernel module: the instance's nodes as bind mounts from `folder` (its cgpufs).

    `devices`: node name (nvidia0, nvidiactl, …) → the virtual device's numbers. A device entry would make the runtime
    create a genuine NVIDIA node, so each entry is inert: it stands under another path and only brings the exact
    device-cgroup rule.
    """
    mounts = [BindMount(str(folder / name), f"/dev/{name}") for name in devices]
    inert = [DeviceNode(f"/dev/.cgpu/{name}", numbers=numbers) for name, numbers in devices.items()]
    return Edits(env, tuple(inert), (*mounts, *libraries))


def spec_of(name: str, edits: Edits) -> dict[str, Any]:
    """The CDI document of one device."""
    container: dict[str, Any] = {"env": [f"{key}={value}" for key, value in edits.env.items()]}
    if edits.nodes:
        container["deviceNodes"] = [_node(node) for node in edits.nodes]
    if edits.mounts:
        container["mounts"] = [
            {"hostPath": mount.host_path, "containerPath": mount.container_path, "options": list(mount.options)}
            for mount in edits.mounts
        ]
    return {
        "cdiVersion": _lowest_version(name, edits),
        "kind": CDI_KIND,
        "devices": [{"name": name, "containerEdits": container}],
    }


def _node(node: DeviceNode) -> dict[str, Any]:
    entry: dict[str, Any] = {"path": node.path, "permissions": node.permissions}
    if node.host_path:
        entry["hostPath"] = node.host_path
    if node.numbers:
        entry |= {"type": "c", "major": node.numbers[0], "minor": node.numbers[1]}
    return entry


def _lowest_version(name: str, edits: Edits) -> str:
    """0.5.0 brought hostPath of device nodes and names that start with a digit; 0.3.0 is the first that runtimes read."""
    return "0.5.0" if name[:1].isdigit() or any(node.host_path for node in edits.nodes) else "0.3.0"


class CdiFolder:
    """The spec files of ours in one CDI folder; a file is complete or absent, never half-written."""

    def __init__(self, path: Path) -> None:
        """`path`: usually /var/run/cdi; it is made when missing."""
        self._path = path

    def write(self, name: str, edits: Edits) -> None:
        """Write or replace the file of one device. Raises UnavailableError with the folder and the reason."""
        text = json.dumps(spec_of(name, edits), indent=1)
        temporary = self._path / f".{name}.tmp"  # runtimes read *.json and *.yaml only
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            with temporary.open("w") as file:
                file.write(text)
                file.flush()
                os.fchmod(file.fileno(), 0o644)
            temporary.replace(self._file(name))
        except OSError as error:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise UnavailableError(
                f"CDI file for {name} cannot be written in {self._path}: {error.strerror}"
            ) from error

    def remove(self, name: str) -> None:
        """Remove the file of one device, if there is one."""
        self._file(name).unlink(missing_ok=True)

    def names(self) -> frozenset[str]:
        """Devices that have a file."""
        return frozenset(path.name[len(_PREFIX) : -len(".json")] for path in self._path.glob(f"{_PREFIX}*.json"))

    def _file(self, name: str) -> Path:
        return self._path / f"{_PREFIX}{name}.json"
