# SPDX-License-Identifier: Apache-2.0
"""One connection to the API server: configuration, authentication and transport by the `kubernetes` package."""

import logging
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote, urlencode

import aiohttp
import yaml

from cgpu.core.errors import (
    ConflictError,
    ExpiredError,
    ForbiddenError,
    NotFoundError,
    SettingError,
    UnavailableError,
)
from cgpu.core.model import Node, Pod
from cgpu.kube.objects import (
    NODES,
    PODS,
    Page,
    Resource,
    T,
    decode_node,
    decode_page,
    decode_pod,
    decode_status,
    decode_version,
)
from cgpu.kube.package import prepare

prepare()
from kubernetes.aio import config as kube_config  # noqa: E402
from kubernetes.aio.client.configuration import Configuration  # noqa: E402
from kubernetes.aio.client.rest import RESTClientObject  # noqa: E402

log: Final = logging.getLogger(__name__)

PAGE_SIZE: Final = 500
REQUEST_TIMEOUT: Final = aiohttp.ClientTimeout(total=15, sock_connect=5)
# The API server sends a bookmark about once a minute, so a longer silence is a dead connection.
WATCH_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=150)
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
_CONNECTIONS: Final = 64
_ERRORS: Final[Mapping[int, type[UnavailableError]]] = {
    401: ForbiddenError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: ExpiredError,
}


@dataclass(frozen=True, slots=True)
class Request:
    """One request; `body` is any JSON value."""

    method: str
    path: str
    query: Mapping[str, str] | None = None
    body: Any = None
    content_type: str = "application/json"
    limits: aiohttp.ClientTimeout = REQUEST_TIMEOUT

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


async def load_configuration(kubeconfig: Path | None = None, environ: Mapping[str, str] = os.environ) -> Configuration:
    """Where the API server is and who we are.

    `kubeconfig` when given; else the pod's service account; else $KUBECONFIG or ~/.kube/config.
    Raises SettingError with the file and the remedy.
    """
    configuration = Configuration()
    if kubeconfig is None and environ.get("KUBERNETES_SERVICE_HOST"):
        source = "the pod's service account"
    else:
        kubeconfig = kubeconfig or Path(environ.get("KUBECONFIG") or Path.home() / ".kube" / "config")
        source = f"kubeconfig {kubeconfig}"
    try:
        if kubeconfig is None:
            kube_config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        else:
            kubeconfig.read_bytes()  # the package takes a missing file for an empty one
            await kube_config.load_kube_config(  # type: ignore[no-untyped-call]
                str(kubeconfig), client_configuration=configuration, persist_config=False
            )
    except (kube_config.ConfigException, OSError, yaml.YAMLError, ValueError, TypeError, KeyError) as error:
        raise SettingError(
            f"{source} cannot be used: {error}; name a readable kubeconfig by --kubeconfig or KUBECONFIG"
        ) from error
    configuration.connection_pool_maxsize = _CONNECTIONS
    return configuration


