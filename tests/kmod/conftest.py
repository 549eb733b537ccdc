# SPDX-License-Identifier: Apache-2.0
"""The virtual machine that the tests of the module share."""

from tests.vm.fixtures import vm, vm_pool  # noqa: F401
