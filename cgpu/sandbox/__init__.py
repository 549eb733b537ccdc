# SPDX-License-Identifier: Apache-2.0
"""A real Kubernetes on this machine, in namespaces of its own."""
