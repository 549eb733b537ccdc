# SPDX-License-Identifier: Apache-2.0
"""The wrapper as a command on a machine in a folder: `python -m tests.runtime.wrapper FOLDER RUNTIME WORDS...`."""

import sys
from pathlib import Path

from cgpu.runtime.__main__ import main
from tests.runtime.fakes import Machine


def run() -> int:
    """What the command line says."""
    return main(sys.argv[2:], Machine(Path(sys.argv[1])).tools)


if __name__ == "__main__":
    sys.exit(run())
