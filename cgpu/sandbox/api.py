# SPDX-License-Identifier: Apache-2.0
"""The few requests the sandbox makes to its own API server."""

import base64
import http.client
import json
import ssl
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cgpu.core.errors import UnavailableError

Json = dict[str, Any]


class Api:
    """A client from a kubeconfig that this package wrote. Every call opens a connection, except batches of `create`."""

    def __init__(self, kubeconfig: Path) -> None:
        config = json.loads(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        address = urlsplit(cluster["server"])
        self._host, self._port = address.hostname or "", address.port or 443
        self._context = _context(
            cluster["certificate-authority-data"], user["client-certificate-data"], user["client-key-data"]
        )

    def answers(self, path: str = "/readyz") -> bool:
        """Whether a GET succeeds."""
        try:
            with closing(self._connect(5)) as connection:
                connection.request("GET", path)
                return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False

    def get(self, path: str) -> Json:
        """One object or list. Raises UnavailableError for any other answer than success."""
        with closing(self._connect(30)) as connection:
            return _exchange(connection, "GET", path, None)

    def create(self, path: str, objects: list[Json]) -> None:
        """Create objects, one after the other on one connection; those that exist are left as they are."""
        with closing(self._connect(30)) as connection:
            for item in objects:
                _exchange(connection, "POST", path, item, fine=(409,))

    def patch(self, path: str, change: Json) -> None:
        """Merge `change` into an object."""
        with closing(self._connect(30)) as connection:
            _exchange(connection, "PATCH", path, change)

    def watch(self, path: str, deadline: float) -> Iterator[Json]:
        """The objects of a list, then each again when it changes, until `deadline` (monotonic seconds).

        When the server ends the watch or has forgotten its start, the list is read again. Raises UnavailableError.
        """
        while time.monotonic() < deadline:
            listed = self.get(path)
            yield from listed["items"]
            yield from self._changes(path, listed["metadata"]["resourceVersion"], deadline)

    def _changes(self, path: str, version: str, deadline: float) -> Iterator[Json]:
        """Objects as they change, until the server or the deadline ends it."""
        left = max(1.0, deadline - time.monotonic())
        query = f"{path}?watch=1&resourceVersion={version}&timeoutSeconds={int(left)}"
        with closing(self._connect(left)) as connection:
            try:
                connection.request("GET", query, headers=_HEADERS)
                for line in connection.getresponse():
                    event = json.loads(line)
                    if event.get("type") == "ERROR" or "object" not in event:
                        return
                    yield event["object"]
            except (OSError, http.client.HTTPException):
                return

    def _connect(self, timeout_s: float) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._host, self._port, timeout=timeout_s, context=self._context)


_HEADERS = {"Accept": "application/json"}


def _exchange(
    connection: http.client.HTTPSConnection, method: str, path: str, body: Json | None, fine: tuple[int, ...] = ()
) -> Json:
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    text = None if body is None else json.dumps(body)
    try:
        connection.request(method, path, body=text, headers={**_HEADERS, "Content-Type": kind})
        response = connection.getresponse()
        answer: Json = json.loads(response.read())
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise UnavailableError(f"API server: {method} {path}: {error}") from error
    if response.status >= 400 and response.status not in fine:
        raise UnavailableError(f"API server: {method} {path}: {response.status} {answer.get('message', '')}")
    return answer


def _context(authority: str, certificate: str, key: str) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=base64.b64decode(authority).decode())
    with tempfile.NamedTemporaryFile("wb") as pair:  # the ssl module loads certificates from files only
        pair.write(base64.b64decode(certificate) + base64.b64decode(key))
        pair.flush()
        context.load_cert_chain(pair.name)
    return context
