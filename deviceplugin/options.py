# SPDX-License-Identifier: Apache-2.0
"""The device plugin's settings."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from cgpu.core.errors import SettingError
from cgpu.core.health import IGNORED_XIDS, parse_xids
from cgpu.core.names import MAX_INSTANCES_DEFAULT, PLUGIN_PORT, Mode
from cgpu.settings import Address, address, boolean, integer, member, names, path, setting, text
from cgpu.telemetry import LogFormat, LogLevel

T = TypeVar("T")


def _as_value_error(parse: Callable[[str], T]) -> Callable[[str], T]:
    def read(written: str) -> T:
        try:
            return parse(written)
        except SettingError as error:
            raise ValueError(str(error)) from error

    return read


def _pairs(written: str) -> tuple[str, ...]:
    words = names(written)
    wrong = [word for word in words if "=" not in word or not word.partition("=")[0]]
    if wrong:
        raise ValueError(f"{wrong[0]!r} is no NAME=VALUE")
    return words


@dataclass(frozen=True, slots=True)
class Options:
    """Shares the GPUs of one node between pods: registers aliyun.com/gpu-mem with the kubelet and hands shares out."""

    withdraw: bool = setting(
        "take back what the plugins wrote on the cluster's nodes, and end: for uninstalling", boolean, False
    )
    node: str = setting("name of this node; in a pod: spec.nodeName", text, "")
    simulate: Path | None = setting("YAML file of simulated cards in place of NVIDIA's library", path, None)
    kubeconfig: Path | None = setting("kubeconfig; without it the pod's service account", path, None)
    default_mode: Mode = setting("mode of a node without a label", member(Mode), Mode.DEFAULT)
    reserve_mib: int = setting("MiB of each card that are never handed out", integer(0, 1024 * 1024), 0)
    max_instances: int = setting("shares that one card takes at most", integer(1, 25), MAX_INSTANCES_DEFAULT)
    core_policy: int = setting(
        "scheduling policy of cards in mode core_mem: 3 (never more than its percentage) or 2 (idle time is shared)",
        integer(2, 3),
        3,
    )
    ignored_xids: frozenset[int] = setting(
        "Xids that do not mark a card, a comma list", _as_value_error(parse_xids), IGNORED_XIDS
    )
    high_priority_classes: tuple[str, ...] = setting(
        "PriorityClasses whose pods get high-priority instances, a comma list", names, ()
    )
    assume_cdi: bool = setting("the container runtime applies CDI where its version leaves it open", boolean, False)
    listen: Address = setting("where /metrics, /healthz and /usage answer", address, Address("0.0.0.0", PLUGIN_PORT))  # noqa: S104 - the pod's address
    kubelet_root: Path = setting("the kubelet's folder", path, Path("/var/lib/kubelet"))
    cdi_folder: Path = setting("where CDI files go", path, Path("/var/run/cdi"))
    run_folder: Path = setting("where grants and instances are recorded", path, Path("/run/cgpu"))
    proc_root: Path = setting("where procfs is mounted", path, Path("/proc"))
    dev_root: Path = setting("where the host's device nodes are", path, Path("/dev"))
    host_root: Path = setting("where the node's own root folder is, with the driver's files", path, Path("/"))
    load_module: bool = setting("load the kernel module when the node's mode needs it", boolean, False)
    module_parameters: tuple[str, ...] = setting("parameters of the module, a comma list of NAME=VALUE", _pairs, ())
    module_source: Path = setting(
        "sources that the module is built from where it is not built", path, Path("/usr/src/cgpu_km")
    )
    log_level: LogLevel = setting("what is logged", member(LogLevel), LogLevel.INFO)
    log_format: LogFormat = setting("how a log line looks", member(LogFormat), LogFormat.TEXT)
