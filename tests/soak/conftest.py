# SPDX-License-Identifier: Apache-2.0
"""The same cluster as the cluster tests', once a session, and the virtual machine that tests share."""

from collections.abc import Iterator

import pytest

from tests.cluster.conftest import cluster, sandbox
from tests.cluster.harness import Cluster
from tests.soak.nodes import SIZES, machine, manifest, started
from tests.vm.fixtures import vm, vm_pool

__all__ = ["cluster", "node", "sandbox", "vm", "vm_pool"]


@pytest.fixture(scope="session")
def node() -> Iterator[Cluster]:
    """A cluster with one virtual machine and our chart."""
    with machine() as made:
        yield made


@pytest.fixture(scope="module")
def pods(node: Cluster) -> Iterator[Cluster]:
    """Two pods that fill the card; a container without a share is beside one of them."""
    started(node, manifest("six", 6, beside=0), manifest("eight", 8))
    yield node
    node.delete("pod", *SIZES)
