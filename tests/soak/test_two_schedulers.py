# SPDX-License-Identifier: Apache-2.0
"""Two schedulers: one leads, and when it dies the other goes on with books it read from the annotations."""

from collections.abc import Iterator

import pytest

from tests.cluster.agent import Agent, container, pod
from tests.cluster.books import assert_books
from tests.cluster.harness import Cluster


@pytest.fixture
def agent(cluster: Cluster) -> Iterator[Agent]:
    """A second scheduler while the test runs, and no pods before or after."""
    found = Agent(cluster)
    found.clear()
    cluster.install("scheduler.replicas=2")
    yield found
    found.clear()
    cluster.install()


def leader(cluster: Cluster) -> str:
    """Name of the pod whose kube-scheduler leads."""
    lease = cluster.get("lease", "-n", "kube-system", "ack-ai-installer-scheduler")
    return str(lease["spec"]["holderIdentity"]).rpartition("_")[0]


def test_the_second_scheduler_takes_over(agent: Agent) -> None:
    cluster = agent.cluster
    agent.create(pod("before", container("c", 9)))
    agent.ready("before")
    first = leader(cluster)

    cluster.kubectl("delete", "pod", "-n", "kube-system", first, "--force", "--grace-period=0")
    agent.create(*(pod(f"after{index}", container("c", 9)) for index in range(4)))

    cluster.wait(lambda: leader(cluster) != first, about="another scheduler leads")
    agent.ready(*(f"after{index}" for index in range(4)))
    cluster.kubectl("rollout", "status", "-n", "kube-system", "deployment/ack-ai-installer-scheduler", "--timeout=180s")
    assert_books(cluster)
