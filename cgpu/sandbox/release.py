# SPDX-License-Identifier: Apache-2.0
"""Our chart on a sandbox, installed as a user would: with Helm, and nothing else."""

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cgpu.core.errors import UnavailableError
from cgpu.core.names import ANNOTATION_DEVICES, RESOURCE_MEM
from cgpu.sandbox.progress import Say, step
from cgpu.sandbox.sandbox import Sandbox, kubectl

RELEASE: Final = "ack-ai-installer"
CHART: Final = "deploy/helm/ack-ai-installer"
NAMESPACE: Final = "kube-system"
_INSTALL_S: Final = 480
_OFFER_S: Final = 300


def install(sandbox: Sandbox, project: Path, say: Say, *settings: str) -> None:
    """`helm upgrade --install`, then wait until every node with cards offers memory.

    Cards are simulated by the device plugin, or by the driver of the virtual machines where there are any.
    `settings`: further `key=value` for --set. Raises UnavailableError with what Helm or the nodes say.
    """
    with step(say, f"helm install {RELEASE}"):
        _helm(sandbox, "upgrade", "--install", RELEASE, str(project / CHART), *_values(sandbox, settings))
        wait_offered(sandbox)


def uninstall(sandbox: Sandbox, say: Say) -> None:
    """`helm uninstall`; nothing happens where the release is not there."""
    with step(say, f"helm uninstall {RELEASE}"):
        _helm(sandbox, "uninstall", RELEASE, "--ignore-not-found", "--wait", f"--timeout={_INSTALL_S}s")


def _values(sandbox: Sandbox, settings: Sequence[str]) -> list[str]:
    cards = "devicePlugin.privileged=true" if sandbox.record.machines else "devicePlugin.simulate.enabled=true"
    ours = (
        cards,
        "scheduler.image.repository=localhost/kube-scheduler",
        f"scheduler.image.tag=v{sandbox.record.kubernetes}",
        "image.pullPolicy=Never",
        # a light node would only pretend to run the scheduler
        f"scheduler.nodeSelector.kubernetes\\.io/hostname={sandbox.record.nodes[0]}",
    )
    return [f"--set={value}" for value in (*ours, *settings)] + ["--wait", f"--timeout={_INSTALL_S}s"]


def _helm(sandbox: Sandbox, *words: str) -> None:
    command = [str(sandbox.programs["helm"]), f"--namespace={NAMESPACE}", *words]
    environment = {**os.environ, "KUBECONFIG": str(sandbox.kubeconfig)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        pods = kubectl(sandbox, f"--namespace={NAMESPACE}", "get", "pods,events").stdout
        raise UnavailableError(f"helm {words[0]} failed: {done.stderr.strip()}\n{pods}")


def wait_offered(sandbox: Sandbox) -> None:
    """Return once each node that the device plugin lists cards for offers them. Raises UnavailableError."""
    wanted = set(sandbox.record.machines or sandbox.record.nodes)
    for node in sandbox.api.watch("/api/v1/nodes", time.monotonic() + _OFFER_S):
        listed = ANNOTATION_DEVICES in node["metadata"].get("annotations", {})
        if listed and int(node["status"].get("allocatable", {}).get(RESOURCE_MEM, 0)) > 0:
            wanted.discard(node["metadata"]["name"])
        if not wanted:
            return
    raise UnavailableError(f"no {RESOURCE_MEM} after {_OFFER_S} s on {', '.join(sorted(wanted))}")
