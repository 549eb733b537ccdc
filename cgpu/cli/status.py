# SPDX-License-Identifier: Apache-2.0
"""How every command ends: one text on standard error, and an exit status that says whose turn it is."""

import os
import sys
from collections.abc import Callable

from cgpu.core.errors import CgpuError, InputError


def ended(program: str, call: Callable[[], int | None]) -> int:
    """Exit status of `call`: its own (None is 0), 2 for bad input, 1 for what did not work, 130, silently, when interrupted."""
    try:
        return call() or 0
    except CgpuError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    except BrokenPipeError:  # the reader of our output has enough; the interpreter must not trip over it once more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130
