# SPDX-License-Identifier: Apache-2.0
"""The same clusters as the cluster tests' and the node tests', and the virtual machine that tests share."""

from tests.cluster.conftest import cluster, sandbox
from tests.node.conftest import node, pods
from tests.vm.fixtures import vm, vm_pool

__all__ = ["cluster", "node", "pods", "sandbox", "vm", "vm_pool"]
