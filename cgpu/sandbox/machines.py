# SPDX-License-Identifier: Apache-2.0
"""A node that is a virtual machine: a kernel of its own, into which a module can be loaded, with a driver's simulation.

The disks and QEMU's command come from the checkout's test bench (`python -m tests.vm.node`): the simulated driver is
there, and the product's package neither contains nor imports it. What runs is one program, `NODE/qemu`, in the control
plane's network namespace; a link of its own joins it to the bridge.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from cgpu.cards import expand
from cgpu.core.errors import UnavailableError
from cgpu.sandbox import configs
from cgpu.sandbox.agent import Agent
from cgpu.sandbox.host import CgroupTree
from cgpu.sandbox.pki import Authority, kubeconfig
from cgpu.sandbox.record import Record
from cgpu.sandbox.spec import SIMULATED, NodeSpec
from cgpu.sandbox.units import Place, Unit, Units

PROGRAMS: Final = ("kubelet", "kube-proxy", "containerd", "containerd-shim-runc-v2", "ctr")
_BOOT: Final = Path(__file__).with_name("machine-boot.sh")


class MachineNode:
    """One virtual machine of a sandbox."""

    def __init__(self, record: Record, name: str, programs: dict[str, Path]) -> None:
        self.name = name
        self._record = record
        self._programs = programs
        self._state = Path(record.state)
        self._units = Units(self._state)
        self.folder = self._state / "nodes" / name

    @staticmethod
    def unit_of(name: str) -> str:
        """Name of a machine's program."""
        return f"{name}/qemu"

    @property
    def console(self) -> Path:
        """What its kernel and its boot wrote."""
        return self.folder / "console.log"

    @property
    def agent(self) -> Agent:
        """Runs commands in the machine."""
        return Agent(self.folder / "agent")

    def write_files(self, authority: Authority) -> None:
        """Everything the node's programs read, to become a disk of the machine."""
        files = self.folder / "files"
        address, url = self._record.node_address(self.name), configs.api_url(self._record)
        pair = authority.issue(f"system:node:{self.name}", "system:nodes", (self.name, address))
        proxy = authority.issue("system:kube-proxy")
        texts = {
            "node.env": self._environment(),
            "etc/kubernetes/kubelet.yaml": configs.machine_kubelet_config(),
            "etc/kubernetes/kubelet.conf": kubeconfig(url, authority.certificate, pair),
            "etc/kubernetes/proxy.yaml": configs.kube_proxy_config(self.name),
            "etc/kubernetes/proxy.conf": kubeconfig(url, authority.certificate, proxy),
            "etc/kubernetes/pki/ca.crt": authority.certificate,
            "etc/kubernetes/pki/kubelet.crt": pair.certificate,
            "etc/kubernetes/pki/kubelet.key": pair.key,
            "etc/kubernetes/resolv.conf": "# the sandbox has no name server\n",
            "etc/containerd/config.toml": configs.containerd_config(),
            "etc/cni/net.d/10-pods.conflist": configs.cni_config(self._record, self.name),
        }
        for path, text in texts.items():
            (files / path).parent.mkdir(parents=True, exist_ok=True)
            (files / path).write_text(text)
        shutil.copy2(_BOOT, files / "boot")

    def _environment(self) -> str:
        words = {
            "NODE": self.name,
            "ADDRESS": self._record.node_address(self.name),
            "GATEWAY": self._record.address(2),
            "NAME_SERVER": configs.NAME_SERVER,
            "PREBUILT": "1",
        }
        return "".join(f"{key}={value}\n" for key, value in words.items())

    def start(self, spec: NodeSpec, store: Path, project: Path) -> None:
        """Make the machine's disks and start it. `store`: a containerd folder with the images.

        Raises UnavailableError when a disk cannot be made.
        """
        argv = self._command(spec, store, project)
        joins = CgroupTree.of_machine(self._record.cgroup).joins(f"{self.name}.system")
        place = Place(f"/run/netns/{self._record.namespace()}", "", tuple(joins))
        self._units.start(Unit(self.unit_of(self.name), argv, place, os.environ.get("PATH", os.defpath)))

    def _command(self, spec: NodeSpec, store: Path, project: Path) -> list[str]:
        cards = expand(spec.cards)
        number = self._record.machines.index(self.name)
        link = (
            *("-netdev", f"tap,id=net,ifname={self._record.tap(self.name)},script=no,downscript=no"),
            *("-device", f"virtio-net-pci,netdev=net,romfile=,mac=52:54:00:77:{self._record.slot:02x}:{number:02x}"),
        )
        command = [
            *(sys.executable, "-m", "tests.vm.node", str(self.folder), f"--name={self.name}"),
            f"--branch={spec.driver}",
            f"--cards={','.join(SIMULATED[card.model] for card in cards)}",
            f"--total-mib={','.join(str(card.mem_mib) for card in cards)}",
            f"--store={store}",
            f"--files={self.folder / 'files'}",
            *("--programs", *(str(self._programs[name]) for name in PROGRAMS)),
            *(f"--qemu={word}" for word in link),
        ]
        done = subprocess.run(command, cwd=project, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise UnavailableError(f"the machine of {self.name} cannot be made: see the lines above")
        argv: list[str] = json.loads(done.stdout)
        return argv

    def last_words(self) -> str:
        """The end of its console."""
        try:
            lines = self.console.read_text(errors="replace").splitlines()
        except OSError:
            lines = []
        return "\n".join([*lines[-15:], self._units.tail(self.unit_of(self.name), 5)])
