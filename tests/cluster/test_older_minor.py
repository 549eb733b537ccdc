# SPDX-License-Identifier: Apache-2.0
"""The main path on the older Kubernetes, whose pods have to name our scheduler: the shorter list beside the full one."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cgpu.sandbox import versions
from cgpu.sandbox.lifecycle import Plan, down, up
from cgpu.sandbox.spec import default_nodes
from tests.cluster.agent import container, pod
from tests.cluster.harness import Cluster, state_folder

PROJECT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def older() -> Iterator[Cluster]:
    """One node with two T4 of 14 GiB, with our chart."""
    folder = state_folder("older")
    try:
        made = Cluster(up(Plan(folder, default_nodes(1), versions.OLDER_KUBERNETES, PROJECT), lambda _: None), PROJECT)
        made.install()
        yield made
    finally:
        down(folder, lambda _: None)


def create(cluster: Cluster, *pods: dict[str, object]) -> None:
    cluster.kubectl("create", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))


def test_a_pod_without_our_scheduler_is_refused_with_the_line_to_add(older: Cluster) -> None:
    wanted = pod("nameless", container("main", 3))
    del wanted["spec"]["schedulerName"]

    refused = older.try_kubectl("create", "-f", "-", text=json.dumps(wanted))

    assert refused.returncode != 0
    assert "schedulerName: cgpu-scheduler" in refused.stderr


def test_pods_share_a_card_and_give_it_back(older: Cluster) -> None:
    create(older, pod("first", container("main", 3)), pod("second", container("a", 2), container("b", 9)))
    older.wait_for("condition=Ready", "pod/first", "pod/second")

    told = older.kubectl("exec", "first", "--", "env")
    shown = older.kubectl("exec", "second", "-c", "b", "--", "env")
    assert "ALIYUN_COM_GPU_MEM_CONTAINER=3\n" in told
    assert "ALIYUN_COM_GPU_MEM_DEV=14\n" in told
    assert "ALIYUN_COM_GPU_MEM_CONTAINER=9\n" in shown
    assert "ALIYUN_COM_GPU_MEM_POD=11\n" in shown

    create(older, pod("third", container("main", 15)))
    older.wait(lambda: "no single GPU has 15 GiB at all" in older.kubectl("events", "--for", "pod/third"))
    older.delete("pod", "first", "second", "third")
    create(older, pod("whole", container("main", 14)))
    older.wait_for("condition=Ready", "pod/whole")
