# SPDX-License-Identifier: Apache-2.0
"""Fakes over real protocols: a kubelet that speaks gRPC on sockets in a folder, and an API server in memory.

FakeKubelet hands device ids out as the kubelet does (at random; an init container's ids are handed on), keeps
PodResources and the checkpoint, and plays the container runtime: what a container sees is read from the CDI files.
"""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc

from cgpu.core.model import Pod
from cgpu.core.names import RESOURCE_CORE, RESOURCE_MEM
from cgpu.kube.objects import Page, Resource, decode_pod
from cgpu.kubelet import deviceplugin_pb2 as dp
from cgpu.kubelet import deviceplugin_pb2_grpc as dp_grpc
from cgpu.kubelet import podresources_pb2 as pr
from cgpu.kubelet import podresources_pb2_grpc as pr_grpc

Wire = dict[str, Any]


def wire_pod(
    name: str,
    *mem: int,
    init: tuple[int, ...] = (),
    sidecars: tuple[int, ...] = (),
    core: int = 0,
    uid: str = "",
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Wire:
    """A pod as the API server sends it, bound to node-a; containers app0…, init0…, side0…."""

    def container(container_name: str, size: int, **more: Any) -> Wire:
        limits = {RESOURCE_MEM: str(size), **({RESOURCE_CORE: str(core)} if core else {})} if size else {}
        return {"name": container_name, "resources": {"limits": limits}, **more}

    labels = spec.pop("labels", {})
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": uid or f"uid-{name}",
            "resourceVersion": "1",
            "labels": labels,
            "annotations": dict(annotations or {}),
        },
        "spec": {
            "nodeName": "node-a",
            "schedulerName": "cgpu-scheduler",
            "initContainers": [
                *(container(f"init{i}", size) for i, size in enumerate(init)),
                *(container(f"side{i}", size, restartPolicy="Always") for i, size in enumerate(sidecars)),
            ],
            "containers": [container(f"app{i}", size) for i, size in enumerate(mem)],
            **spec,
        },
        "status": {"phase": "Running"},
    }


