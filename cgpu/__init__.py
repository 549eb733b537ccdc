# SPDX-License-Identifier: Apache-2.0
"""Share one NVIDIA GPU between containers."""

__version__ = "1.0.0"
