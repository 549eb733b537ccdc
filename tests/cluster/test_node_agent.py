# SPDX-License-Identifier: Apache-2.0
"""The device plugin on real kubelets: node-1 has two T4, node-2 an A10 and a T4.

The scheduler is taken away for this file, so that a test decides which card a pod is given and in which order.
"""

import json
import random
import shlex
from collections.abc import Iterator

import pytest

from cgpu.core.names import LABEL_SCHEDULE, PLUGIN_PORT, RESOURCE_COUNT
from tests.cluster.agent import END, PLUGIN, SCHEDULER, Agent, container, pod
from tests.cluster.books import assert_books, cdi_files, grants
from tests.cluster.harness import SCHEDULER as SCHEDULER_PODS
from tests.cluster.harness import Cluster


@pytest.fixture(scope="module")
def unscheduled(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster without our scheduler."""
    cluster.kubectl("-n", "kube-system", "scale", SCHEDULER, "--replicas=0")
    try:
        pods = ["pods", "-n", "kube-system", "-l", SCHEDULER_PODS]
        cluster.wait(lambda: not cluster.get(*pods)["items"], about="the scheduler, which binds until then, has gone")
        yield cluster
    finally:
        cluster.kubectl("-n", "kube-system", "scale", SCHEDULER, "--replicas=1")
        cluster.kubectl("-n", "kube-system", "rollout", "status", SCHEDULER, "--timeout=180s")


@pytest.fixture
def agent(unscheduled: Cluster) -> Iterator[Agent]:
    """Pods bound by hand; each test leaves the nodes empty."""
    made = Agent(unscheduled)
    try:
        yield made
    finally:
        made.clear()


def plugin_get(agent: Agent, path: str) -> str:
    """What the plugin's web server of node-1 answers, through the API server."""
    pod_path = f"/api/v1/namespaces/kube-system/pods/{agent.plugin()}:{PLUGIN_PORT}/proxy/{path}"
    return agent.cluster.kubectl("get", "--raw", pod_path)


def test_nodes_offer_the_sum_of_their_cards(agent: Agent) -> None:
    assert [(agent.allocatable(node), agent.allocatable(node, RESOURCE_COUNT)) for node in ("node-1", "node-2")] == [
        ("28", "2"),
        ("36", "2"),
    ]


def test_two_equal_pods_admitted_in_the_opposite_order_get_their_own_cards(agent: Agent) -> None:
    agent.create(pod("first", container("c", 8)), pod("second", container("c", 8)))
    agent.bind("second", {"c": (1, 8)})
    agent.bind("first", {"c": (0, 8)})
    agent.ready("first", "second")

    assert (agent.share("first", "c"), agent.share("second", "c")) == (("8", "0"), ("8", "1"))
    assert_books(agent.cluster, extender=False)


def test_eight_pods_at_once_in_random_order(agent: Agent) -> None:
    order = random.Random(8)
    cards = {f"p{i}": order.randrange(2) if i > 1 else i for i in range(8)}
    agent.create(*(pod(name, container("c", 2)) for name in cards))
    for name in order.sample(sorted(cards), 8):
        agent.bind(name, {"c": (cards[name], 2)})
    agent.ready(*cards)

    assert {name: agent.share(name, "c") for name in cards} == {name: ("2", str(card)) for name, card in cards.items()}
    assert_books(agent.cluster, extender=False)


def test_two_containers_two_and_three(agent: Agent) -> None:
    agent.create(pod("two", container("a", 2), container("b", 3)))
    agent.bind("two", {"a": (0, 2), "b": (1, 3)})
    agent.ready("two")

    assert (agent.share("two", "a"), agent.share("two", "b")) == (("2", "0"), ("3", "1"))


def test_init_containers_and_sidecars(agent: Agent) -> None:
    rows = {
        "init8-app3": pod("init8-app3", container("c", 3), init=(container("i", 8, END),)),
        "init3-app3": pod("init3-app3", container("c", 3), init=(container("i", 3, END),)),
        "init-only": pod("init-only", container("c"), init=(container("i", 5, END),)),
        "sidecar": pod(
            "sidecar", container("c", 3), init=(container("i", 8, END), container("s", 2, restartPolicy="Always"))
        ),
    }
    agent.run(*rows.values(), init8_app3=0, init3_app3=0, init_only=1, sidecar=1)
    agent.run(pod("init8-app8", container("c", 8), init=(container("i", 8, END),)), node="node-2", init8_app8=1)

    seen = {
        name: [agent.share(name, box) for box in boxes]
        for name, boxes in {**dict.fromkeys(rows, "ic"), "sidecar": "isc", "init8-app8": "ic"}.items()
    }
    assert seen == {
        "init8-app3": [("8", "0"), ("3", "0")],
        "init3-app3": [("3", "0"), ("3", "0")],
        "init-only": [("5", "1"), ("", "")],
        "sidecar": [("8", "1"), ("2", "1"), ("3", "1")],
        "init8-app8": [("8", "1"), ("8", "1")],
    }
    assert agent.env("sidecar", "c")["ALIYUN_COM_GPU_MEM_POD"] == "8"
    want = {("init8-app3", "c"), ("init3-app3", "c"), ("init-only", "i"), ("sidecar", "s"), ("sidecar", "c")}
    agent.cluster.wait(lambda: {(row["pod"], row["container"]) for row in grants(agent.cluster, "node-1")} == want)
    assert_books(agent.cluster, extender=False)


def test_a_pod_that_nobody_bound_for_us_is_told_why(agent: Agent) -> None:
    row = pod("stray", container("c", 3))
    row["spec"]["nodeName"] = "node-1"
    agent.create(row)

    message = agent.cluster.wait(lambda: agent.events("GPUShareAllocateFailed", "stray"))[0]
    assert message.startswith("default/stray has no annotation cgpu.aliyun.com/allocation")
    told = agent.cluster.wait(
        lambda: [line for line in agent.cluster.kubectl("describe", "pod", "stray").splitlines() if "PreStart" in line]
    )
    assert message in told[0]
    agent.cluster.wait(lambda: grants(agent.cluster, "node-1") == [], about="nothing is handed out")


def test_a_static_pod_is_refused_and_told_why(agent: Agent) -> None:
    """The kubelet starts it from a file: it passes no scheduler, and its UID is the kubelet's own."""
    place = "/etc/kubernetes/manifests/static.json"
    text = shlex.quote(json.dumps(pod("static", container("c", 3))))
    agent.cluster.node_exec("node-1", ["sh", "-c", f"printf %s {text} > {place}.new && mv {place}.new {place}"])
    try:
        named = "--field-selector=involvedObject.name=static-node-1"
        agent.cluster.wait(lambda: "a static pod" in agent.cluster.kubectl("get", "events", named))
        assert grants(agent.cluster, "node-1") == []
        assert cdi_files(agent.cluster, "node-1") == []
    finally:
        agent.cluster.node_exec("node-1", ["rm", place])
    agent.cluster.wait(lambda: "static-node-1" not in agent.cluster.kubectl("get", "pods", "-o", "name"))


def test_more_than_the_card_has_is_refused_and_the_first_keeps_its_share(agent: Agent) -> None:
    agent.run(pod("first", container("c", 8)), first=0)
    agent.create(pod("second", container("c", 8)))
    agent.bind("second", {"c": (0, 8)})

    message = agent.cluster.wait(lambda: agent.events("GPUShareAllocateFailed", "second"))[0]
    assert "8 GiB and 0 percent are held: 8 GiB and 0 percent more would pass it" in message
    agent.kill_container("first")
    agent.restarted("first", 1)
    agent.cluster.wait(lambda: [row["pod"] for row in grants(agent.cluster, "node-1")] == ["first"])


def test_a_restarted_kubelet_finds_the_plugin_again(agent: Agent) -> None:
    agent.run(pod("before", container("c", 5)), before=1)
    registrations = agent.registrations()
    agent.cluster.restart("node-1/kubelet")
    agent.cluster.wait(lambda: agent.registrations() > registrations, about="registered again")
    agent.offers(28)
    agent.run(pod("after", container("c", 5)), after=1)

    agent.kill_container("before")
    agent.restarted("before", 1)
    assert (agent.share("before", "c"), agent.share("after", "c")) == (("5", "1"), ("5", "1"))
    assert_books(agent.cluster, extender=False)


def test_a_restarted_containerd_changes_nothing(agent: Agent) -> None:
    agent.run(pod("before", container("c", 5)), before=1)
    agent.cluster.restart("node-1/containerd")
    agent.run(pod("after", container("c", 5)), after=0)

    assert agent.restarts("before") == 0
    assert agent.share("after", "c") == ("5", "0")
    assert_books(agent.cluster, extender=False)


def test_containers_restart_while_the_api_server_is_away(agent: Agent) -> None:
    agent.run(pod("before", container("c", 4)), before=1)
    agent.cluster.kill("kube-apiserver")
    try:
        first = agent.task("before")
        agent.kill_task(first)
        agent.cluster.wait(lambda: agent.task("before") not in ("", first), about="the container runs again")
    finally:
        agent.cluster.restart("kube-apiserver")

    agent.restarted("before", 1)
    assert agent.share("before", "c") == ("4", "1")


def test_a_killed_plugin_comes_back_with_what_it_had_given(agent: Agent) -> None:
    agent.run(pod("before", container("c", 8)), before=1)
    killed = agent.plugin()
    agent.cluster.kill_pod("kube-system", PLUGIN)
    agent.cluster.wait(lambda: agent.plugin() != killed, about="another plugin is ready")
    agent.offers(28)
    agent.kill_container("before")
    agent.restarted("before", 1)

    assert agent.share("before", "c") == ("8", "1")
    agent.create(pod("too-much", container("c", 8)))
    agent.bind("too-much", {"c": (1, 8)})
    agent.cluster.wait(lambda: agent.events("GPUShareAllocateFailed", "too-much"))
    assert_books(agent.cluster, ["node-2"], extender=False)


def test_a_card_that_fails_and_comes_back(agent: Agent) -> None:
    agent.run(pod("on-sick", container("c", 5)), pod("on-well", container("c", 6)), on_sick=0, on_well=1)
    try:
        agent.set_cards(False, True)
        agent.offers(14)
        agent.kill_container("on-well")
        agent.restarted("on-well", 1)
        agent.kill_container("on-sick")
        agent.cluster.wait(
            lambda: "waiting" in agent.cluster.get("pod", "on-sick")["status"]["containerStatuses"][0]["state"]
        )
        agent.cluster.wait(lambda: agent.events("GPUUnhealthy", "node-1"), about="an event of the card")
    finally:
        agent.set_cards(True, True)
    agent.offers(28)
    agent.restarted("on-sick", 1)
    assert (agent.share("on-sick", "c"), agent.share("on-well", "c")) == (("5", "0"), ("6", "1"))
    assert agent.cluster.wait(lambda: agent.events("GPURecovered", "node-1"))


def test_a_mode_change_waits_and_a_missing_module_is_said(agent: Agent) -> None:
    label = ["label", "node", "node-2", "--overwrite"]
    agent.run(pod("holder", container("c", 3)), node="node-2", holder=0)
    try:
        agent.cluster.kubectl(*label, f"{LABEL_SCHEDULE}=cgpu")
        refused = "asks for mode cgpu, but 1 pods hold shares in mode share (default/holder)"
        agent.cluster.wait(lambda: refused in "".join(agent.events("GPUShareModeRefused", "node-2")), about=refused)
        assert agent.allocatable("node-2") == "36"

        agent.clear()
        agent.offers(0, "node-2")
        missing = agent.cluster.wait(lambda: agent.events("GPUModuleNotReady", "node-2"))[-1]
        assert "needs the kernel module cgpu_km" in missing
        agent.cluster.wait(lambda: _unready(agent.cluster) == ["node-2"], about="its plugin is not ready")
    finally:
        agent.cluster.kubectl(*label, f"{LABEL_SCHEDULE}=share")
    agent.offers(36, "node-2")
    agent.cluster.wait(lambda: not _unready(agent.cluster))


def _unready(cluster: Cluster) -> list[str]:
    """Nodes whose plugin is not ready."""
    return [
        row["spec"]["nodeName"]
        for row in cluster.get("pods", "-n", "kube-system", "-l", PLUGIN)["items"]
        if not row["status"]["containerStatuses"][0]["ready"]
    ]


def test_the_plugins_web_server(agent: Agent) -> None:
    agent.run(pod("seen", container("c", 6)), seen=1)

    usage = json.loads(plugin_get(agent, "usage"))
    metrics = plugin_get(agent, "metrics")

    assert [(row["pod"], row["gpu"], row["limitBytes"]) for row in usage["instances"]] == [("seen", 1, 6475 << 20)]
    assert plugin_get(agent, "healthz") == "ok\n"
    limit = next(line for line in metrics.splitlines() if line.startswith("cgpu_instance_memory_limit_bytes{"))
    assert 'namespace="default"' in limit
    assert 'pod="seen"' in limit
    assert float(limit.split()[-1]) == 6475 << 20


def test_nothing_of_a_pod_stays_on_its_node(agent: Agent) -> None:
    agent.run(pod("gone", container("c", 6)), gone=1)
    agent.cluster.wait(lambda: len(cdi_files(agent.cluster, "node-1")) == 1, about="the pod's file, no earlier pod's")

    agent.clear()

    agent.cluster.wait(lambda: cdi_files(agent.cluster, "node-1") == [])
    agent.cluster.wait(lambda: grants(agent.cluster, "node-1") == [])
