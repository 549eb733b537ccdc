# SPDX-License-Identifier: Apache-2.0
"""The part of an API server that our services talk to: pods and nodes with list, watch, binding, events.

Small, over real HTTP, with switches for what goes wrong: a watch that skips events, versions that expire, bindings
that fail or hang after they were done.
"""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

Json = dict[str, Any]


class FakeApi:
    """`pods` and `nodes` by key; change them only by the methods, so that watchers hear of it."""

    def __init__(self) -> None:
        self.pods: dict[str, Json] = {}
        self.nodes: dict[str, Json] = {}
        self.events: list[Json] = []
        self.lists = 0
        self.binds = 0
        self.version = 1000
        self.oldest = 0  # watches from before this version are refused with 410
        self.mute = False  # watchers do not hear of changes
        self.closed = False  # every list answers 503
        self.page_size = 500
        self.leases = 0  # how often a lease was read
        self.leader = ""  # holderIdentity of every lease
        self.before_bind: Callable[[Json], web.Response | None] = lambda _: None
        self.after_bind: Callable[[Json], web.Response | None] = lambda _: None
        self._log: list[tuple[int, str, str, Json]] = []
        self._changed = asyncio.Condition()
        self._watches: set[asyncio.Task[Any]] = set()

    def app(self) -> web.Application:
        """Its routes."""
        app = web.Application()
        app.router.add_get("/api/v1/{kind:pods|nodes}", self._list_or_watch)
        app.router.add_get("/api/v1/namespaces/{namespace}/pods/{name}", self._get_pod)
        app.router.add_patch("/api/v1/namespaces/{namespace}/pods/{name}", self._patch_pod)
        app.router.add_get("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}", self._get_lease)
        app.router.add_post("/api/v1/namespaces/{namespace}/pods/{name}/binding", self._bind)
        app.router.add_patch("/api/v1/namespaces/{namespace}/pods/{name}/status", self._condition)
        app.router.add_post("/api/v1/namespaces/{namespace}/events", self._event)
        app.router.add_patch("/api/v1/namespaces/{namespace}/events/{name}", self._event_again)
        return app

    async def set_node(self, node: Json) -> None:
        """Add or replace."""
        await self._put(self.nodes, "nodes", node["metadata"]["name"], node)

    async def drop_node(self, name: str) -> None:
        """Delete."""
        await self._drop(self.nodes, "nodes", name)

    async def set_pod(self, pod: Json) -> None:
        """Add or replace."""
        await self._put(self.pods, "pods", _key(pod), pod)

    async def drop_pod(self, key: str) -> None:
        """Delete."""
        await self._drop(self.pods, "pods", key)

    async def cut_watches(self) -> None:
        """End every open watch without a word."""
        for task in list(self._watches):
            task.cancel()

    def expire(self) -> None:
        """Forget the past: watches from an older version get 410."""
        self.oldest = self.version + 1
        self.version += 1

    async def _put(self, store: dict[str, Json], kind: str, key: str, item: Json) -> None:
        self.version += 1
        item["metadata"]["resourceVersion"] = str(self.version)
        verb = "MODIFIED" if key in store else "ADDED"
        store[key] = item
        await self._tell(kind, verb, item)

    async def _drop(self, store: dict[str, Json], kind: str, key: str) -> None:
        item = store.pop(key)
        self.version += 1
        item["metadata"]["resourceVersion"] = str(self.version)
        await self._tell(kind, "DELETED", item)

    async def _tell(self, kind: str, verb: str, item: Json) -> None:
        if self.mute:
            return
        async with self._changed:
            self._log.append((self.version, kind, verb, json.loads(json.dumps(item))))
            self._changed.notify_all()

    async def _list_or_watch(self, request: web.Request) -> web.StreamResponse:
        kind = request.match_info["kind"]
        if request.query.get("watch") == "true":
            return await self._watch(request, kind)
        if self.closed:
            return _status(503, "etcd is away")
        self.lists += 1
        items = list((self.pods if kind == "pods" else self.nodes).values())
        start = int(request.query.get("continue", "0"))
        end = start + min(int(request.query["limit"]), self.page_size)
        more = {"continue": str(end)} if end < len(items) else {}
        return web.json_response(
            {"metadata": {"resourceVersion": str(self.version), **more}, "items": items[start:end]}
        )

    async def _watch(self, request: web.Request, kind: str) -> web.StreamResponse:
        since = int(request.query["resourceVersion"])
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        task = asyncio.current_task()
        assert task is not None
        self._watches.add(task)
        try:
            read = 0
            while since >= self.oldest:
                while read < len(self._log):
                    version, what, verb, item = self._log[read]
                    read += 1
                    if what == kind and version > since:
                        await response.write(json.dumps({"type": verb, "object": item}).encode() + b"\n")
                        since = version
                async with self._changed:
                    if read == len(self._log):
                        await self._changed.wait()
            gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
            await response.write(json.dumps({"type": "ERROR", "object": gone}).encode() + b"\n")
        finally:
            self._watches.discard(task)
        return response

    async def _get_pod(self, request: web.Request) -> web.Response:
        pod = self.pods.get(f"{request.match_info['namespace']}/{request.match_info['name']}")
        return web.json_response(pod) if pod is not None else _status(404, "pods not found")

    async def _get_lease(self, request: web.Request) -> web.Response:
        del request
        self.leases += 1
        return web.json_response({"spec": {"holderIdentity": self.leader}})

    async def _patch_pod(self, request: web.Request) -> web.Response:
        body = (await request.json())["metadata"]
        key = f"{request.match_info['namespace']}/{request.match_info['name']}"
        if key not in self.pods:
            return _status(404, "pods not found")
        changed = json.loads(json.dumps(self.pods[key]))
        meta = changed["metadata"]
        if any(body.get(name, meta[name]) != meta[name] for name in ("uid", "resourceVersion")):
            return _status(409, "the object has been modified")
        annotations = {**meta.get("annotations", {}), **body["annotations"]}
        meta["annotations"] = {name: text for name, text in annotations.items() if text is not None}
        await self.set_pod(changed)
        return web.json_response(changed)

    async def _bind(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.binds += 1
        refused = self.before_bind(body)
        if refused is not None:
            return refused
        pod = self.pods.get(f"{request.match_info['namespace']}/{request.match_info['name']}")
        if pod is None:
            return _status(404, "pods not found")
        if body["metadata"].get("uid") != pod["metadata"]["uid"]:
            return _status(409, "Precondition failed: UID in precondition")
        if pod["spec"].get("nodeName"):
            return _status(409, f"pod is already assigned to node {pod['spec']['nodeName']!r}")
        bound = json.loads(json.dumps(pod))
        bound["spec"]["nodeName"] = body["target"]["name"]
        bound["metadata"].setdefault("annotations", {}).update(body["metadata"].get("annotations", {}))
        await self.set_pod(bound)
        return self.after_bind(body) or web.json_response({"kind": "Status", "status": "Success"}, status=201)

    async def _condition(self, request: web.Request) -> web.Response:
        body = await request.json()
        pod = self.pods.get(f"{request.match_info['namespace']}/{request.match_info['name']}")
        if pod is None or body["metadata"]["uid"] != pod["metadata"]["uid"]:
            return _status(409, "Precondition failed: UID in precondition")
        changed = json.loads(json.dumps(pod))
        rows = {row["type"]: row for row in (*changed["status"].get("conditions", ()), *body["status"]["conditions"])}
        changed["status"]["conditions"] = list(rows.values())
        await self.set_pod(changed)
        return web.json_response(changed)

    async def _event(self, request: web.Request) -> web.Response:
        body = await request.json()
        if any(event["metadata"]["name"] == body["metadata"]["name"] for event in self.events):
            return _status(409, "events already exists")
        self.events.append(body)
        return web.json_response(body, status=201)

    async def _event_again(self, request: web.Request) -> web.Response:
        for event in self.events:
            if event["metadata"]["name"] == request.match_info["name"]:
                event.update(await request.json())
        return web.json_response({})


@asynccontextmanager
async def serving(kubeconfig: Path) -> AsyncIterator[FakeApi]:
    """An API server while the block runs; `kubeconfig` is written and leads to it."""
    fake = FakeApi()
    runner = web.AppRunner(fake.app(), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    write_kubeconfig(kubeconfig, f"http://127.0.0.1:{runner.addresses[0][1]}")
    try:
        yield fake
    finally:
        await fake.cut_watches()
        await runner.cleanup()


def write_kubeconfig(path: Path, server: str) -> None:
    """A kubeconfig for an API server without TLS."""
    cluster = {"name": "fake", "cluster": {"server": server}}
    context = {"name": "fake", "context": {"cluster": "fake", "user": "fake"}}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [cluster],
        "contexts": [context],
        "current-context": "fake",
        "users": [{"name": "fake", "user": {}}],
    }
    path.write_text(json.dumps(config))


def make_node(name: str, *units: int, labels: dict[str, str] | None = None, **change: Any) -> Json:
    """A node whose cards offer `units` GiB; `change`: keys of every card."""
    cards = [
        {
            "index": index,
            "minor": index,
            "uuid": f"GPU-{name}-{index}",
            "model": "Tesla T4",
            "memMiB": size * 1024 + 100,
            "units": size,
            "maxInstances": 20,
            "healthy": True,
            "numa": None,
            **change,
        }
        for index, size in enumerate(units)
    ]
    resources = {"aliyun.com/gpu-mem": str(sum(units))}
    return {
        "metadata": {
            "name": name,
            "uid": f"node-{name}",
            "labels": labels or {},
            "annotations": {"cgpu.aliyun.com/devices": json.dumps(cards)},
        },
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def make_pod(name: str, *mem: str | int, namespace: str = "default", priority: int = 0, **fields: Any) -> Json:
    """A pending pod with one app container a size; `fields`: labels, annotations, node, nominated, scheduler, init."""
    containers = [
        {"name": f"app{index}", "resources": {"limits": {"aliyun.com/gpu-mem": str(size)}}}
        for index, size in enumerate(mem)
    ]
    spec: Json = {
        "containers": containers,
        "schedulerName": fields.get("scheduler", "cgpu-scheduler"),
        "priority": priority,
    }
    if "init" in fields:
        spec["initContainers"] = fields["init"]
    if "node" in fields:
        spec["nodeName"] = fields["node"]
    status = {"phase": "Pending", **({"nominatedNodeName": fields["nominated"]} if "nominated" in fields else {})}
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": fields.get("uid", str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{namespace}.{name}"))),
            "labels": fields.get("labels", {}),
            "annotations": fields.get("annotations", {}),
        },
        "spec": spec,
        "status": status,
    }


def _key(pod: Json) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _status(code: int, message: str) -> web.Response:
    return web.json_response({"kind": "Status", "code": code, "message": message}, status=code)
