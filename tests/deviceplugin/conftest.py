# SPDX-License-Identifier: Apache-2.0
"""The whole device plugin, as its process wires it, on a fake kubelet's sockets and a fake API server."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cgpu.cards import card_uuid
from cgpu.core.annotations import decode_devices, encode_allocation
from cgpu.core.model import Card, Share
from cgpu.core.names import ANNOTATION_ALLOCATION, ANNOTATION_DEVICES, RESOURCE_MEM
from cgpu.settings import Address
from deviceplugin.__main__ import Plugin
from deviceplugin.instances import Instances
from deviceplugin.options import Options
from tests.fakes import FakeApi, FakeKubelet, Wire

T4 = "model: Tesla T4, memMiB: 15109"
UUIDS = [card_uuid("node-a", index) for index in range(4)]


async def until(condition: Callable[[], Any], what: str = "", seconds: float = 60.0) -> Any:
    """Poll until the condition holds, and hand its value back."""
    end = asyncio.get_running_loop().time() + seconds
    while not (value := condition()):
        assert asyncio.get_running_loop().time() < end, what or condition
        await asyncio.sleep(0.02)
    return value


def bound(pod: Wire, **cards: int | list[int]) -> Wire:
    """The pod with the binding's annotation: container → card number, or numbers when it has several."""
    sizes = {
        row["name"]: int(row["resources"]["limits"].get(RESOURCE_MEM, 0))
        for key in ("initContainers", "containers")
        for row in pod["spec"][key]
    }
    allocation = {}
    for name, numbers in cards.items():
        indices = numbers if isinstance(numbers, list) else [numbers]
        allocation[name] = {UUIDS[index]: Share(sizes[name] // len(indices)) for index in indices}
    pod["metadata"]["annotations"][ANNOTATION_ALLOCATION] = encode_allocation(allocation)
    return pod


class Bench:
    """A node: its folders, its kubelet, its API server and the plugin on them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cards_file = folder / "cards.yaml"
        self.api = FakeApi({"ack.node.gpu.schedule": "share"})
        self.kubelet = FakeKubelet(folder / "kubelet", folder / "cdi")
        self.plugin: Plugin
        self.task: asyncio.Task[None] | None = None
        self.options = Options(
            node="node-a",
            simulate=self.cards_file,
            listen=Address("127.0.0.1", 0),
            kubelet_root=folder / "kubelet",
            cdi_folder=folder / "cdi",
            run_folder=folder / "run",
            proc_root=folder / "proc",
        )

    def write_cards(self, *rows: str) -> None:
        """One row a card, in YAML flow style."""
        lines = [f"  - {{{row}}}" for row in rows]
        temporary = self.folder / "cards.new"
        temporary.write_text("\n".join(["cards:", *lines]))
        temporary.replace(self.cards_file)

    async def start(self, enforced: Instances | None = None, **options: Any) -> None:
        """Start a plugin process."""
        self.options = replace(self.options, **options)
        self.plugin = Plugin(self.options, self.api, enforced)  # type: ignore[arg-type]
        self.task = asyncio.create_task(self.plugin.run())

    async def stop(self) -> None:
        """End the plugin process."""
        if self.task is not None:
            self.task.cancel()
            with suppress(asyncio.CancelledError):
                await self.task

    async def ready(self, units: int) -> None:
        """Wait until the kubelet counts the units."""
        await self.kubelet.devices_are(RESOURCE_MEM, units)

    async def run(self, pod: Wire, *containers: str) -> list[dict[str, str]]:
        """Bind, admit and start a pod; what its containers see."""
        self.api.put_pod(pod)
        await self.kubelet.admit(pod)
        return [await self.kubelet.run_container(pod, name) for name in containers]

    def published(self) -> tuple[Card, ...] | None:
        """The node annotation."""
        text = self.api.node["metadata"]["annotations"].get(ANNOTATION_DEVICES)
        return None if text is None else decode_devices(text)

    def events(self, reason: str) -> list[str]:
        """Messages of the events with this reason."""
        return [message for _, _, found, message in self.api.events if found == reason]


@pytest.fixture
async def node() -> AsyncIterator[Bench]:
    """A node with two T4 in mode share; the plugin is not started. Its folder's name is short: socket paths are."""
    async with AsyncExitStack() as stack:
        bench = Bench(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cgpu"))))
        bench.write_cards(T4, T4)
        await bench.kubelet.start()
        stack.push_async_callback(bench.kubelet.stop)
        stack.push_async_callback(bench.stop)
        yield bench


@pytest.fixture
async def started(node: Bench) -> Bench:
    """The same node with the plugin serving its 28 units."""
    await node.start()
    await node.ready(28)
    return node
