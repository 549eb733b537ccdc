# SPDX-License-Identifier: Apache-2.0
"""The kernel module: its copy of NVIDIA's interface, its pure parts on the host, the whole of it in a VM."""
