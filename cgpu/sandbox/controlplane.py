# SPDX-License-Identifier: Apache-2.0
"""etcd, API server, scheduler, controller manager and kwok, in the control plane's network namespace."""

import os
import time
from pathlib import Path
from typing import Final

from cgpu.core.errors import UnavailableError
from cgpu.sandbox import configs
from cgpu.sandbox.api import Api
from cgpu.sandbox.host import CgroupTree
from cgpu.sandbox.pki import Authority, Pair, kubeconfig, signing_key
from cgpu.sandbox.record import Record
from cgpu.sandbox.units import Place, Unit, Units

PROGRAMS: Final = ("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager")
_USERS: Final = {
    "admin": ("kubernetes-admin", "system:masters"),
    "scheduler": ("system:kube-scheduler", ""),
    "controller-manager": ("system:kube-controller-manager", ""),
}
_READY_S: Final = 180
_SILENCE_S: Final = 20
_MACHINE_SILENCE_S: Final = 150  # emulation on a busy machine can hold a lease up for a minute


class ControlPlane:
    """The control plane of one sandbox."""

    def __init__(self, record: Record, programs: dict[str, Path]) -> None:
        self._record = record
        self._programs = programs
        self._state = Path(record.state)
        self._units = Units(self._state)

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self._state / "kubeconfig"

    def write_files(self, authority: Authority) -> None:
        """Certificates and configurations."""
        pki = self._state / "pki"
        pki.mkdir(parents=True, exist_ok=True)
        (self._state / "etcd").mkdir(mode=0o700, exist_ok=True)
        server_names = (
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "localhost",
            "127.0.0.1",
            configs.FIRST_SERVICE,
            self._record.address(2),
        )
        pairs = {name: authority.issue(*user) for name, user in _USERS.items()}
        pairs["apiserver"] = authority.issue("kube-apiserver", names=server_names)
        pairs["sa"] = signing_key()
        pairs["ca"] = Pair(authority.certificate, authority.key())
        for name, pair in pairs.items():
            (pki / f"{name}.crt").write_text(pair.certificate)
            _write_secret(pki / f"{name}.key", pair.key)
        for name in _USERS:
            target = self.kubeconfig if name == "admin" else self._client(name)
            _write_secret(target, kubeconfig(configs.api_url(self._record), authority.certificate, pairs[name]))
        (self._state / "scheduler.yaml").write_text(configs.scheduler_config(str(self._client("scheduler"))))

    def start_api(self) -> None:
        """Start etcd and the API server, without waiting."""
        self._start("etcd", configs.etcd(self._program("etcd"), str(self._state / "etcd")))
        pki = str(self._state / "pki")
        self._start("kube-apiserver", configs.kube_apiserver(self._program("kube-apiserver"), self._record, pki))

    def wait_api(self) -> Api:
        """A client, once the API server is ready. Raises UnavailableError with its last words when it is not."""
        api = Api(self.kubeconfig)
        end = time.monotonic() + _READY_S
        while not api.answers():
            if time.monotonic() > end or not self._units.alive("kube-apiserver"):
                raise UnavailableError(f"kube-apiserver is not ready:\n{self._units.tail('kube-apiserver')}")
            time.sleep(0.05)
        return api

    def start_controllers(self, *, light_nodes: bool) -> None:
        """Start the scheduler, the controllers and, where there are light nodes, kwok."""
        client = str(self._client("scheduler"))
        scheduler = configs.kube_scheduler(self._program("kube-scheduler"), str(self._state / "scheduler.yaml"), client)
        self._start("kube-scheduler", scheduler)
        manager = configs.kube_controller_manager(
            self._program("kube-controller-manager"),
            str(self._client("controller-manager")),
            str(self._state / "pki"),
            _MACHINE_SILENCE_S if self._record.machines else _SILENCE_S,
        )
        self._start("kube-controller-manager", manager)
        if light_nodes:
            self._start("kwok", configs.kwok(self._program("kwok"), str(self.kubeconfig)))

    def _client(self, name: str) -> Path:
        return self._state / f"{name}.kubeconfig"

    def _program(self, name: str) -> str:
        return str(self._programs[name])

    def _start(self, name: str, argv: list[str]) -> None:
        joins = CgroupTree.of_machine(self._record.cgroup).joins("control")
        place = Place(f"/run/netns/{self._record.namespace()}", "", tuple(joins))
        self._units.start(Unit(name, argv, place, os.environ.get("PATH", os.defpath)))


def _write_secret(path: Path, text: str) -> None:
    """Write a file that only its owner reads."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as handle:
        handle.write(text)