class KubeClient:
    """The requests the project makes, each a thin line over `request`.

    All raise UnavailableError or one of its children (NotFoundError, ConflictError, ForbiddenError, ExpiredError)
    with the API server's own text.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._rest = RESTClientObject(configuration)

    @classmethod
    async def connect(cls, kubeconfig: Path | None = None) -> Self:
        """A client by `load_configuration`; nothing is sent yet."""
        return cls(await load_configuration(kubeconfig))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._rest.close()

    @property
    def server(self) -> str:
        """The API server's address, for messages."""
        return str(self._configuration.host)

    async def request(self, wanted: Request) -> bytes:
        """The body of a successful answer."""
        async with self._respond(wanted) as response:
            return await response.read()

    @asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str]) -> AsyncIterator[AsyncIterator[bytes]]:
        """The lines of a watch, while they come."""
        async with self._respond(Request("GET", path, query, limits=WATCH_TIMEOUT)) as response:
            yield _lines(response.content)

    @asynccontextmanager
    async def _respond(self, wanted: Request) -> AsyncIterator[aiohttp.ClientResponse]:
        url = self._configuration.host + wanted.path + (f"?{urlencode(wanted.query)}" if wanted.query else "")
        headers = {"Accept": "application/json", "Content-Type": wanted.content_type}
        token = await self._configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        if token:
            headers["Authorization"] = token
        try:
            answer = await self._rest.request(  # type: ignore[no-untyped-call]
                wanted.method, url, headers=headers, body=wanted.body, _request_timeout=wanted.limits
            )
            response: aiohttp.ClientResponse = answer.response
            try:
                if response.status >= 400:
                    raise _error(wanted, response.status, await response.read())
                yield response
            finally:
                response.release()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            text = str(error) or type(error).__name__
            raise UnavailableError(f"{wanted}: the API server {self.server} does not answer: {text}") from error

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> bytes:
        """GET."""
        return await self.request(Request("GET", path, query))

    async def post(self, path: str, body: Any) -> bytes:
        """POST."""
        return await self.request(Request("POST", path, body=body))

    async def patch(self, path: str, body: Any) -> bytes:
        """PATCH by JSON merge patch: None removes a key."""
        return await self.request(Request("PATCH", path, body=body, content_type=MERGE_PATCH))

    async def page(self, resource: Resource[T], query: Mapping[str, str], continue_token: str = "") -> Page[T]:
        """One page of a list."""
        paging = {"limit": str(PAGE_SIZE), **({"continue": continue_token} if continue_token else {})}
        return decode_page(await self.get(resource.path, {**query, **paging}), resource)

    async def list(self, resource: Resource[T], query: Mapping[str, str] | None = None) -> Page[T]:
        """All objects, page by page; its resource version is that of the last page."""
        items: list[T] = []
        page = await self.page(resource, query or {})
        items.extend(page.items)
        while page.continue_token:
            page = await self.page(resource, query or {}, page.continue_token)
            items.extend(page.items)
        return Page(tuple(items), page.resource_version, "")

    async def list_pods(self, field_selector: str = "", label_selector: str = "") -> tuple[Pod, ...]:
        """Pods of all namespaces."""
        return (await self.list(PODS, selectors(field_selector, label_selector))).items

    async def list_nodes(self, field_selector: str = "", label_selector: str = "") -> tuple[Node, ...]:
        """Nodes."""
        return (await self.list(NODES, selectors(field_selector, label_selector))).items

    async def get_pod(self, namespace: str, name: str) -> Pod:
        """One pod."""
        return decode_pod(await self.get(_pod_path(namespace, name)))

    async def get_node(self, name: str) -> Node:
        """One node."""
        return decode_node(await self.get(f"/api/v1/nodes/{quote(name, safe='')}"))

    async def patch_node_annotations(self, name: str, annotations: Mapping[str, str | None]) -> None:
        """Set annotations of a node; None removes one."""
        await self.patch(f"/api/v1/nodes/{quote(name, safe='')}", {"metadata": {"annotations": dict(annotations)}})

    async def patch_node_labels(self, name: str, labels: Mapping[str, str | None]) -> None:
        """Set labels of a node; None removes one."""
        await self.patch(f"/api/v1/nodes/{quote(name, safe='')}", {"metadata": {"labels": dict(labels)}})

    async def patch_pod_annotations(self, namespace: str, name: str, annotations: Mapping[str, str | None]) -> None:
        """Set annotations of a pod; None removes one."""
        await self.patch(_pod_path(namespace, name), {"metadata": {"annotations": dict(annotations)}})

    async def swap_pod_annotations(self, seen: Pod, annotations: Mapping[str, str | None]) -> bool:
        """Set annotations of a pod whose ours are still those of `seen`; False, and nothing written, when they are not."""
        path = _pod_path(seen.namespace, seen.name)
        raw = await self.get(path)
        now = decode_pod(raw)
        if (now.uid, now.annotations) != (seen.uid, seen.annotations):
            return False
        meta = {"uid": seen.uid, "resourceVersion": decode_version(raw), "annotations": dict(annotations)}
        try:
            await self.patch(path, {"metadata": meta})
        except ConflictError:
            return False
        return True

    async def patch_node_status(self, name: str, capacity: Mapping[str, str | None]) -> None:
        """Set extended resources in a node's status.capacity (allocatable follows); None removes one."""
        await self.patch(f"/api/v1/nodes/{quote(name, safe='')}/status", {"status": {"capacity": dict(capacity)}})

    async def patch_pod_condition(self, namespace: str, name: str, uid: str, condition: Mapping[str, str]) -> None:
        """Set one condition of the pod with this UID; the others stay. Raises ConflictError when another has its name."""
        body = {"metadata": {"uid": uid}, "status": {"conditions": [dict(condition)]}}
        path = f"{_pod_path(namespace, name)}/status"
        await self.request(Request("PATCH", path, body=body, content_type=STRATEGIC_PATCH))

    async def bind(self, namespace: str, name: str, uid: str, node: str, annotations: Mapping[str, str]) -> None:
        """Bind the pod with this UID and write the annotations, in one request.

        The API server merges a Binding's annotations into the pod in the write that sets nodeName; the UID is a
        precondition. Raises ConflictError when the pod is bound already or another one has its name.
        """
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, "uid": uid, "annotations": dict(annotations)},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self.post(f"{_pod_path(namespace, name)}/binding", body)

    async def proxy_get(self, namespace: str, pod: str, port: int, path: str) -> bytes:
        """What a pod's own HTTP server answers, through the API server's pod proxy."""
        return await self.get(f"{_pod_path(namespace, pod)}:{port}/proxy/{path.lstrip('/')}")


def selectors(field_selector: str = "", label_selector: str = "") -> dict[str, str]:
    """The query of a list or watch."""
    pairs = {"fieldSelector": field_selector, "labelSelector": label_selector}
    return {key: value for key, value in pairs.items() if value}


def _pod_path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}"


def _error(wanted: Request, status: int, body: bytes) -> UnavailableError:
    _, text = decode_status(body)
    return _ERRORS.get(status, UnavailableError)(f"{wanted}: {status}: {text}")


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    rest = b""
    async for chunk in content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line:
                yield line
