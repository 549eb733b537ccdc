# SPDX-License-Identifier: Apache-2.0
"""Our chart in a sandbox, installed as a user would."""

from pathlib import Path
from typing import Final

from cgpu.sandbox.host import run
from cgpu.sandbox.sandbox import Sandbox

RELEASE: Final = "ack-ai-installer"
NAMESPACE: Final = "kube-system"
# what differs from a cluster with GPUs and a registry
_VALUES: Final = (
    "devicePlugin.simulate.enabled=true",
    "scheduler.image.repository=localhost/kube-scheduler",
)


def chart_of(project: Path) -> Path:
    """The chart of a checkout."""
    return project / "deploy/helm" / RELEASE


def helm(sandbox: Sandbox, *words: str) -> str:
    """Standard output of Helm. Raises UnavailableError with its words when it fails."""
    return run(
        [str(sandbox.programs["helm"]), f"--kubeconfig={sandbox.kubeconfig}", f"--namespace={NAMESPACE}", *words]
    )


def install(sandbox: Sandbox, project: Path, *values: str) -> None:
    """Install or upgrade the chart with `values` (like `extender.compareSeconds=5`) and wait until its pods are ready."""
    settings = [word for value in (*_VALUES, *values) for word in ("--set", value)]
    helm(sandbox, "upgrade", "--install", "--wait", "--timeout=120s", *settings, RELEASE, str(chart_of(project)))


def uninstall(sandbox: Sandbox) -> None:
    """Remove the chart and wait until it is gone; one that is not installed is fine."""
    helm(sandbox, "uninstall", "--ignore-not-found", "--wait", RELEASE)
