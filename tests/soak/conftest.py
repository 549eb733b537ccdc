# SPDX-License-Identifier: Apache-2.0
"""The same cluster as the cluster tests', once a session, and the virtual machine that tests share."""

from tests.cluster.conftest import cluster, sandbox
from tests.vm.fixtures import vm, vm_pool

__all__ = ["cluster", "sandbox", "vm", "vm_pool"]
