# SPDX-License-Identifier: Apache-2.0
"""`kubectl inspect cgpu`: what is booked on which card, and what is really used.

Books come from the annotations of nodes and pods; use comes from each node's device plugin through the API server's
pod proxy, and is `-` where that does not answer.
"""

import argparse
import asyncio
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.live import Live
from rich.text import Text

from cgpu.cli import resize
from cgpu.cli.status import ended
from cgpu.core.annotations import decode_devices
from cgpu.core.errors import AnnotationError, InputError, UnavailableError
from cgpu.core.model import Node, Pod
from cgpu.core.names import ANNOTATION_DEVICES, PLUGIN_PORT
from cgpu.core.pods import asks_for_gpu
from cgpu.core.report import NodeRow, as_json, details, node_row, table
from cgpu.kube.client import KubeClient

PLUGIN_SELECTOR: Final = "app.kubernetes.io/name=ack-ai-installer,app.kubernetes.io/component=device-plugin"
USAGE_SECONDS: Final = 3.0
Used = dict[str, int | None]
Unserved = dict[str, list[str]]
Told = tuple[Used, Unserved]
"""By `namespace/name`: bytes that the pod uses, and its containers that run without the share that is booked."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="kubectl inspect cgpu",
        description="Show which pods hold how much memory of which GPU.",
        epilog="`kubectl inspect cgpu resize NAMESPACE/POD --gpu-mem GIB` changes a running container's share.",
    )
    made.add_argument("node", nargs="?", metavar="NODE", help="only this node")
    made.add_argument("-d", "--details", action="store_true", help="one row a pod, with what is really used")
    made.add_argument("-o", "--output", choices=["table", "json"], default="table", help="table (default) or json")
    made.add_argument(
        "--watch", nargs="?", const=1.0, type=_seconds, metavar="SECONDS", help="again every SECONDS (default 1)"
    )
    made.add_argument("--kubeconfig", type=Path, help="kubeconfig file; default $KUBECONFIG or ~/.kube/config")
    return made


def _seconds(written: str) -> float:
    try:
        seconds = float(written)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"{written!r} is no number of seconds from 0.1 to 3600")
    return seconds


async def collect(client: KubeClient, only: str | None) -> list[NodeRow]:
    """The rows of all nodes with cards, or of one node. Raises UnavailableError."""
    listed, pods = await asyncio.gather(client.list_nodes(), client.list_pods())
    nodes = [node for node in listed if only in (None, node.name)]
    if only and not nodes:
        raise InputError(f"no node is named {only!r}; kubectl get nodes lists them")
    ours = [node for node in nodes if ANNOTATION_DEVICES in node.annotations]
    if only and not ours:
        raise InputError(f"node {only} offers no GPU shares: it has no annotation {ANNOTATION_DEVICES}")
    told = await _told(client, [node.name for node in ours])
    placed = defaultdict(list)
    for pod in pods:
        if pod.node and asks_for_gpu(pod):
            placed[pod.node].append(pod)
    return [row for node in ours if (row := _row(node, placed[node.name], told)) is not None]


def _row(node: Node, pods: Iterable[Pod], told: Told) -> NodeRow | None:
    try:
        cards = decode_devices(node.annotations[ANNOTATION_DEVICES])
    except AnnotationError as error:
        print(f"kubectl inspect cgpu: node {node.name}: {error}", file=sys.stderr)
        return None
    return node_row(node.name, node.address, cards, pods, told[0], unserved=told[1])


async def _told(client: KubeClient, nodes: Sequence[str]) -> Told:
    try:
        plugins = await client.list_pods(label_selector=PLUGIN_SELECTOR)
    except UnavailableError:
        return {}, {}
    answers = await asyncio.gather(*(_ask(client, pod) for pod in plugins if pod.node in nodes))
    used = {key: size for sizes, _ in answers for key, size in sizes.items()}
    return used, {key: names for _, rows in answers for key, names in rows.items()}


async def _ask(client: KubeClient, plugin: Pod) -> Told:
    try:
        async with asyncio.timeout(USAGE_SECONDS):
            body = await client.proxy_get(plugin.namespace, plugin.name, PLUGIN_PORT, "/usage")
        usage = json.loads(body)
        return _by_pod(usage), _unserved(usage)
    except (UnavailableError, TimeoutError, ValueError, TypeError, LookupError, AttributeError):
        return {}, {}  # no answer, or none that this version can read


def _by_pod(usage: Mapping[str, Any]) -> Used:
    used: Used = {}
    for row in usage.get("instances", ()):
        key, size = f"{row['namespace']}/{row['pod']}", row["usedBytes"]
        if size is not None:
            used[key] = (used.get(key) or 0) + int(size)
    return used


def _unserved(usage: Mapping[str, Any]) -> Unserved:
    found: Unserved = defaultdict(list)
    for row in usage.get("unserved", ()):
        found[f"{row['namespace']}/{row['pod']}"].append(str(row["container"]))
    return found


def render(rows: Sequence[NodeRow], options: argparse.Namespace) -> str:
    """The text for these options."""
    if options.output == "json":
        return json.dumps(as_json(rows), indent=2)
    return details(rows) if options.details else table(rows)


async def run(options: argparse.Namespace) -> None:
    """Print once, or again and again until interrupted."""
    async with await KubeClient.connect(options.kubeconfig) as client:
        if options.watch is None:
            print(render(await collect(client, options.node), options))
            return
        await _watch(client, options)


async def _watch(client: KubeClient, options: argparse.Namespace) -> None:
    console = Console()
    with Live(console=console, auto_refresh=False) as live:
        while True:
            live.update(Text(render(await collect(client, options.node), options), no_wrap=True), refresh=True)
            await asyncio.sleep(options.watch)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit 0 ok, 1 the API server cannot be reached, 2 usage. `resize` is a command of its own."""
    words = sys.argv[1:] if argv is None else argv
    if words[:1] == ["resize"]:
        return resize.main(words[1:])
    options = parser().parse_args(words)
    return ended("kubectl inspect cgpu", lambda: asyncio.run(run(options)))


if __name__ == "__main__":
    sys.exit(main())
