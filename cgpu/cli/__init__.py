# SPDX-License-Identifier: Apache-2.0
"""The commands people type, one file each."""
