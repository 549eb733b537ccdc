# SPDX-License-Identifier: Apache-2.0
"""The chart's life: upgraded under pods that hold shares, uninstalled, and installed again."""

from collections.abc import Iterator

import pytest

from cgpu.core.names import (
    ANNOTATION_DEVICES,
    EVENT_MODE_REFUSED,
    LABEL_SCHEDULE,
    LABEL_SERVING,
    RESOURCE_COUNT,
)
from cgpu.sandbox.release import uninstall
from tests.cluster.agent import PLUGIN, Agent, container, pod
from tests.cluster.books import assert_books, booked, extender_books
from tests.cluster.harness import Cluster

INSTANCE = "app.kubernetes.io/instance=ack-ai-installer"
ON_NODE_2 = {"nodeSelector": {"kubernetes.io/hostname": "node-2"}}


@pytest.fixture
def agent(cluster: Cluster) -> Iterator[Agent]:
    """No pods before or after."""
    found = Agent(cluster)
    found.clear()
    yield found
    found.clear()


def traces(cluster: Cluster) -> dict[str, set[str]]:
    """What of ours stands on each node, labels of people left out."""
    rows = {}
    for node in cluster.nodes:
        meta, status = (cluster.get("node", node)[key] for key in ("metadata", "status"))
        found = {*meta.get("annotations", {}), *meta["labels"], *status["capacity"]}
        rows[node] = found & {ANNOTATION_DEVICES, LABEL_SERVING, RESOURCE_COUNT}
    return rows


def test_an_upgrade_keeps_books_and_pods(agent: Agent) -> None:
    cluster = agent.cluster
    agent.create(pod("stays", container("c", 5)))
    agent.ready("stays")
    assert_books(cluster)
    before = (cluster.get("node", "node-1")["metadata"]["annotations"][ANNOTATION_DEVICES], extender_books(cluster))

    cluster.install("logLevel=debug", "devicePlugin.ignoredXids={13,31}")
    try:
        assert_books(cluster)
        after = (cluster.get("node", "node-1")["metadata"]["annotations"][ANNOTATION_DEVICES], extender_books(cluster))
        assert after == before
        assert agent.restarts("stays") == 0
    finally:
        cluster.install()


def test_uninstalling_leaves_nothing_on_the_nodes_and_pods_run_on(agent: Agent) -> None:
    cluster = agent.cluster
    agent.create(pod("stays", container("c", 5)))
    agent.ready("stays")
    held = {node: booked(cluster, node) for node in cluster.nodes}

    uninstall(cluster.sandbox, lambda _: None)
    try:
        cluster.wait(lambda: traces(cluster) == {node: set() for node in cluster.nodes}, about="nothing on the nodes")
        everything = ["get", "all,clusterroles,clusterrolebindings", "-A", "-o", "name", "-l", INSTANCE]
        cluster.wait(lambda: cluster.kubectl(*everything) == "", about="nothing of the release is there")
        assert agent.restarts("stays") == 0
    finally:
        cluster.install()

    assert {node: booked(cluster, node) for node in cluster.nodes} == held
    assert_books(cluster)


def test_the_plugin_stays_without_the_modes_label_while_pods_hold_shares(agent: Agent) -> None:
    cluster = agent.cluster
    agent.create({**pod("holds", container("c", 5)), "spec": {**pod("", container("c", 5))["spec"], **ON_NODE_2}})
    agent.ready("holds")
    plugin = agent.plugin("node-2")
    try:
        cluster.kubectl("label", "node", "node-2", f"{LABEL_SCHEDULE}-")
        refused = "asks for mode default, but 1 pods hold shares in mode share (default/holds)"
        cluster.wait(lambda: refused in "".join(agent.events(EVENT_MODE_REFUSED, "node-2")), about=refused)
        agent.kill_container("holds", "node-2")
        agent.restarted("holds", 1)
        assert agent.plugin("node-2") == plugin

        agent.clear()
        cluster.wait(lambda: traces(cluster)["node-2"] == set(), about="nothing of ours stands on the node")
        cluster.wait(lambda: cluster.nodes[:1] == plugin_nodes(cluster), about="its plugin has gone")
    finally:
        cluster.kubectl("label", "node", "node-2", f"{LABEL_SCHEDULE}=share", "--overwrite")
    agent.offers(36, "node-2")


def plugin_nodes(cluster: Cluster) -> tuple[str, ...]:
    """Nodes that run the plugin."""
    rows = cluster.get("pods", "-n", "kube-system", "-l", PLUGIN)["items"]
    return tuple(sorted(row["spec"]["nodeName"] for row in rows))