class FakeApi:
    """Stands for KubeClient: one node, its pods, a watch on each, and every write that was made."""

    def __init__(self, labels: Mapping[str, str], runtime: str = "containerd://2.4.2") -> None:
        self.pods: dict[str, Wire] = {}
        self.node: Wire = {
            "metadata": {"name": "node-a", "uid": "node-uid", "labels": dict(labels), "annotations": {}},
            "status": {"capacity": {}, "nodeInfo": {"containerRuntimeVersion": runtime}},
        }
        self.lists = 0
        self.events: list[tuple[str, str, str, str]] = []  # kind, name, reason, message
        self.writes: list[str] = []
        self.namespace_labels: dict[str, str] = {}
        self.fail: Exception | None = None  # what every write raises
        self._watches: list[tuple[str, asyncio.Queue[bytes]]] = []

    async def list(self, resource: Resource[Any], query: Mapping[str, str] | None = None) -> Page[Any]:
        self.lists += 1
        rows = list(self.pods.values()) if resource.path.endswith("pods") else [self.node]
        return Page(tuple(resource.decode(json.dumps(row).encode()) for row in rows), "1", "")

    @asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str]) -> AsyncIterator[AsyncIterator[bytes]]:
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        entry = (path, queue)
        self._watches.append(entry)

        async def lines() -> AsyncIterator[bytes]:
            while True:
                yield await queue.get()

        try:
            yield lines()
        finally:
            self._watches.remove(entry)

    async def get(self, path: str) -> bytes:
        assert path == "/api/v1/namespaces/default"
        return json.dumps({"metadata": {"name": "default", "labels": self.namespace_labels}}).encode()

    def put_pod(self, pod: Wire) -> None:
        self.pods[pod["metadata"]["uid"]] = pod
        self._send("/api/v1/pods", "MODIFIED", pod)

    def delete_pod(self, name: str) -> None:
        pod = next(pod for pod in self.pods.values() if pod["metadata"]["name"] == name)
        del self.pods[pod["metadata"]["uid"]]
        self._send("/api/v1/pods", "DELETED", pod)

    def label(self, **labels: str | None) -> None:
        for key, value in labels.items():
            name = {"schedule": "ack.node.gpu.schedule"}[key]
            if value is None:
                self.node["metadata"]["labels"].pop(name, None)
            else:
                self.node["metadata"]["labels"][name] = value
        self._send("/api/v1/nodes", "MODIFIED", self.node)

    async def patch_node_annotations(self, name: str, annotations: Mapping[str, str | None]) -> None:
        self._write(f"annotations {sorted(annotations)}")
        _merge(self.node["metadata"]["annotations"], annotations)
        self._send("/api/v1/nodes", "MODIFIED", self.node)

    async def patch_node_labels(self, name: str, labels: Mapping[str, str | None]) -> None:
        self._write(f"labels {dict(labels)}")
        _merge(self.node["metadata"]["labels"], labels)
        self._send("/api/v1/nodes", "MODIFIED", self.node)

    async def patch_node_status(self, name: str, capacity: Mapping[str, str | None]) -> None:
        self._write(f"capacity {dict(capacity)}")
        _merge(self.node["status"]["capacity"], capacity)
        self._send("/api/v1/nodes", "MODIFIED", self.node)

    async def swap_pod_annotations(self, seen: Pod, annotations: Mapping[str, str | None]) -> bool:
        self._write(f"pod {seen.name} {dict(annotations)}")
        pod = self.pods.get(seen.uid)
        if pod is None or decode_pod(json.dumps(pod).encode()).annotations != seen.annotations:
            return False
        self.annotate(pod, annotations)
        return True

    def annotate(self, pod: Wire, annotations: Mapping[str, str | None]) -> None:
        _merge(pod["metadata"]["annotations"], annotations)
        self.put_pod(pod)

    async def post(self, path: str, body: Wire) -> bytes:
        about = body["involvedObject"]
        self.events.append((about["kind"], about["name"], body["reason"], body["message"]))
        return b"{}"

    def _write(self, what: str) -> None:
        if self.fail is not None:
            raise self.fail
        self.writes.append(what)

    def _send(self, path: str, kind: str, item: Wire) -> None:
        item["metadata"]["resourceVersion"] = str(int(item["metadata"].get("resourceVersion", "1")) + 1)
        for watched, queue in self._watches:
            if watched == path:
                queue.put_nowait(json.dumps({"type": kind, "object": item}).encode())


def _merge(target: dict[str, str], changes: Mapping[str, str | None]) -> None:
    for key, value in changes.items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = value


class AdmissionError(Exception):
    """The kubelet does not admit the pod (UnexpectedAdmissionError)."""


