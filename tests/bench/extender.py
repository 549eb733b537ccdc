# SPDX-License-Identifier: Apache-2.0
"""What the extender adds to a pod's scheduling: filter and prioritize at 1,000 nodes of 8 cards, over real HTTP.

The baseline of the same run is the same HTTP server handing back a body of the same size. Between two measured
pods one is bound and one leaves, so every measurement meets books that have just changed.
"""

import asyncio
import io
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.extender.conftest import Extender, eventually, running
from tests.fake_api import make_node, make_pod, serving

NODES = 1000
CARDS = 8
SIZES = (1, 2, 3, 4, 6, 8, 12)
REPEATS = 300
PAUSE_S = 0.01  # the watch events of the last change are not what is measured


@dataclass(frozen=True)
class Figure:
    """One measurement in milliseconds beside the baseline of the same run."""

    name: str
    p50_ms: float
    p99_ms: float
    baseline_ms: float

    def __str__(self) -> str:
        ratio = self.p50_ms / self.baseline_ms
        return (
            f"{self.name:34} p50 {self.p50_ms:7.3f} ms  p99 {self.p99_ms:7.3f} ms"
            f"  {ratio:5.2f} x an echo ({self.baseline_ms:.3f} ms)"
        )


async def figures(folder: Path, repeats: int = REPEATS) -> list[Figure]:
    """Everything, on a cluster that is half full."""
    async with serving(folder / "kubeconfig") as api:
        rng = random.Random(7)
        for number in range(NODES):
            await api.set_node(make_node(f"node-{number:04}", *[15] * CARDS))
            for card in range(CARDS):
                await api.set_pod(_running(number, card, rng.choice((0, 2, 5, 7, 11, 14))))
        async with running(api, folder) as extender:
            await eventually(lambda: _complete(extender), 60)
            return await _figures(extender, repeats)


def _running(number: int, card: int, mem: int) -> dict[str, Any]:
    name = f"node-{number:04}"
    allocation = json.dumps({"app0": {f"GPU-{name}-{card}": {"mem": max(1, mem)}}})
    annotations = {"cgpu.aliyun.com/allocation": allocation}
    return make_pod(f"pod-{number}-{card}", max(1, mem), node=name, annotations=annotations)


async def _complete(extender: Extender) -> bool:
    return len(await extender.used()) == NODES


async def _figures(extender: Extender, repeats: int) -> list[Figure]:
    names = sorted(extender.api.nodes)
    filters: list[float] = []
    ranks: list[float] = []
    first, _ = await _timed(lambda: extender.filter(make_pod("first", 5), *names))
    for number in range(repeats):
        pod = make_pod(f"new-{number}", SIZES[number % len(SIZES)])
        await extender.api.set_pod(pod)
        await asyncio.sleep(PAUSE_S)
        spent, answer = await _timed(lambda pod=pod: extender.filter(pod, *names))
        filters.append(spent)
        spent, scores = await _timed(lambda pod=pod, answer=answer: extender.prioritize(pod, *answer["NodeNames"]))
        ranks.append(spent)
        best = max(scores, key=lambda name, scores=scores: scores[name])
        assert await extender.bind(pod, best) == ""
        await extender.api.drop_pod(f"default/pod-{number % NODES}-{number // NODES}")
    echo = await _echo(extender, names, repeats)
    return [
        Figure("filter", *_spread(filters), echo),
        Figure("prioritize", *_spread(ranks), echo),
        Figure("filter, first pod of its shape", first, first, echo),
    ]


async def _echo(extender: Extender, names: list[str], repeats: int) -> float:
    body = json.dumps({"Pod": make_pod("p", 6), "Nodes": None, "NodeNames": names}).encode()

    async def echo(request: web.Request) -> web.Response:
        return web.Response(body=await request.read(), content_type="application/json")

    app = web.Application()
    app.router.add_post("/", echo)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/"

    async def call() -> None:
        async with extender.session.post(url, data=io.BytesIO(body)) as response:
            json.loads(await response.read())

    times = [(await _timed(call))[0] for _ in range(repeats)]
    await runner.cleanup()
    return _spread(times)[0]


async def _timed(call: Callable[[], Awaitable[Any]]) -> tuple[float, Any]:
    start = time.perf_counter()
    answer = await call()
    return (time.perf_counter() - start) * 1e3, answer


def _spread(times: list[float]) -> tuple[float, float]:
    """Median and 99th percentile, the first tenth left out."""
    ordered = sorted(times[len(times) // 10 :])
    return statistics.median(ordered), ordered[int(len(ordered) * 0.99)]


def main() -> int:
    """Print the figures."""
    with tempfile.TemporaryDirectory(prefix="cgpu") as folder:
        for figure in asyncio.run(figures(Path(folder))):
            print(figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
