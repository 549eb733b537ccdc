# SPDX-License-Identifier: Apache-2.0
"""The chart as Helm sees it: the real program, the pinned version, no cluster."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from cgpu.sandbox.binaries import ensure
from cgpu.sandbox.progress import cache_folder
from cgpu.sandbox.release import CHART, RELEASE
from cgpu.sandbox.versions import HELM_SOURCE

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / CHART
GOLDEN = Path(__file__).parent / "data" / "defaults.yaml"
MUTATING = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
Manifest = dict[str, Any]


def helm(*words: str) -> "subprocess.CompletedProcess[str]":
    """Helm with these arguments."""
    program = ensure(cache_folder(), (HELM_SOURCE,), lambda text: print(text, file=sys.stderr, flush=True))["helm"]
    return subprocess.run([str(program), *words], capture_output=True, text=True)


def template(*values: str, kubernetes: str = "1.37.2", served: Sequence[str] = (MUTATING,)) -> str:
    """The manifests for these `key=value`, as a text. `served`: what the cluster's API has beyond the usual."""
    words = [f"--set={value}" for value in values] + [f"--api-versions={name}" for name in served]
    where = ["--namespace=kube-system", f"--kube-version={kubernetes}"]
    done = helm("template", RELEASE, str(FOLDER), *where, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def render(*values: str, kubernetes: str = "1.37.2", served: Sequence[str] = (MUTATING,)) -> list[Manifest]:
    """The manifests for these `key=value`."""
    text = template(*values, kubernetes=kubernetes, served=served)
    return [row for row in yaml.safe_load_all(text) if row]


def refusal(*values: str) -> str:
    """What Helm says against these `key=value`."""
    done = helm("template", RELEASE, str(FOLDER), *(f"--set={value}" for value in values))
    assert done.returncode != 0, f"accepted: {values}"
    return done.stderr


def one(manifests: Sequence[Manifest], kind: str, name: str) -> Manifest:
    """The manifest of that kind and name."""
    found = [row for row in manifests if (row["kind"], row["metadata"]["name"]) == (kind, name)]
    assert len(found) == 1, f"{len(found)} × {kind} {name}"
    return found[0]


def main(argv: Sequence[str]) -> int:
    """Lint, for `make check`: warnings count. `--refresh` writes the golden file instead."""
    if argv == ["--refresh"]:
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(template())
        return 0
    done = helm("lint", "--strict", "--quiet", str(FOLDER))
    print(done.stdout + done.stderr, end="")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
