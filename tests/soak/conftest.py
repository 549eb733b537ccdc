# SPDX-License-Identifier: Apache-2.0
"""The same cluster as the cluster tests', once a session, and the virtual machine that tests share."""

from tests.cluster.conftest import cluster, sandbox
from tests.soak.nodes import node
from tests.vm.fixtures import vm, vm_pool

__all__ = ["cluster", "node", "sandbox", "vm", "vm_pool"]
