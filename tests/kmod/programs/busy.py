# SPDX-License-Identifier: Apache-2.0
"""Holds 64 MiB, allocates and launches until a file appears; counts its rounds in a file and prints what failed.

busy.py END COUNT
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "nvsim/programs"))

from libcuda import Cuda, CudaError, Spin

MIB = 1 << 20


def one_round(cuda: Cuda, spin: Spin) -> None:
    """An allocation, a kernel of a millisecond, a copy, a free."""
    memory = cuda.alloc(2 * MIB)
    spin.launch(1_000_000)
    cuda.write(memory, b"x" * 4096)
    cuda.sync()
    cuda.free(memory)


def main() -> None:
    end, count = Path(sys.argv[1]), Path(sys.argv[2])
    cuda = Cuda()
    spin = Spin(cuda)
    held = cuda.alloc(64 * MIB)
    rounds, errors = 0, []
    while not end.exists():
        try:
            one_round(cuda, spin)
        except CudaError as error:
            errors.append(str(error))
        rounds += 1
        count.write_text(f"{rounds}\n")
    cuda.free(held)
    print(json.dumps({"rounds": rounds, "errors": errors}), flush=True)


if __name__ == "__main__":
    main()
