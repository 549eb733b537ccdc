# SPDX-License-Identifier: Apache-2.0
"""The sandbox itself: a second one beside the session's, and what is left of it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cgpu.core.errors import SettingError
from cgpu.sandbox.host import CgroupTree, is_zombie, kill_hard
from cgpu.sandbox.lifecycle import Plan, down, up
from cgpu.sandbox.record import Records
from cgpu.sandbox.sandbox import Sandbox, kubectl, status
from cgpu.sandbox.spec import default_nodes
from tests.cluster.harness import PATIENCE_S, Cluster, state_folder

PROJECT = Path(__file__).parents[2]
POD = """
apiVersion: v1
kind: Pod
metadata: {name: quiet}
spec:
  automountServiceAccountToken: false
  containers:
  - {name: main, image: localhost/busybox:1, imagePullPolicy: Never, command: [sleep, "1000"]}
"""
_CRASH = """
import sys
from pathlib import Path
from cgpu.sandbox.lifecycle import Plan, up
from cgpu.sandbox.spec import default_nodes
up(Plan(Path(sys.argv[1]), default_nodes(1)), lambda text: None)
"""


def silent(_: str) -> None:
    """Nobody listens."""


def traces(name: str, state: Path) -> list[str]:
    """Everything on this machine that bears the name of a sandbox or lies in its folder."""
    commands = (
        ["ip", "-br", "link"],
        ["ip", "netns"],
        ["cat", "/proc/mounts"],
        ["find", "/sys/fs/cgroup", "-maxdepth", "2", "-name", "cgpu-sandbox-*"],
        ["ls", "/run/cgpu-sandbox"],
        ["ps", "-eo", "args"],
    )
    lines = [
        line
        for command in commands
        for line in subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    ]
    slot = name.removeprefix("cgpu")
    marks = (f"{name}-", f"{name}h", f"cgpu-sandbox-{slot}", f"cgpu-sandbox/{slot}.", f"{state}/", f"{slot}.json")
    found = [line for line in lines if any(mark in line for mark in marks) or line.split()[:1] == [name]]
    return found + [str(path) for path in state.parent.glob(state.name)]


@pytest.fixture
def state() -> Iterator[Path]:
    """A state folder; whatever a test left there ends with it."""
    folder = state_folder("alone")
    yield folder
    down(folder, silent)


@pytest.fixture(scope="module")
def second() -> Iterator[Sandbox]:
    """A sandbox of one node, without our image, for tests that leave it up."""
    folder = state_folder("second")
    try:
        yield up(Plan(folder, default_nodes(1)), silent)
    finally:
        down(folder, silent)


def run_pod(sandbox: Sandbox) -> None:
    kubectl(sandbox, "apply", "-f", "-", text=POD)
    done = kubectl(sandbox, "wait", "--for=condition=Ready", "pod/quiet", f"--timeout={PATIENCE_S}s")
    assert done.returncode == 0, done.stderr


def test_up_twice_is_harmless_and_other_nodes_are_refused(second: Sandbox) -> None:
    state = Path(second.record.state)
    again = up(Plan(state, default_nodes(1)), silent)

    assert again.record == second.record
    assert {told for _, told in status(again)} == {"running", "Ready"}
    with pytest.raises(SettingError, match="run `cgpu sandbox down` first"):
        up(Plan(state, default_nodes(2)), silent)


def test_up_starts_what_had_ended(second: Sandbox) -> None:
    second.kill("node-1/kubelet")
    second.kill("kube-apiserver")

    up(Plan(Path(second.record.state), default_nodes(1)), silent)

    assert {told for _, told in status(second)} == {"running", "Ready"}


def test_containers_survive_their_runtime(second: Sandbox) -> None:
    run_pod(second)
    second.restart("node-1/containerd")
    second.restart("node-1/kubelet")

    cluster = Cluster(second, PROJECT)
    cluster.wait(lambda: cluster.try_kubectl("exec", "quiet", "--", "true").returncode == 0, about="exec works again")
    pods = kubectl(second, "get", "pod", "quiet", "-o", "jsonpath={.status.containerStatuses[0].restartCount}")
    assert pods.stdout == "0"


def test_a_node_has_files_of_its_own(second: Sandbox) -> None:
    second.node_exec(
        "node-1", ["sh", "-c", "touch /run/cgpu/x /etc/cdi/x /var/log/pods/x; mkdir -p /var/lib/kubelet/x"]
    )

    assert not [path for path in ("/run/cgpu/x", "/etc/cdi/x", "/var/log/pods/x") if Path(path).exists()]
    assert "memMiB" in second.node_exec("node-1", ["cat", "/etc/cgpu/cards.yaml"])


def container_processes(sandbox: Sandbox) -> list[int]:
    """The first process of every container of the first node, as the runtime knows it."""
    listed = sandbox.node_exec("node-1", [str(sandbox.programs["ctr"]), "--namespace=k8s.io", "tasks", "list"])
    found = [int(row.split()[1]) for row in listed.splitlines()[1:]]
    assert len(found) >= 2, listed
    return found


def test_down_ends_the_containers_of_pods_that_nobody_deleted(state: Path) -> None:
    made = up(Plan(state, default_nodes(1)), silent)
    run_pod(made)
    began = container_processes(made)

    down(state, silent)

    assert [process for process in began if not is_zombie(process)] == []


def test_down_after_kill_9_of_everything_leaves_the_machine_as_found(state: Path) -> None:
    made = up(Plan(state, default_nodes(1)), silent)
    run_pod(made)
    began = container_processes(made)
    for process in CgroupTree.of_machine(made.record.cgroup).processes():
        kill_hard(process)

    down(state, silent)

    assert [process for process in began if not is_zombie(process)] == []
    assert traces(made.record.name, state) == []


@pytest.mark.parametrize("begun", ["network", "kube-apiserver", "node-1/kubelet"])
def test_down_after_a_start_that_was_killed_leaves_the_machine_as_found(state: Path, begun: str) -> None:
    starter = subprocess.Popen([sys.executable, "-c", _CRASH, str(state)])
    name = _await(state, begun)
    os.kill(starter.pid, signal.SIGKILL)
    starter.wait()

    down(state, silent)

    # a command that the start had begun outlives it by a moment
    end = time.monotonic() + PATIENCE_S
    while traces(name, state) and time.monotonic() < end:
        time.sleep(0.1)
    assert traces(name, state) == []


def _await(state: Path, begun: str) -> str:
    """Return the sandbox's name once the start got that far."""
    end = time.monotonic() + PATIENCE_S
    unit = state / "units" / f"{begun.replace('/', '_')}.json"
    while time.monotonic() < end:
        record = Records().of_state(state)
        if record and (unit.exists() or (begun == "network" and Path(f"/run/netns/{record.name}").exists())):
            return record.name
        time.sleep(0.01)
    raise AssertionError(f"the start did not reach {begun}")


def test_a_folder_with_other_files_is_refused(state: Path) -> None:
    state.mkdir()
    (state / "thesis.txt").write_text("dear")
    try:
        with pytest.raises(SettingError, match=r"thesis\.txt.*name an empty folder"):
            up(Plan(state, default_nodes(1)), silent)
        assert (state / "thesis.txt").read_text() == "dear"
    finally:
        (state / "thesis.txt").unlink()
