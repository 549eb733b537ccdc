# SPDX-License-Identifier: Apache-2.0
"""`make proto`: generate cgpu/kubelet from proto/; with `--check`, say what differs and change nothing.

The upstream files are all called api.proto; protoc is told their place in our package by its path mappings, so that
the generated imports read `from cgpu.kubelet import …`.
"""

import sys
import tempfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "cgpu" / "kubelet"
SPDX = "# SPDX-License-Identifier: Apache-2.0\n"
SOURCES = {
    "deviceplugin": "deviceplugin/v1beta1/api.proto",
    "podresources": "podresources/v1/api.proto",
    "pods": "pods/v1alpha1/api.proto",
}


def generate(folder: Path) -> None:
    """Write the generated modules under `folder`/cgpu/kubelet. Raises RuntimeError when protoc refuses a file."""
    for name, source in SOURCES.items():
        virtual = f"cgpu/kubelet/{name}.proto"
        arguments = [
            "protoc",
            f"-I{virtual}={ROOT / 'proto' / source}",
            f"-I{files('grpc_tools') / '_proto'}",
            f"--python_out={folder}",
            f"--pyi_out={folder}",
            f"--grpc_python_out={folder}",
            virtual,
        ]
        if protoc.main(arguments):
            raise RuntimeError(f"protoc refused {source}")
    for path in (folder / "cgpu" / "kubelet").iterdir():
        path.write_text(SPDX + path.read_text())


def differences(folder: Path) -> Iterator[str]:
    """Names of generated files that are missing, extra or different in the checkout."""
    fresh = {path.name: path.read_text() for path in (folder / "cgpu" / "kubelet").iterdir()}
    kept = {path.name: path.read_text() for path in TARGET.glob("*_pb2*")}
    yield from sorted(name for name in fresh.keys() | kept.keys() if fresh.get(name) != kept.get(name))


def main() -> int:
    """Exit status 1 when `--check` finds a difference."""
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        changed = list(differences(Path(folder)))
        if "--check" in sys.argv[1:]:
            print("\n".join(f"cgpu/kubelet/{name} is not what proto/ gives: run `make proto`" for name in changed))
            return 1 if changed else 0
        for name in changed:
            fresh = Path(folder) / "cgpu" / "kubelet" / name
            if fresh.exists():
                (TARGET / name).write_text(fresh.read_text())
            else:
                (TARGET / name).unlink()
        print(f"proto: {len(changed)} files changed in cgpu/kubelet")
    return 0


if __name__ == "__main__":
    sys.exit(main())
