# SPDX-License-Identifier: Apache-2.0
"""The kernel's own judges over both modules, on both kernels: minutes, so not in `make test`."""

import pytest

from tests.kmod.style import check


@pytest.mark.timeout(3600)
def test_w1_sparse_and_checkpatch_find_nothing() -> None:
    check()
