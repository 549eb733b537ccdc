# SPDX-License-Identifier: Apache-2.0
"""The test bench: a Debian virtual machine in which the project's kernel modules run beside NVIDIA's own user space."""
