# SPDX-License-Identifier: Apache-2.0
"""Port 12347, read only: /metrics for Prometheus, /healthz for the kubelet, /usage for kubectl inspect."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aiohttp import web
from prometheus_client import CollectorRegistry

from cgpu.telemetry import METRICS_CONTENT_TYPE, render_metrics
from deviceplugin.metrics import UsageCollector
from deviceplugin.unserved import Unserved
from deviceplugin.usage import GpuRow, InstanceRow, as_json

Rows = Callable[[], tuple[Sequence[GpuRow], Sequence[InstanceRow]]]
Without = Callable[[], Sequence[Unserved]]


def make_app(node: str, state: Callable[[], tuple[str, str]], rows: Rows, without: Without) -> web.Application:
    """`state`: (mode, why the node is not ready or ""); `rows`: cards and instances now; `without`: who runs without."""
    registry = CollectorRegistry()
    registry.register(UsageCollector(node, rows))

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=render_metrics(registry), headers={"Content-Type": METRICS_CONTENT_TYPE})

    async def healthz(_: web.Request) -> web.Response:
        _mode, problem = state()
        return web.Response(text=f"{problem or 'ok'}\n", status=503 if problem else 200)

    async def usage(_: web.Request) -> web.Response:
        body: Mapping[str, Any] = as_json(node, *state(), *rows(), unserved=without())
        return web.json_response(body)

    app = web.Application()
    app.add_routes([web.get("/metrics", metrics), web.get("/healthz", healthz), web.get("/usage", usage)])
    return app
