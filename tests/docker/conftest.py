# SPDX-License-Identifier: Apache-2.0
from tests.vm.fixtures import vm, vm_pool  # noqa: F401
