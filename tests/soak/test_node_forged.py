# SPDX-License-Identifier: Apache-2.0
"""Ways round the scheduler to a node with the module: the container never starts and the kernel makes nothing."""

import json
from collections.abc import Iterator

import pytest

from cgpu.core.names import (
    ANNOTATION_ALLOCATION,
    EVENT_ALLOCATE_FAILED,
    LABEL_IGNORE,
    SCHEDULER_NAME,
)
from tests.cluster.agent import ACCOUNT
from tests.cluster.harness import FORBIDDEN, Cluster
from tests.node.nodes import (
    LONG_S,
    NODE,
    instances,
    manifest,
    nothing_left,
    ready,
    restart_plugin,
    restarts,
    said,
    share,
    shown,
    started,
)

THEIRS = "theirs"
"""A scheduler that is not ours: none of that name runs, so nobody but the test binds."""


@pytest.fixture(scope="module")
def neighbour(node: Cluster) -> Iterator[Cluster]:
    """A pod of 8 that keeps to the rules."""
    nothing_left(node)
    started(node, manifest("honest", 8))
    yield node
    node.delete("pod", "honest")


def made(way: str) -> str:
    """A pod of 3 GiB that comes to the node by a way round the scheduler; its text."""
    pod = json.loads(manifest("stray", 3))
    if way == "nodeName":
        pod["spec"] |= {"nodeName": NODE, "schedulerName": SCHEDULER_NAME}
        return json.dumps(pod)
    pod["spec"]["schedulerName"] = THEIRS
    pod["metadata"]["labels"] = {LABEL_IGNORE: "true"}
    return json.dumps(pod)


@pytest.mark.parametrize(
    "way",
    [
        pytest.param("nodeName", id="a preset nodeName"),
        pytest.param("binding", id="a direct Binding of a pod that opted out"),
    ],
)
def test_a_pod_that_the_books_do_not_have_is_given_nothing(neighbour: Cluster, way: str) -> None:
    before = instances(neighbour)
    neighbour.kubectl("create", "-f", "-", text=made(way))
    try:
        if way != "nodeName":
            target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "stray"}, "target": target}
            path = "/api/v1/namespaces/default/pods/stray/binding"
            neighbour.kubectl("create", "--raw", path, "-f", "-", text=json.dumps(binding))
        neighbour.wait(
            lambda: said(neighbour, EVENT_ALLOCATE_FAILED, "stray", "stray"), LONG_S, about="the refusal as an event"
        )
        [status] = neighbour.get("pod", "stray")["status"]["containerStatuses"]
        assert "waiting" in status["state"]
        assert instances(neighbour) == before
        assert shown(neighbour, "honest") == share(8)
    finally:
        neighbour.delete("pod", "stray")


def test_an_edited_allocation_is_refused_and_in_the_schedulers_name_it_gives_a_pod_nothing(neighbour: Cluster) -> None:
    """What runs is left alone, by a plugin that starts anew too; a container is not started again until it is undone."""
    before = instances(neighbour)
    given = neighbour.get("pod", "honest")["metadata"]["annotations"][ANNOTATION_ALLOCATION]
    edit = ("annotate", "--overwrite", "pod", "honest")
    wanted = f"{ANNOTATION_ALLOCATION}={everything(given)}"
    assert FORBIDDEN in neighbour.try_kubectl(*edit, wanted).stderr

    neighbour.kubectl(*edit, wanted, f"--as={ACCOUNT}")
    try:
        restart_plugin(neighbour)
        assert shown(neighbour, "honest") == share(8)
        neighbour.node_exec(NODE, ["pkill", "-KILL", "-x", "sleep"])
        neighbour.wait(
            lambda: said(neighbour, EVENT_ALLOCATE_FAILED, "honest", "the annotation was changed"),
            LONG_S,
            about="it is told why the container does not start",
        )
        assert instances(neighbour) == before
    finally:
        neighbour.kubectl(*edit, f"{ANNOTATION_ALLOCATION}={given}", f"--as={ACCOUNT}")
    ready(neighbour, "honest")
    neighbour.wait(lambda: restarts(neighbour, "honest") > [0], LONG_S, about="the container starts again")
    neighbour.wait(lambda: shown(neighbour, "honest") == share(8), LONG_S, about="it has its share again")
    assert instances(neighbour) == before


def everything(given: str) -> str:
    """An allocation, made to one of the whole card."""
    return json.dumps(
        {
            container: {uuid: {**part, "mem": 14} for uuid, part in parts.items()}
            for container, parts in json.loads(given).items()
        }
    )