class FakeKubelet(dp_grpc.RegistrationServicer, pr_grpc.PodResourcesListerServicer):
    """One kubelet under `root`; `start` it, then register plugins, admit pods, start their containers."""

    def __init__(self, root: Path, cdi: Path, seed: int = 0) -> None:
        self.root, self.cdi = root, cdi
        self.devices: dict[str, dict[str, str]] = {}  # resource → id → health
        self.options: dict[str, dp.DevicePluginOptions] = {}
        self.held: dict[tuple[str, str, str], frozenset[str]] = {}  # (uid, container, resource) → ids
        self.pods: dict[str, Wire] = {}  # admitted and active, by UID
        self.cdi_names: dict[tuple[str, str], list[str]] = {}
        self.allocate_env: dict[tuple[str, str], dict[str, str]] = {}
        self.registrations: list[str] = []
        self.lists = 0
        self.refuse_lists = 0  # how many of the next List requests are refused, as above 100 a second
        self._random = random.Random(seed)
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._streams: dict[str, asyncio.Task[None]] = {}
        self._servers: list[grpc.aio.Server] = []
        self._changed = asyncio.Condition()

    async def start(self) -> None:
        """As the kubelet does: delete every socket in the folder, then listen."""
        plugins, resources = self.root / "device-plugins", self.root / "pod-resources"
        for folder in (plugins, resources):
            folder.mkdir(parents=True, exist_ok=True)
        for path in plugins.iterdir():
            if path.is_socket():
                path.unlink()
        (resources / "kubelet.sock").unlink(missing_ok=True)
        for add, folder in (
            (pr_grpc.add_PodResourcesListerServicer_to_server, resources),
            (dp_grpc.add_RegistrationServicer_to_server, plugins),
        ):
            server = grpc.aio.server()
            add(self, server)
            server.add_insecure_port(f"unix://{folder / 'kubelet.sock'}")
            await server.start()
            self._servers.append(server)

    async def stop(self) -> None:
        """End the process: connections break, sockets stay behind."""
        for task in self._streams.values():
            task.cancel()
        await asyncio.gather(*self._streams.values(), return_exceptions=True)
        for channel in self._channels.values():
            await channel.close()
        for server in self._servers:
            await server.stop(None)
        self._streams, self._channels, self._servers = {}, {}, []
        self.devices = {}

    async def Register(self, request: dp.RegisterRequest, context: Any) -> dp.Empty:  # noqa: N802
        """Calls the plugin back before it answers, as the kubelet does."""
        assert request.version == "v1beta1"
        path = self.root / "device-plugins" / request.endpoint
        channel = grpc.aio.insecure_channel(f"unix://{path}")
        stub = dp_grpc.DevicePluginStub(channel)
        self.options[request.resource_name] = await stub.GetDevicePluginOptions(dp.Empty(), timeout=5)
        self._channels[request.resource_name] = channel
        self._streams[request.resource_name] = asyncio.create_task(self._listen(request.resource_name, stub))
        self.registrations.append(request.resource_name)
        return dp.Empty()

    async def _listen(self, resource: str, stub: Any) -> None:
        try:
            async for answer in stub.ListAndWatch(dp.Empty()):
                await self._set(resource, {device.ID: device.health for device in answer.devices})
        except grpc.aio.AioRpcError:
            await self._set(resource, dict.fromkeys(self.devices.get(resource, {}), "Unhealthy"))

    async def _set(self, resource: str, devices: dict[str, str]) -> None:
        async with self._changed:
            self.devices[resource] = devices
            self._changed.notify_all()

    async def devices_are(self, resource: str, healthy: int, unhealthy: int = 0) -> None:
        """Wait until a resource counts this many ids."""

        def there() -> bool:
            health = list(self.devices.get(resource, {}).values())
            return (health.count("Healthy"), health.count("Unhealthy")) == (healthy, unhealthy)

        async with asyncio.timeout(5), self._changed:
            await self._changed.wait_for(there)

    async def List(self, request: pr.ListPodResourcesRequest, context: Any) -> pr.ListPodResourcesResponse:  # noqa: N802
        """Active pods, plain init containers left out, one message an id."""
        self.lists += 1
        if self.refuse_lists:
            self.refuse_lists -= 1
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit")
        answer = pr.ListPodResourcesResponse()
        for uid, pod in self.pods.items():
            row = answer.pod_resources.add(name=pod["metadata"]["name"], namespace=pod["metadata"]["namespace"])
            for container in _containers(pod):
                if container["kind"] == "init":
                    continue
                entry = row.containers.add(name=container["name"])
                for (owner, name, resource), ids in self.held.items():
                    if (owner, name) == (uid, container["name"]):
                        for id_ in ids:
                            entry.devices.add(resource_name=resource, device_ids=[id_])
        return answer

    async def admit(self, pod: Wire) -> None:
        """Give every container its ids and call Allocate. Raises AdmissionError."""
        uid = pod["metadata"]["uid"]
        self.held = {key: ids for key, ids in self.held.items() if key[0] in self.pods}
        self.pods[uid] = pod
        reuse: set[str] = set()
        for container in _containers(pod):
            for resource, size in container["limits"].items():
                ids = self._pick(resource, size, reuse)
                self.held[uid, container["name"], resource] = ids
                reuse = reuse | ids if container["kind"] == "init" else reuse - ids
                await self._allocate(uid, container["name"], resource, ids)
        self._write_checkpoint()

    def _pick(self, resource: str, size: int, reuse: set[str]) -> frozenset[str]:
        mine = [id_ for id_ in sorted(reuse) if id_ in self.devices[resource]][:size]
        taken = {id_ for (_, _, name), ids in self.held.items() if name == resource for id_ in ids}
        free = [i for i, health in self.devices.get(resource, {}).items() if health == "Healthy" and i not in taken]
        self._random.shuffle(free)
        ids = frozenset([*mine, *free][:size])
        if len(ids) < size:
            raise AdmissionError(f"requested {size} of {resource}, available {len(ids)}")
        return ids

    async def _allocate(self, uid: str, container: str, resource: str, ids: frozenset[str]) -> None:
        stub = dp_grpc.DevicePluginStub(self._channels[resource])
        request = dp.AllocateRequest(container_requests=[dp.ContainerAllocateRequest(devices_ids=list(ids))])
        answer = (await stub.Allocate(request, timeout=2)).container_responses[0]
        self.cdi_names.setdefault((uid, container), []).extend(device.name for device in answer.cdi_devices)
        self.allocate_env.setdefault((uid, container), {}).update(answer.envs)

    def _write_checkpoint(self) -> None:
        entries = [
            {"PodUID": uid, "ContainerName": name, "ResourceName": resource, "DeviceIDs": {"-1": sorted(ids)}}
            for (uid, name, resource), ids in self.held.items()
        ]
        text = json.dumps({"Data": {"PodDeviceEntries": entries, "RegisteredDevices": {}}, "Checksum": 1})
        (self.root / "device-plugins" / "kubelet_internal_checkpoint").write_text(text)

    async def run_container(self, pod: Wire, container: str, env: Mapping[str, str] | None = None) -> dict[str, str]:
        """PreStartContainer, then what the container's environment is: pod env beats Allocate's, CDI beats both."""
        uid = pod["metadata"]["uid"]
        for resource, options in self.options.items():
            ids = self.held.get((uid, container, resource))
            if ids and options.pre_start_required:
                if any(self.devices[resource].get(id_) != "Healthy" for id_ in ids):
                    raise AdmissionError("previously allocated devices are no longer healthy")
                stub = dp_grpc.DevicePluginStub(self._channels[resource])
                await stub.PreStartContainer(dp.PreStartContainerRequest(devices_ids=list(ids)), timeout=30)
        found = {**self.allocate_env.get((uid, container), {}), **(env or {})}
        for edits in self.edits(uid, container):
            found |= dict(entry.split("=", 1) for entry in edits["env"])
        return found

    def edits(self, uid: str, container: str) -> list[Wire]:
        """The container's CDI edits."""
        specs = [json.loads(path.read_text()) for path in self.cdi.glob("*.json")]
        return [
            device["containerEdits"]
            for name in self.cdi_names.get((uid, container), [])
            for spec in specs
            for device in spec["devices"]
            if f"{spec['kind']}={device['name']}" == name
        ]

    def remove(self, pod: Wire) -> None:
        """The pod has ended; its entries stay in the checkpoint until the next admission, as in the kubelet."""
        self.pods.pop(pod["metadata"]["uid"], None)


def _containers(pod: Wire) -> list[Wire]:
    rows = []
    for key, default in (("initContainers", "init"), ("containers", "app")):
        for container in pod["spec"].get(key, []):
            kind = "sidecar" if container.get("restartPolicy") == "Always" else default
            limits = {name: int(size) for name, size in container["resources"]["limits"].items()}
            rows.append({"name": container["name"], "kind": kind, "limits": limits})
    return rows
