# SPDX-License-Identifier: Apache-2.0
"""`cgpu`: one command in front of the tools that are not part of a running cluster."""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from cgpu import __version__
from cgpu.cli.status import ended

# each is a module with `main(argv) -> int`, imported only when it is called
COMMANDS: Final = {
    "module": ("cgpu.cli.module", "the kernel module on this machine: build, load, status, unload, upgrade"),
    "sandbox": ("cgpu.cli.sandbox", "a real Kubernetes with simulated cards on this machine"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command named by the first argument; the exit status is 2 for bad input and 1 for what did not work."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in {"-h", "--help"}:
        print(usage())
        return 0
    if words[0] == "--version":
        print(f"cgpu {__version__}")
        return 0
    if words[0] not in COMMANDS:
        print(f"cgpu: no command {words[0]!r}: must be one of {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    return run_command(words[0], words[1:])


def run_command(name: str, words: list[str]) -> int:
    """Run one command; errors of ours become one text on standard error."""
    module = import_module(COMMANDS[name][0])
    return ended(f"cgpu {name}", lambda: module.main(words))


def usage() -> str:
    """What `cgpu --help` prints."""
    rows = [f"  {name:<10} {about}" for name, (_, about) in COMMANDS.items()]
    return "\n".join(["usage: cgpu COMMAND ...", "", *rows, "", "`cgpu COMMAND --help` tells more."])


if __name__ == "__main__":
    sys.exit(main())
