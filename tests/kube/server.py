# SPDX-License-Identifier: Apache-2.0
"""A server of one handler or one answer, and a client connected to it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from cgpu.kube.client import KubeClient
from tests.fake_api import write_kubeconfig


@asynccontextmanager
async def handling(
    tmp_path: Path, handler: Callable[[web.Request], Awaitable[web.Response]]
) -> AsyncIterator[KubeClient]:
    """A server whose every path is the handler's, and a client of it."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    write_kubeconfig(tmp_path / "kubeconfig", f"http://127.0.0.1:{runner.addresses[0][1]}")
    async with await KubeClient.connect(tmp_path / "kubeconfig") as client:
        yield client
    await runner.cleanup()


@asynccontextmanager
async def answering(tmp_path: Path, status: int, body: Any) -> AsyncIterator[KubeClient]:
    """A server that gives every request the same answer, and a client of it."""

    async def answer(_: web.Request) -> web.Response:
        return (
            web.json_response(body, status=status)
            if not isinstance(body, str)
            else web.Response(text=body, status=status)
        )

    async with handling(tmp_path, answer) as client:
        yield client
