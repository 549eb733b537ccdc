# SPDX-License-Identifier: Apache-2.0
"""`make demo`: the whole story on a real Kubernetes with simulated cards, told by the commands a user types."""

import os
import shlex
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn

from cgpu.core.errors import CgpuError, UnavailableError
from cgpu.core.names import EVENT_UNSCHEDULABLE
from cgpu.sandbox.lifecycle import Plan, down, up
from cgpu.sandbox.progress import Say
from cgpu.sandbox.release import NAMESPACE, install, uninstall
from cgpu.sandbox.sandbox import Sandbox
from cgpu.sandbox.spec import NodeSpec, default_nodes

Story = Callable[[Sandbox, Path, Say], None]
_PODS_S: Final = 120
_RUNNING: Final = ("single", "equal-a", "equal-b", "two-containers", "two-cards", "init-and-sidecar")
_WAITING: Final = "too-large"
_SHOWN: Final = (
    ("single", "main"),
    ("equal-a", "main"),
    ("equal-b", "main"),
    ("two-containers", "small"),
    ("two-containers", "large"),
    ("two-cards", "main"),
    ("init-and-sidecar", "sidecar"),
    ("init-and-sidecar", "main"),
)


class Teller:
    """Runs what a user would type, shows it and its output."""

    def __init__(self, sandbox: Sandbox) -> None:
        tools = [str(sandbox.programs["kubectl"].parent), sysconfig.get_path("scripts"), os.environ.get("PATH", "")]
        self._environment = {**os.environ, "KUBECONFIG": str(sandbox.kubeconfig), "PATH": ":".join(tools)}

    def ask(self, line: str, text: str = "") -> str:
        """Output of a command that reads `text`. Raises UnavailableError when it fails."""
        words = shlex.split(line)
        done = subprocess.run(words, env=self._environment, input=text, capture_output=True, text=True, check=False)
        if done.returncode:
            raise UnavailableError(f"`{line}` failed with {done.returncode}: {(done.stderr or done.stdout).strip()}")
        return done.stdout.rstrip()

    def show(self, line: str, only: str = "", *, wanted: str = "", reads: Path | None = None) -> None:
        """Type a command and show its output, or the lines of it that hold `only`; `reads`: its standard input.

        Raises UnavailableError when it fails or its output lacks `wanted`.
        """
        print(f"\n$ {line}{f' < {reads}' if reads else ''}{f' | grep {only}' if only else ''}")
        said = self.ask(line, reads.read_text() if reads else "")
        print("\n".join(row for row in said.splitlines() if only in row), flush=True)
        if wanted not in said:
            raise UnavailableError(f"`{line}` does not say {wanted!r}")

    def heading(self, text: str) -> None:
        """What comes next."""
        print(f"\n=== {text}", flush=True)


def run(state: Path, project: Path, say: Say) -> int:
    """Tell the story; its sandbox is gone afterwards, whatever happened. Exit status 0 after `demo: ok`."""
    return told(state, default_nodes(2), project, say, _tell)


def told(state: Path, nodes: tuple[NodeSpec, ...], project: Path, say: Say, story: Story) -> int:
    """A story with a sandbox of these nodes, which is gone afterwards; the exit status."""
    try:
        with _stoppable():
            try:
                sandbox = up(Plan(state, nodes, project=project), say)
                story(sandbox, project, say)
            finally:
                down(state, say)
    except CgpuError as error:
        print(f"demo: failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("demo: interrupted; the sandbox is gone", file=sys.stderr)
        return 130
    print("demo: ok")
    return 0


@contextmanager
def _stoppable() -> Iterator[None]:
    """SIGTERM ends the demo as Ctrl-C does: with everything removed."""

    def stop(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _tell(sandbox: Sandbox, project: Path, say: Say) -> None:
    install(sandbox, project, say)
    teller = Teller(sandbox)
    teller.heading("What the nodes offer: GiB of their simulated cards")
    teller.show(f"kubectl --namespace {NAMESPACE} get pods")
    teller.show(
        "kubectl get nodes -o custom-columns="
        r"'NAME:.metadata.name,aliyun.com/gpu-mem:.status.capacity.aliyun\.com/gpu-mem,"
        r"aliyun.com/gpu-count:.status.capacity.aliyun\.com/gpu-count'"
    )
    teller.heading("Pods that ask for a part of a card")
    teller.show(f"kubectl apply -f {project / 'examples'}")
    _wait_running(teller)
    teller.show("kubectl get pods -o wide")
    teller.heading("Who holds what")
    teller.show("kubectl inspect cgpu")
    teller.show("kubectl inspect cgpu -d")
    teller.heading("What each container was told")
    for pod, container in _SHOWN:
        teller.show(f"kubectl exec {pod} -c {container} -- env", only="ALIYUN_COM_GPU_MEM")
    teller.heading("Why the last pod waits")
    _wait_event(teller)
    teller.show(f"kubectl events --for pod/{_WAITING}", only=EVENT_UNSCHEDULABLE)
    teller.ask(f"kubectl delete -f {project / 'examples'}")
    uninstall(sandbox, say)


def _wait_running(teller: Teller) -> None:
    names = " ".join(f"pod/{name}" for name in _RUNNING)
    try:
        teller.ask(f"kubectl wait --for=condition=Ready --timeout={_PODS_S}s {names}")
    except UnavailableError as error:
        events = teller.ask("kubectl get events --sort-by=.lastTimestamp")
        raise UnavailableError(f"{error}\n{events}") from error


def _wait_event(teller: Teller) -> None:
    deadline = time.monotonic() + _PODS_S
    question = (
        f"kubectl get events --field-selector reason={EVENT_UNSCHEDULABLE},involvedObject.name={_WAITING} -o name"
    )
    while not teller.ask(question):
        if time.monotonic() > deadline:
            raise UnavailableError(f"no event {EVENT_UNSCHEDULABLE} for pod {_WAITING} after {_PODS_S} s")
        time.sleep(0.5)
