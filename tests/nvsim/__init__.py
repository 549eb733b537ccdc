# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's own user space on the simulated driver's portable core, unprivileged, in one process."""
