# SPDX-License-Identifier: Apache-2.0
"""The extender's watch on a real API server that has forgotten where the watch was."""

import signal
from collections.abc import Iterator

import pytest

from cgpu.sandbox.configs import FIRST_SERVICE
from tests.cluster.agent import Agent, container, pod
from tests.cluster.books import assert_books
from tests.cluster.harness import SCHEDULER, Cluster


@pytest.fixture
def agent(cluster: Cluster) -> Iterator[Agent]:
    """No pods before or after."""
    found = Agent(cluster)
    found.clear()
    yield found
    found.clear()


def extender_pod(cluster: Cluster) -> tuple[str, str, str]:
    """The scheduler's pod once all of it is ready, its node and containerd's id of the extender in it."""
    (row,) = cluster.get("pods", "-n", "kube-system", "-l", SCHEDULER)["items"]
    statuses = row["status"]["containerStatuses"]
    assert all(item["ready"] for item in statuses), statuses
    status = next(item for item in statuses if item["name"] == "extender")
    return row["metadata"]["name"], row["spec"]["nodeName"], status["containerID"].removeprefix("containerd://")


def test_a_version_that_is_too_old_is_listed_anew(agent: Agent) -> None:
    """410: the extender sleeps. The first restart cuts its watch, then a pod goes, and the API server that comes with
    the second one remembers nothing from before.
    """
    cluster = agent.cluster
    name, node, task = cluster.wait(lambda: extender_pod(cluster), about="the extender is ready")
    agent.create(pod("stays", container("c", 5)), pod("goes", container("c", 6)))
    agent.ready("stays", "goes")

    def send(number: signal.Signals) -> None:
        cluster.node_exec(node, ["ctr", "-n", "k8s.io", "tasks", "kill", f"--signal={number.name}", task])

    def expired() -> int:
        log = cluster.kubectl("logs", "-n", "kube-system", name, "-c", "extender")
        return sum("watch of /api/v1/pods: " in line and line.endswith("listing anew") for line in log.splitlines())

    before = expired()
    send(signal.SIGSTOP)
    try:
        cluster.restart("kube-apiserver")
        cluster.delete("pod", "goes", "--force", "--grace-period=0")
        cluster.restart("kube-apiserver")
        # where the extender looks for it: three connections in vain would have it list for another reason
        reached = ["bash", "-c", f"exec 3<>/dev/tcp/{FIRST_SERVICE}/443"]
        cluster.wait(lambda: cluster.node_exec(node, reached) == "", about="the API server is reached from the node")
    finally:
        send(signal.SIGCONT)

    cluster.wait(lambda: expired() > before, about="the version has expired")
    assert_books(cluster)
    cluster.wait(lambda: extender_pod(cluster), about="the extender is ready again")
