# SPDX-License-Identifier: Apache-2.0
"""A server that gives every request the same answer, and a client connected to it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from cgpu.kube.client import KubeClient
from tests.fake_api import write_kubeconfig


@asynccontextmanager
async def answering(tmp_path: Path, status: int, body: Any) -> AsyncIterator[KubeClient]:
    async def answer(request: web.Request) -> web.Response:
        return (
            web.json_response(body, status=status)
            if not isinstance(body, str)
            else web.Response(text=body, status=status)
        )

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    write_kubeconfig(tmp_path / "kubeconfig", f"http://127.0.0.1:{runner.addresses[0][1]}")
    async with await KubeClient.connect(tmp_path / "kubeconfig") as client:
        yield client
    await runner.cleanup()
