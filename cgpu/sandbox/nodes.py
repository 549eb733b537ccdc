# SPDX-License-Identifier: Apache-2.0
"""A container node: a mount namespace in which every path that a kubelet, a runtime or a DaemonSet uses is its own.

/run is empty, /etc and /var and /opt are overlays whose changes stay with the node, and what must lie on a plain file
system (the kubelet's and containerd's folders) is bound there. Nothing of it shows on the machine, and all of it goes
with the last process and the pin of the namespace.
"""

import os
import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cgpu.core.errors import UnavailableError
from cgpu.sandbox import configs
from cgpu.sandbox.host import CgroupTree, run
from cgpu.sandbox.pki import Authority, kubeconfig
from cgpu.sandbox.record import Record, Records
from cgpu.sandbox.spec import NodeSpec, cards_file
from cgpu.sandbox.units import Place, Unit, Units, run_in

CARDS_FILE: Final = "etc/cgpu/cards.yaml"
CONTAINERD_SOCKET: Final = "/run/containerd/containerd.sock"
_OVERLAYS: Final = ("etc", "var", "opt")
_BOUND: Final = ("var/lib/kubelet", "var/lib/containerd")
_EMPTY: Final = ("etc/cni/net.d", "etc/cdi", "etc/cgpu", "var/log/pods", "var/log/containers")
_RUNTIME: Final = ("containerd", "cdi", "cgpu", "netns", "lock", "mount")
_SOCKET_S: Final = 120


@dataclass(frozen=True, slots=True)
class NodeHome:
    """Where a node's files lie on the machine. `root`: a folder of its own in the state folder."""

    root: Path

    @property
    def pieces(self) -> tuple[Path, ...]:
        """Every folder to make before the namespace is made."""
        overlays = [self.root / kind / name for name in _OVERLAYS for kind in ("upper", "work")]
        bound = [self.bound(path) for path in _BOUND]
        return (*overlays, *bound, *(self.root / "upper" / path for path in (*_EMPTY, *_BOUND)))

    def etc(self, path: str) -> Path:
        """A file of the node's /etc."""
        return self.root / "upper/etc" / path

    def bound(self, path: str) -> Path:
        """The plain folder behind one of the node's."""
        return self.root / "bound" / path


class ContainerNode:
    """One node of a sandbox: made once, then its programs are started and killed by name."""

    def __init__(self, record: Record, records: Records, name: str, programs: dict[str, Path]) -> None:
        state = Path(record.state)
        self.name = name
        self._record = record
        self._pin = records.pins(record) / name
        self._programs = programs
        self._units = Units(state)
        self.home = NodeHome(state / "nodes" / name)

    def place(self) -> Place:
        """Where the node's programs, and `exec`, run."""
        joins = CgroupTree.of_machine(self._record.cgroup).joins(f"{self.name}.system")
        return Place(f"/run/netns/{self._record.namespace(self.name)}", str(self._pin), tuple(joins))

    def write_files(self, spec: NodeSpec, authority: Authority) -> None:
        """Everything the node's programs read."""
        for folder in self.home.pieces:
            folder.mkdir(parents=True, exist_ok=True)
        address, url = self._record.node_address(self.name), configs.api_url(self._record)
        pair = authority.issue(f"system:node:{self.name}", "system:nodes", (self.name, address))
        proxy = authority.issue("system:kube-proxy")
        files = {
            "kubernetes/kubelet.yaml": configs.kubelet_config(self._record, self.name),
            "kubernetes/kubelet.conf": kubeconfig(url, authority.certificate, pair),
            "kubernetes/proxy.yaml": configs.kube_proxy_config(self.name),
            "kubernetes/proxy.conf": kubeconfig(url, authority.certificate, proxy),
            "kubernetes/pki/ca.crt": authority.certificate,
            "kubernetes/pki/kubelet.crt": pair.certificate,
            "kubernetes/pki/kubelet.key": pair.key,
            "kubernetes/resolv.conf": "# the sandbox has no name server\n",
            "containerd/config.toml": configs.containerd_config(),
            "cni/net.d/10-pods.conflist": configs.cni_config(self._record, self.name),
            "cgpu/cards.yaml": cards_file(spec),
        }
        self.home.etc(configs.MANIFESTS).mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            self.home.etc(path).parent.mkdir(parents=True, exist_ok=True)
            self.home.etc(path).write_text(text)

    def make_namespace(self) -> None:
        """Make the mount namespace and pin it, so that it outlives every process."""
        self._pin.touch()
        script = mount_script(self.home)
        run(["unshare", f"--mount={self._pin}", "--propagation=private", "sh", "-ec", script])

    def start_runtime(self) -> None:
        """Start containerd and wait for its socket."""
        self._start("containerd", [str(self._programs["containerd"]), "--config=/etc/containerd/config.toml"])
        self.wait_runtime()

    def wait_runtime(self) -> None:
        """Return once containerd answers. Raises UnavailableError with its last words after 30 s."""
        end = time.monotonic() + _SOCKET_S
        while True:
            try:
                run_in(self.place(), [str(self._programs["ctr"]), "--timeout=2s", "version"])
            except UnavailableError as error:
                if time.monotonic() > end or not self._units.alive(f"{self.name}/containerd"):
                    words = self._units.tail(f"{self.name}/containerd")
                    raise UnavailableError(f"containerd of {self.name} does not answer: {error}\n{words}") from error
                time.sleep(0.05)
            else:
                return

    def start_kubernetes(self) -> None:
        """Start the kubelet and kube-proxy."""
        address = self._record.node_address(self.name)
        self._start("kubelet", configs.kubelet(str(self._programs["kubelet"]), self.name, address))
        proxy = [str(self._programs["kube-proxy"]), "--config=/etc/kubernetes/proxy.yaml"]
        self._start("kube-proxy", proxy)

    def run(self, argv: list[str]) -> str:
        """Standard output of a command in the node."""
        return run_in(self.place(), ["env", f"PATH={self.path()}", *argv])

    def path(self) -> str:
        """PATH of the node: containerd finds its shim there, `exec` finds ctr."""
        folders = dict.fromkeys(str(self._programs[name].parent) for name in ("containerd", "kubelet"))
        system = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return os.pathsep.join([*folders, system])

    def _start(self, what: str, argv: list[str]) -> None:
        self._units.start(Unit(f"{self.name}/{what}", argv, self.place(), self.path()))


def mount_script(home: NodeHome) -> str:
    """What the first process of the namespace mounts; the state folder stays reachable at /run/.node meanwhile."""
    root = shlex.quote(str(home.root))
    lines = [
        "mount -t tmpfs -o mode=755 tmpfs /mnt",
        "mkdir /mnt/.node",
        f"mount --bind {root} /mnt/.node",
        *(
            f"mount -t overlay -o lowerdir=/{name},upperdir=/mnt/.node/upper/{name},workdir=/mnt/.node/work/{name} "
            f"overlay /{name}"
            for name in _OVERLAYS
        ),
        *(f"mount --bind /mnt/.node/bound/{path} /{path}" for path in _BOUND),
        "umount /mnt/.node",
        "rmdir /mnt/.node",
        *(f"mkdir /mnt/{name}" for name in _RUNTIME),
        "mount -n --move /mnt /run",
        "mount --make-rshared /",
    ]
    return "\n".join(lines)
