# SPDX-License-Identifier: Apache-2.0
"""The module on a node: refused, and exchanged for another version; what the plugin says of it."""

import base64
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from cgpu.core.names import EVENT_MODULE_NOT_READY
from cgpu.sandbox.release import NAMESPACE
from tests.cluster.harness import Cluster
from tests.node.nodes import (
    DAEMONSET,
    LONG_S,
    NODE,
    PROJECT,
    holding,
    instances,
    manifest,
    nothing_left,
    offered,
    restart_plugin,
    said,
    share,
    shown,
    started,
)
from tests.vm.bench import Choice
from tests.vm.cache import cache_root
from tests.vm.kernels import build_modules, fetch

SOURCES: Final = "/run/containerd/io.containerd.runtime.v2.task/k8s.io/*/rootfs/usr/src/cgpu_km"
"""Of the module, in the plugin's container as the node sees it: a version written there is what a newer chart brings."""
UNLOAD: Final = "rmmod $(lsmod | grep -o '^cgpu_core[^ ]*') cgpu_km"


def release(cluster: Cluster) -> str:
    """Of the node's kernel."""
    return cluster.node_exec(NODE, ["uname", "-r"]).strip()


@contextmanager
def hidden(cluster: Cluster, *folders: str) -> Iterator[None]:
    """Folders out of the way while the block runs; what was made in their place meanwhile goes."""
    kept = {folder: f"/run/hidden-{number}" for number, folder in enumerate(folders)}
    for folder, place in kept.items():
        cluster.node_exec(NODE, ["mv", folder, place])
    try:
        yield
    finally:
        for folder, place in kept.items():
            cluster.node_exec(NODE, ["sh", "-c", f"rm -rf {folder}; mv {place} {folder}"])


def test_a_module_that_cannot_be_loaded_is_told_and_comes_back_without_a_restart(node: Cluster) -> None:
    nothing_left(node)
    folder = f"/lib/modules/{release(node)}"
    with hidden(node, f"{folder}/updates", f"{folder}/build"):
        node.node_exec(NODE, ["sh", "-c", UNLOAD])
        node.wait(
            lambda: said(node, EVENT_MODULE_NOT_READY, NODE, f"linux-headers-{release(node)}"),
            LONG_S,
            about="the node says why, and what to do",
        )
        node.wait(lambda: offered(node) == 0, LONG_S, about="nothing is offered")
    node.wait(lambda: offered(node) == 14, LONG_S, about="the card is offered again")


@pytest.mark.timeout(3600)
def test_a_newer_core_is_taken_below_running_pods_and_a_newer_front_waits_for_the_last_of_them(
    node: Cluster,
) -> None:
    """Then the chart is taken back: the older front and core run again."""
    nothing_left(node)
    made = {"1.0.1": built("1.0.1"), "1.0.2": built("1.0.2", "CFLAGS_MODULE=-DCGPU_LAYOUT=2")}
    started(node, manifest("running", 6))
    before = instances(node)
    try:
        with holding(node, "running"):
            bring(node, "1.0.1", made["1.0.1"])
            node.wait(lambda: version(node) == "1.0.1", LONG_S, about="the core is exchanged")
        assert instances(node) == before
        assert shown(node, "running") == share(6)

        bring(node, "1.0.2", made["1.0.2"])
        node.wait(
            lambda: said(node, EVENT_MODULE_NOT_READY, NODE, "when no pod has a share on this node any more"),
            LONG_S,
            about="the node says what it waits for",
        )
        assert version(node) == "1.0.1"
        assert shown(node, "running") == share(6)
        node.delete("pod", "running")
        node.wait(lambda: version(node) == "1.0.2", LONG_S, about="front and core are loaded anew")
        node.wait(lambda: offered(node) == 14, LONG_S, about="the card is offered again")
    finally:
        node.delete("pod", "running")
        nothing_left(node)
        folder = f"/lib/modules/{release(node)}/updates/dkms"
        node.node_exec(NODE, ["sh", "-c", f"rm {folder}/*; cp /opt/dkms/cgpu_*.ko {folder}/"])
        restart_plugin(node)
    node.wait(lambda: version(node) == "1.0.0", LONG_S, about="the image's own version runs again")
    node.wait(lambda: offered(node) == 14, LONG_S, about="the card is offered again")


def version(cluster: Cluster) -> str:
    """Of the running core."""
    return cluster.node_exec(NODE, ["cat", "/proc/cgpu_km/version"]).strip()


def built(wanted: str, *flags: str) -> Path:
    """Front and core of another version for the node's kernel; its own compiler would take an emulated quarter of an hour."""
    source = cache_root() / "kmod-of" / wanted / "kmod"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(PROJECT / "kmod", source, ignore=shutil.ignore_patterns("nvsim", "tests"))
    header = source / "cgpu.h"
    text, count = re.subn(r'(?m)^(#define CGPU_VERSION\s+)".*"', rf'\1"{wanted}"', header.read_text())
    assert count == 1
    header.write_text(text)
    return build_modules(fetch(Choice().kernel), source, *flags)


def bring(cluster: Cluster, wanted: str, modules: Path) -> None:
    """The node gets the modules as DKMS would install them, and the plugin's sources become those of that version."""
    target = f"/host/lib/modules/{release(cluster)}/updates/dkms"
    for file in modules.glob("cgpu_*.ko"):
        words = ("exec", "-i", "-n", NAMESPACE, DAEMONSET, "--", "sh", "-c", f"base64 -d > {target}/{file.name}")
        cluster.kubectl(*words, text=base64.b64encode(file.read_bytes()).decode())
    change = f"s/^(#define CGPU_VERSION[^0-9]*)[0-9.]+/\\1{wanted}/"
    cluster.node_exec(NODE, ["sh", "-c", f"sed -i -E '{change}' {SOURCES}/cgpu.h"])
