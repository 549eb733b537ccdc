# SPDX-License-Identifier: Apache-2.0
"""Routes: the scheduler's verbs on one listener, everything that only reads on another.

kube-scheduler drops the body of any answer but 200, so verbs answer 200 and say what is wrong in `Error`.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec
from aiohttp import web

import cgpu
from cgpu.core.errors import CgpuError
from cgpu.core.names import EXTENDER_PREFIX
from cgpu.telemetry import METRICS_CONTENT_TYPE, render_metrics, timed
from extender.binder import Binder
from extender.cache import Cache
from extender.inspect import node_report, nodes_report
from extender.metrics import Metrics
from extender.preempt import preempt
from extender.verbs import Verbs
from extender.waiting import pod_report
from extender.wire import (
    WireError,
    decode_bind_request,
    decode_nodes_request,
    decode_preempt_request,
    encode_error,
    encode_filter,
    encode_preempt,
    encode_scores,
)

log: Final = logging.getLogger(__name__)

BODY_LIMIT: Final = 16 << 20  # names of 100,000 nodes and the largest pod that etcd keeps
NOT_READY: Final = "the extender is still reading the cluster: try again"


class NotReadyError(CgpuError):
    """The books are not rebuilt yet."""


class Service:
    """The parts of one extender, for its routes."""

    def __init__(
        self,
        cache: Cache,
        verbs: Verbs,
        binder: Binder,
        metrics: Metrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cache = cache
        self._verbs = verbs
        self._binder = binder
        self._metrics = metrics
        self._clock = clock

    def verb_app(self) -> web.Application:
        """filter, prioritize, bind, preempt."""
        app = web.Application(client_max_size=BODY_LIMIT, middlewares=[_plain_errors])
        table: Mapping[str, Callable[[bytes], Awaitable[bytes]]] = {
            "filter": self._filter,
            "prioritize": self._prioritize,
            "bind": self._bind,
            "preempt": self._preempt,
        }
        for verb, answer in table.items():
            app.router.add_post(f"{EXTENDER_PREFIX}/{verb}", self._route(verb, answer))
        return app

    def read_app(self) -> web.Application:
        """inspect, version, health and metrics."""
        app = web.Application(middlewares=[_plain_errors])
        app.router.add_get(f"{EXTENDER_PREFIX}/inspect", self._inspect)
        app.router.add_get(f"{EXTENDER_PREFIX}/inspect/{{node}}", self._inspect_node)
        for prefix in ("", EXTENDER_PREFIX):
            app.router.add_get(f"{prefix}/version", _version)
            app.router.add_get(f"{prefix}/healthz", _healthz)
            app.router.add_get(f"{prefix}/readyz", self._readyz)
            app.router.add_get(f"{prefix}/metrics", self._render)
        return app

    def _route(
        self, verb: str, answer: Callable[[bytes], Awaitable[bytes]]
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        seconds = self._metrics.seconds.labels(verb)

        async def handle(request: web.Request) -> web.Response:
            with timed(seconds):
                try:
                    body = await self._body(request)
                    answered = await answer(body)
                except CgpuError as error:
                    log.warning("%s: %s", verb, error)
                    answered = encode_error(str(error))
                except Exception as error:  # the scheduler must hear of our own faults too
                    log.exception("%s failed", verb)
                    answered = encode_error(f"{verb} failed in the extender: {error!r}; its log has the details")
            return web.Response(body=answered, content_type="application/json")

        return handle

    async def _body(self, request: web.Request) -> bytes:
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge as error:
            raise WireError(
                f"the request body is larger than {BODY_LIMIT >> 20} MiB: set nodeCacheCapable: true"
                " for this extender, so that names are sent instead of nodes"
            ) from error
        if not self._cache.ready:
            raise NotReadyError(NOT_READY)
        return body

    async def _filter(self, body: bytes) -> bytes:
        request = decode_nodes_request(body)
        return encode_filter(self._verbs.filter(request.pod, request.node_names, self._clock()))

    async def _prioritize(self, body: bytes) -> bytes:
        request = decode_nodes_request(body)
        return encode_scores(self._verbs.prioritize(request.pod, request.node_names, self._clock()))

    async def _bind(self, body: bytes) -> bytes:
        outcome = await self._binder.bind(decode_bind_request(body))
        self._metrics.binds.labels(outcome.result).inc()
        return encode_error(outcome.error)

    async def _preempt(self, body: bytes) -> bytes:
        request = decode_preempt_request(body)
        return encode_preempt(preempt(self._verbs, request, self._clock()))

    async def _inspect(self, request: web.Request) -> web.Response:
        key = request.query.get("pod")
        if key is None:
            return _json(nodes_report(self._cache.books))
        report = pod_report(self._verbs, key)
        if report is None:
            return _json({"error": f"no pod {key} that asks for GPU memory: write pod=<namespace>/<name>"}, 404)
        return _json(report)

    async def _inspect_node(self, request: web.Request) -> web.Response:
        name = request.match_info["node"]
        report = node_report(self._cache.books, name)
        if report is None:
            return _json({"nodes": [], "error": f"no node {name}: kubectl get nodes lists the names"}, 404)
        return _json(report)

    async def _readyz(self, _: web.Request) -> web.Response:
        ready = self._cache.ready
        return web.Response(text="ok\n" if ready else NOT_READY + "\n", status=200 if ready else 503)

    async def _render(self, _: web.Request) -> web.Response:
        return web.Response(body=render_metrics(self._metrics.registry), headers={"Content-Type": METRICS_CONTENT_TYPE})


async def _version(_: web.Request) -> web.Response:
    return _json({"version": cgpu.__version__})


async def _healthz(_: web.Request) -> web.Response:
    return web.Response(text="ok\n")


def _json(value: Any, status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json", status=status)


@web.middleware
async def _plain_errors(request: web.Request, handler: Callable[[web.Request], Awaitable[Any]]) -> Any:
    """A wrong path or method is answered with what there is instead."""
    try:
        return await handler(request)
    except (web.HTTPNotFound, web.HTTPMethodNotAllowed) as error:
        routes = sorted(
            {
                f"{route.method} {route.resource.canonical}"
                for route in request.app.router.routes()
                if route.resource and route.method != "HEAD"
            }
        )
        return _json(
            {"error": f"{request.method} {request.path} is not served here; there is: {', '.join(routes)}"},
            error.status,
        )
