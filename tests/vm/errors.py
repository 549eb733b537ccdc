# SPDX-License-Identifier: Apache-2.0
"""What can go wrong on the test bench, each said in one sentence with the remedy."""


class BenchError(Exception):
    """The bench cannot do what was asked; the text names the value, the rule and the remedy."""


class GuestCrashError(BenchError):
    """The guest kernel panicked, warned or stopped; carries the end of its console."""
