# SPDX-License-Identifier: Apache-2.0
"""One node that is a virtual machine for all tests of a folder: it is gone before those of the next begin."""

from collections.abc import Iterator

import pytest

from tests.cluster.harness import Cluster
from tests.node.nodes import SIZES, machine, manifest, started


@pytest.fixture(scope="package")
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
