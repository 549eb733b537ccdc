# SPDX-License-Identifier: Apache-2.0
"""What each part believes that the pods of the virtual machine hold, compared; and its kernel's complaints."""

import json
from typing import Any, Final

from cgpu.sandbox.release import NAMESPACE
from tests.cluster.books import Sizes, annotated, booked, extender_books
from tests.cluster.harness import Cluster
from tests.node.nodes import DAEMONSET, LONG_S, NODE, rows, share

_LISTED: Final = """
import asyncio, json, pathlib
from cgpu.core.names import RESOURCE_MEM
from deviceplugin.pairing import KubeletBooks

async def main():
    books = await KubeletBooks(pathlib.Path("/var/lib/kubelet")).read()
    held = [row for row in books.listed if row.resource == RESOURCE_MEM]
    print(json.dumps([[f"{row.namespace}/{row.name}", row.container, len(row.ids)] for row in held]))

asyncio.run(main())
"""
_ALARMS: Final = ("BUG:", "WARNING:", "Oops", "refcount_t", "general protection", "Call Trace")
_STARVED: Final = ("soft lockup", "watchdog:", "rcu")  # a host that gives no time is no fault of the node's kernel


def agree(cluster: Cluster) -> None:
    """Wait until annotations, PodResources, the extender and the kernel have the same sizes of pods that all run."""
    cluster.wait(lambda: _agree(cluster), 2 * LONG_S, about="annotations, kubelet, extender and kernel agree")


def _agree(cluster: Cluster) -> bool:
    _drop_refused(cluster)
    given = annotated(cluster, NODE)
    assert given, "no pod is bound"
    waiting = [pod["metadata"]["name"] for pod in _pods(cluster) if pod["spec"].get("nodeName") and not _runs(pod)]
    assert not waiting, f"{waiting} do not run yet"
    listed = podresources(cluster)
    assert listed == given, f"PodResources {listed}, annotations {given}"
    kernel = sorted(row.mem >> 20 for row in rows(cluster))
    assert kernel == sorted(map(share, given.values())), f"kernel {kernel}, annotations {given}"
    told = extender_books(cluster)[NODE]
    assert told == booked(cluster, NODE), f"extender {told}, annotations {given}"
    return True


def podresources(cluster: Cluster) -> Sizes:
    """What the kubelet's PodResources says that it handed out, asked from the plugin's pod."""
    words = ("exec", "-n", NAMESPACE, DAEMONSET, "--", "/opt/cgpu/bin/python3", "-c", _LISTED)
    return {(pod, container): size for pod, container, size in json.loads(cluster.kubectl(*words))}


def _pods(cluster: Cluster) -> list[dict[str, Any]]:
    return list(cluster.get("pods")["items"])


def _runs(pod: dict[str, Any]) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any(row["type"] == "Ready" and row["status"] == "True" for row in conditions)


def _drop_refused(cluster: Cluster) -> None:
    """Pods that the kubelet refused, while the plugin was away, stay for ever as what they are; nobody replaces them."""
    refused = [pod["metadata"]["name"] for pod in _pods(cluster) if pod["status"]["phase"] == "Failed"]
    if refused:
        cluster.delete("pod", *refused)


def complaints(cluster: Cluster) -> list[str]:
    """What the kernel of the machine complains about."""
    lines = cluster.node_exec(NODE, ["dmesg"]).splitlines()
    bad = [line for line in lines if any(sign in line for sign in _ALARMS)]
    return [line for line in bad if not any(sign in line for sign in _STARVED)]
