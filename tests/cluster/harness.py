# SPDX-License-Identifier: Apache-2.0
"""What cluster tests hold in their hands: a sandbox with our chart, and the few verbs they need."""

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

import grpc

from cgpu.core.errors import CgpuError
from cgpu.core.names import ANNOTATION_ALLOCATION
from cgpu.sandbox.host import run
from cgpu.sandbox.release import NAMESPACE, install
from cgpu.sandbox.sandbox import Sandbox, kubectl, kubectl_command

T = TypeVar("T")
SCHEDULER = "app.kubernetes.io/component=scheduler"
FORGED = json.dumps(
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "forged", "namespace": "default", "annotations": {ANNOTATION_ALLOCATION: "{}"}},
        "spec": {"containers": [{"name": "c", "image": "localhost/busybox:1"}]},
    }
)
FORBIDDEN = f"only the scheduler writes {ANNOTATION_ALLOCATION}"
PATIENCE_S = 180
"""How long an event is awaited at most: what it costs when a test fails, on a machine however busy."""


class Cluster:
    """A real Kubernetes. Components are named as in `cgpu sandbox status`: `kube-apiserver`, `node-1/kubelet`, …"""

    def __init__(self, sandbox: Sandbox, project: Path) -> None:
        self.sandbox = sandbox
        self.project = project

    @property
    def kubeconfig(self) -> Path:
        return self.sandbox.kubeconfig

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes that run real kubelets."""
        return self.sandbox.record.nodes

    @property
    def version(self) -> str:
        return self.sandbox.record.kubernetes

    def kubectl(self, *words: str, text: str | None = None) -> str:
        """Standard output of kubectl; a failure fails the test with kubectl's words."""
        done = self.try_kubectl(*words, text=text)
        assert done.returncode == 0, f"kubectl {' '.join(words)}: {done.stderr}"
        return done.stdout

    def try_kubectl(self, *words: str, text: str | None = None) -> "subprocess.CompletedProcess[str]":
        """kubectl that may fail: look at returncode and stderr."""
        return kubectl(self.sandbox, *words, text=text)

    @contextmanager
    def kubectl_running(self, *words: str) -> Iterator["subprocess.Popen[str]"]:
        """kubectl with pipes, beside what the test does meanwhile; its input ends at the end, and it has to succeed."""
        pipe = subprocess.PIPE
        with subprocess.Popen(kubectl_command(self.sandbox, *words), stdin=pipe, stdout=pipe, text=True) as process:
            try:
                yield process
            finally:
                process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, f"kubectl {' '.join(words)} ended with {process.returncode}"

    def apply(self, manifest: str) -> str:
        """`kubectl apply` of a YAML text."""
        return self.kubectl("apply", "-f", "-", text=manifest)

    def delete(self, *words: str) -> None:
        """`kubectl delete`, waiting for the end; what is not there is fine."""
        self.kubectl("delete", "--ignore-not-found", "--wait", *words)

    def get(self, *words: str) -> dict[str, Any]:
        """An object or a list."""
        answer: dict[str, Any] = json.loads(self.kubectl("get", "-o", "json", *words))
        return answer

    def wait(self, what: Callable[[], T], timeout_s: float = PATIENCE_S, *, about: str = "") -> T:
        """The first true answer of `what`, which is asked again until then; the test fails after `timeout_s`."""
        end = time.monotonic() + timeout_s
        while True:
            asked = time.monotonic()
            answer, problem = _ask(what)
            if answer:
                return answer
            now = time.monotonic()
            if now > end:
                raise AssertionError(f"not within {timeout_s} s: {about or what.__name__}; last: {problem or answer!r}")
            time.sleep(max(0.1, now - asked))  # a busy machine is not to be kept busy by the question

    def wait_for(self, condition: str, *words: str, timeout_s: int = PATIENCE_S) -> None:
        """`kubectl wait --for=CONDITION`."""
        self.kubectl("wait", f"--for={condition}", f"--timeout={timeout_s}s", *words)

    def node_exec(self, node: str, argv: Sequence[str]) -> str:
        """Standard output of a command in a node's namespaces; a failure raises with its words."""
        return self.sandbox.node_exec(node, argv)

    def kill(self, component: str, signal_number: int = signal.SIGKILL) -> None:
        """End a component; it stays down until `start`."""
        self.sandbox.kill(component, signal_number)

    def start(self, component: str) -> None:
        """Start a component that was killed."""
        self.sandbox.start(component)

    def restart(self, component: str) -> None:
        """kill -9 and start; returns when it answers, where it can be asked."""
        self.sandbox.restart(component)

    def kill_pod(self, namespace: str, selector: str) -> None:
        """Delete our own pods (extender, device plugin) at once, so that their controllers make new ones."""
        self.kubectl("delete", "pod", "-n", namespace, "-l", selector, "--force", "--grace-period=0")

    def helm(self, *words: str) -> str:
        """Helm in the namespace of our chart."""
        return run(
            [
                str(self.sandbox.programs["helm"]),
                f"--kubeconfig={self.kubeconfig}",
                f"--namespace={NAMESPACE}",
                *words,
            ]
        )

    def install(self, *values: str) -> None:
        """Install or upgrade our chart with these values; its admission policies are at work afterwards."""
        install(self.sandbox, self.project, lambda _: None, *values)
        self.wait(self._refuses_forgeries, about="the admission policies are at work")

    def _refuses_forgeries(self) -> bool:
        """API servers take up new policies within a second or some, after they have answered that these exist."""
        return FORBIDDEN in self.try_kubectl("create", "--dry-run=server", "-f", "-", text=FORGED).stderr

    def scheduler(self) -> str:
        """The scheduler's pod that is to stay and whose extender is ready."""
        for item in self.get("pods", "-n", NAMESPACE, "-l", SCHEDULER)["items"]:
            statuses = item["status"].get("containerStatuses", [])
            if statuses and all(row["ready"] for row in statuses) and "deletionTimestamp" not in item["metadata"]:
                return str(item["metadata"]["name"])
        raise AssertionError("no scheduler is ready")


def state_folder(name: str) -> Path:
    """A sandbox's state folder that tells whose it is: the next test run ends what a killed one left."""
    return Path(tempfile.gettempdir()).resolve() / f"cgpu-test-{name}-{os.getpid()}"


def first_line(output: IO[str], timeout_s: float = PATIENCE_S) -> str:
    """The first line of a program's output; "" when it ended without one or nothing came in time."""
    ready, _, _ = select.select([output], [], [], timeout_s)
    return output.readline() if ready else ""


def _ask(what: Callable[[], T]) -> tuple[T | None, str]:
    """The answer, or why there is none yet."""
    try:
        return what(), ""
    except (AssertionError, LookupError, CgpuError, grpc.RpcError) as error:
        return None, str(error)
