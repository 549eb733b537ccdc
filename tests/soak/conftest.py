# SPDX-License-Identifier: Apache-2.0
"""The same clusters as the cluster tests' and the node tests', and the virtual machine that tests share."""

from collections.abc import Iterator

import pytest

from tests.cluster.conftest import cluster, sandbox
from tests.cluster.harness import Cluster
from tests.node.conftest import node, pods
from tests.node.nodes import nothing_left
from tests.vm.fixtures import vm, vm_pool

__all__ = ["cluster", "node", "pods", "sandbox", "vm", "vm_pool"]


@pytest.fixture
def empty(node: Cluster) -> Iterator[Cluster]:
    """The node without pods, before and after."""
    node.delete("pod", "--all")
    nothing_left(node)
    yield node
    node.delete("pod", "--all")
