# SPDX-License-Identifier: Apache-2.0
"""Tests with a real Docker in the virtual machine."""
