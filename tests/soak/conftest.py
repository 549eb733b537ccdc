# SPDX-License-Identifier: Apache-2.0
"""The same cluster as the cluster tests', once a session."""

from tests.cluster.conftest import cluster, sandbox

__all__ = ["cluster", "sandbox"]
