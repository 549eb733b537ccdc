# SPDX-License-Identifier: Apache-2.0
"""The scripts of deploy/ that need no virtual machine to be tried."""
