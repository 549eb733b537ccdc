# SPDX-License-Identifier: Apache-2.0
"""A sandbox that is up: look at it, enter its nodes, and break its parts on purpose."""

import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from cgpu.core.errors import SettingError, UnavailableError
from cgpu.sandbox import versions
from cgpu.sandbox.agent import checked
from cgpu.sandbox.api import Api
from cgpu.sandbox.binaries import ensure
from cgpu.sandbox.controlplane import ControlPlane
from cgpu.sandbox.machines import MachineNode
from cgpu.sandbox.nodes import ContainerNode
from cgpu.sandbox.progress import cache_folder
from cgpu.sandbox.record import Record, Records
from cgpu.sandbox.store import import_command
from cgpu.sandbox.units import Units

_KUBELET_S: Final = 120


class Sandbox:
    """A sandbox that is up. Components: `etcd`, `kube-apiserver`, `kube-scheduler`, `kube-controller-manager`, `kwok`,
    on every node `NODE/containerd`, `NODE/kubelet`, `NODE/kube-proxy`, and `NODE/qemu` for every virtual machine."""

    def __init__(self, record: Record, records: Records, programs: dict[str, Path]) -> None:
        self.record = record
        self.programs = programs
        self.units = Units(Path(record.state))
        self._records = records

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return Path(self.record.state) / "kubeconfig"

    @property
    def api(self) -> Api:
        """A client of the API server, as administrator."""
        return Api(self.kubeconfig)

    @property
    def components(self) -> list[str]:
        """Every component by name."""
        return self.units.names()

    def node(self, name: str) -> ContainerNode:
        """A container node. Raises SettingError for a name that is none."""
        if name not in self.record.nodes:
            raise SettingError(f"no container node {name!r}; there are {', '.join(self.record.nodes)}")
        return ContainerNode(self.record, self._records, name, self.programs)

    def machine(self, name: str) -> MachineNode:
        """A virtual machine. Raises SettingError for a name that is none."""
        if name not in self.record.machines:
            raise SettingError(f"no node of kind vm {name!r}; there are {', '.join(self.record.machines) or 'none'}")
        return MachineNode(self.record, name, self.programs)

    def node_exec(self, node: str, argv: Sequence[str]) -> str:
        """Standard output of a command in a node. Raises UnavailableError when it fails."""
        if node in self.record.machines:
            return checked(argv, self.machine(node).agent.run(argv))
        return self.node(node).run(list(argv))

    def node_command(self, node: str, argv: Sequence[str]) -> list[str]:
        """The command that runs `argv` in a node, for a caller that passes its own input and output."""
        inside = self.node(node)
        return inside.place().command(["env", f"PATH={inside.path()}", *argv])

    def kill(self, component: str, signal_number: int = signal.SIGKILL) -> None:
        """End a component and wait until it is gone."""
        self.units.kill(component, signal_number)

    def start(self, component: str) -> None:
        """Start a component that was killed, as it was; one that runs is left alone."""
        self.units.start_again(component)

    def restart(self, component: str) -> None:
        """Kill -9 and start a component, and wait until it answers where it can be asked."""
        self.kill(component)
        self.start(component)
        node, _, program = component.rpartition("/")
        if program == "containerd":
            self.node(node).wait_runtime()
        elif program == "kubelet" and self.units.alive("kube-apiserver"):
            self._wait_kubelet(node)
        elif component in {"kube-apiserver", "etcd"}:
            ControlPlane(self.record, self.programs).wait_api()

    def _wait_kubelet(self, node: str) -> None:
        """Return once the kubelet answers through the API server. Raises UnavailableError with its last words."""
        end = time.monotonic() + _KUBELET_S
        while not self.api.answers(f"/api/v1/nodes/{node}/proxy/healthz"):
            if time.monotonic() > end:
                raise UnavailableError(f"kubelet of {node} does not answer:\n{self.units.tail(f'{node}/kubelet')}")
            time.sleep(0.1)

    def load_image(self, archive: Path) -> None:
        """Import an image archive into every container node."""
        for node in self.record.nodes:
            self.node_exec(node, import_command(self.programs["ctr"], archive))


def attach(state: Path, records: Records | None = None, cache: Path | None = None) -> Sandbox:
    """The sandbox of a state folder. Raises UnavailableError when there is none that came up."""
    records = records or Records()
    record = records.of_state(state)
    if record is None or not record.complete:
        raise UnavailableError(f"no sandbox is up in {state}; run `cgpu sandbox up`")
    sources = versions.sources(record.kubernetes)
    return Sandbox(record, records, ensure(cache or cache_folder(), sources, lambda _: None))


def is_ready(node: dict[str, Any]) -> bool:
    """Whether a Node object says that it is Ready and takes pods."""
    conditions = {item["type"]: item["status"] for item in node.get("status", {}).get("conditions", ())}
    tainted = any(taint["key"] == "node.kubernetes.io/not-ready" for taint in node["spec"].get("taints", ()))
    return conditions.get("Ready") == "True" and not tainted


def status(sandbox: Sandbox) -> list[tuple[str, str]]:
    """Every component and every node with its state, as rows to print."""
    rows = [(name, "running" if sandbox.units.alive(name) else "ended") for name in sandbox.components]
    with suppress(UnavailableError):
        nodes = sandbox.api.get("/api/v1/nodes?limit=200")["items"]
        rows += [(f"node {item['metadata']['name']}", "Ready" if is_ready(item) else "NotReady") for item in nodes]
    return rows


def kubectl(sandbox: Sandbox, *words: str, text: str | None = None) -> "subprocess.CompletedProcess[str]":
    """kubectl of the cluster's version, as administrator."""
    command = kubectl_command(sandbox, *words)
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def kubectl_command(sandbox: Sandbox, *words: str) -> list[str]:
    """The same as a command, for a caller that passes its own input and output."""
    return [str(sandbox.programs["kubectl"]), f"--kubeconfig={sandbox.kubeconfig}", *words]
