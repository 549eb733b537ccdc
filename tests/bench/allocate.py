# SPDX-License-Identifier: Apache-2.0
"""What the device plugin adds to a pod's start: Allocate and PreStartContainer, over real gRPC on Unix sockets.

Each figure stands beside a baseline of the same run: a call that does nothing (GetDevicePluginOptions) and the one
List of PodResources that the kubelet's books cost. Client, kubelet and plugin share one process, as the baselines do.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from cgpu.core.names import RESOURCE_MEM
from cgpu.kubelet import deviceplugin_pb2 as dp
from cgpu.kubelet import deviceplugin_pb2_grpc as dp_grpc
from cgpu.kubelet import podresources_pb2 as pr
from cgpu.kubelet import podresources_pb2_grpc as pr_grpc
from tests.deviceplugin.conftest import Bench, bound
from tests.fakes import wire_pod

REPEATS = 400
PODS = 20
PAUSE_S = 0.012  # a kubelet answers 100 List requests a second: measured is a start, not the wait for its budget


@dataclass(frozen=True)
class Figure:
    """One measurement in milliseconds; `baseline_ms`: what the same run needs for the call it is compared with."""

    name: str
    p50_ms: float
    p99_ms: float
    baseline: str
    baseline_ms: float

    def __str__(self) -> str:
        ratio = self.p50_ms / self.baseline_ms
        return (
            f"{self.name:34} p50 {self.p50_ms:7.3f} ms  p99 {self.p99_ms:7.3f} ms"
            f"  {ratio:5.2f} x {self.baseline} ({self.baseline_ms:.3f} ms)"
        )


async def measure(call: Callable[[int], Awaitable[Any]], repeats: int = REPEATS) -> tuple[float, float]:
    """Median and 99th percentile of one call after another, in ms."""
    times = []
    for number in range(repeats):
        start = time.perf_counter()
        await call(number)
        times.append((time.perf_counter() - start) * 1e3)
        await asyncio.sleep(PAUSE_S)
    ordered = sorted(times[repeats // 10 :])
    return statistics.median(ordered), ordered[int(len(ordered) * 0.99)]


async def figures(folder: Path, repeats: int = REPEATS) -> list[Figure]:
    """Everything, on a node of 8 H200 (1,120 ids) with 20 pods."""
    node = Bench(folder)
    node.write_cards("model: H200, memMiB: 143771, count: 8")
    await node.kubelet.start()
    await node.start()
    await node.ready(1120)
    pods = [bound(wire_pod(f"p{i}", 8), app0=i % 4) for i in range(PODS)]
    for pod in pods:
        await node.run(pod, "app0")
    try:
        return await _figures(node, repeats)
    finally:
        await node.stop()
        await node.kubelet.stop()


async def _figures(node: Bench, repeats: int) -> list[Figure]:
    root = node.options.kubelet_root
    ids = [sorted(held) for held in node.kubelet.held.values()]
    async with (
        grpc.aio.insecure_channel(f"unix://{root}/device-plugins/cgpu-gpu-mem.sock") as plugin,
        grpc.aio.insecure_channel(f"unix://{root}/pod-resources/kubelet.sock") as kubelet,
    ):
        stub, books = dp_grpc.DevicePluginStub(plugin), pr_grpc.PodResourcesListerStub(kubelet)
        empty, _ = await measure(lambda _: stub.GetDevicePluginOptions(dp.Empty()), repeats)
        listed, _ = await measure(lambda _: books.List(pr.ListPodResourcesRequest()), repeats)

        def allocate(number: int) -> Awaitable[Any]:
            row = dp.ContainerAllocateRequest(devices_ids=ids[number % PODS])
            return stub.Allocate(dp.AllocateRequest(container_requests=[row]))

        def start(number: int) -> Awaitable[Any]:
            return stub.PreStartContainer(dp.PreStartContainerRequest(devices_ids=ids[number % PODS]))

        async def start_all(_: int) -> None:
            await asyncio.gather(*(start(number) for number in range(PODS)))

        rows = [
            ("Allocate", await measure(allocate, repeats), "an empty call", empty),
            ("PreStartContainer", await measure(start, repeats), "one PodResources List", listed),
            (f"PreStartContainer, {PODS} at once", await measure(start_all, 30), "one PodResources List", listed),
        ]
    assert len(node.kubelet.devices[RESOURCE_MEM]) == 1120
    return [Figure(name, p50, p99, base, base_ms) for name, (p50, p99), base, base_ms in rows]


def main() -> int:
    """Print the figures."""
    with tempfile.TemporaryDirectory(prefix="cgpu") as folder:
        for figure in asyncio.run(figures(Path(folder))):
            print(figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
