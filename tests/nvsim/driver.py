# SPDX-License-Identifier: Apache-2.0
"""Programs on the simulated driver in user space: `libnvsim.so` is built into the cache and preloaded.

    python -m tests.nvsim.driver 535 nvidia-smi -q        # cards by CARDS=T4,A10, memory by TOTAL_MIB=6043

The same core runs in `nvsim.ko`; here it is one process's own machine, needs no privilege and starts at once.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.vm.apt import run as run_checked
from tests.vm.cache import cache_root, digest, ensure, file_digest
from tests.vm.packages import fetch

PROJECT: Final = Path(__file__).resolve().parents[2]
SOURCES: Final = PROJECT / "kmod/nvsim"
PROGRAMS: Final = Path(__file__).parent / "programs"
BRANCHES: Final = ("418", "450", "460", "470", "535", "550")
CARDS: Final = ("T4", "V100", "A10", "A100", "P4", "P100", "H100")
FIRST_BRANCH: Final = {"A100": "450", "A10": "460", "H100": "535"}


def knows(branch: str, card: str) -> bool:
    """True when a driver of that branch exists that supports the card."""
    return BRANCHES.index(branch) >= BRANCHES.index(FIRST_BRANCH.get(card, BRANCHES[0]))


def library() -> Path:
    """`libnvsim.so` of the working tree, built when its sources changed."""
    sources = [
        *SOURCES.glob("*.[ch]"),
        *SOURCES.glob("user/**/*.[ch]"),
        *SOURCES.glob("../abi/*.h"),
        SOURCES / "user/Makefile",
    ]
    recipe = file_digest(sources)

    def build(place: Path) -> None:
        run_checked(["make", "-s", "-C", str(SOURCES / "user"), f"OUT={place}"])

    return (
        ensure(cache_root() / "nvsim" / digest(recipe), recipe, build, "the simulated driver for user space")
        / "libnvsim.so"
    )


def bare(branch: str, root: str, cards: str = "T4", total_mib: str = "0") -> dict[str, str]:
    """What a program needs that brings nothing of NVIDIA's."""
    return {
        **os.environ,
        "LD_PRELOAD": str(library()),
        "NVSIM_BRANCH": branch,
        "NVSIM_CARDS": cards,
        "NVSIM_TOTAL_MIB": total_mib,
        "NVSIM_ROOT": root,
        "NVSIM_LOG": f"{root}/log",
    }


def environment(branch: str, cards: str, total_mib: str, root: str) -> dict[str, str]:
    """What a program on the simulated driver needs in its environment."""
    user_space = fetch(branch)
    return {
        **bare(branch, root, cards, total_mib),
        "LD_LIBRARY_PATH": str(user_space / "lib"),
        "PATH": f"{user_space / 'bin'}:{os.environ['PATH']}",
        "CUDA_CACHE_PATH": str(cache_root() / "nvsim" / "jit"),
    }


def run(
    branch: str,
    argv: Sequence[str],
    *,
    cards: str = "T4",
    total_mib: str = "0",
    env: Mapping[str, str] | None = None,
    timeout: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Runs a program on a simulated machine of its own; its output, with the driver's log as `stderr`'s end."""
    with tempfile.TemporaryDirectory(prefix="nvsim-") as root:
        settings = {**environment(branch, cards, total_mib, root), **(env or {})}
        done = subprocess.run(list(argv), env=settings, capture_output=True, text=True, timeout=timeout, check=False)
        log = Path(root, "log")
        done.stderr += log.read_text() if log.exists() else ""
        return done


if __name__ == "__main__":
    result = run(
        sys.argv[1], sys.argv[2:], cards=os.environ.get("CARDS", "T4"), total_mib=os.environ.get("TOTAL_MIB", "0")
    )
    print(result.stdout, end="")
    print(result.stderr, end="", file=sys.stderr)
    sys.exit(result.returncode)
