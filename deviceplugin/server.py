# SPDX-License-Identifier: Apache-2.0
"""The life of a plugin's socket: serve, register, notice that the kubelet restarted, do it again.

A starting kubelet deletes every socket in its device-plugins folder and then makes its own; either tells us.
"""

import asyncio
import logging
from pathlib import Path
from typing import Final

import grpc

from cgpu.kubelet import deviceplugin_pb2 as wire
from cgpu.kubelet import deviceplugin_pb2_grpc
from deviceplugin.servicer import VERSION, Listing, Servicer
from deviceplugin.stores import Signal

log = logging.getLogger(__name__)
_LOOK_S: Final = 0.25
_REGISTER_S: Final = 10.0
_LONGEST_DELAY_S: Final = 2.0  # registered again within 5 s of the kubelet's return, whatever went wrong before


class ResourceServer:
    """Serves one resource on one socket of the folder, for as long as `run` runs."""

    def __init__(self, folder: Path, listing: Listing, servicer: Servicer) -> None:
        """`folder`: /var/lib/kubelet/device-plugins, a constant in the kubelet."""
        self.resource = listing.resource
        self._listing = listing
        self._servicer = servicer
        self._socket = folder / f"cgpu-{listing.resource.rpartition('/')[2]}.sock"
        self._kubelet = folder / "kubelet.sock"
        self.registered = False
        self.signal = Signal()  # fires when `registered` changed

    async def run(self) -> None:
        """Until cancelled; failures are logged and tried again."""
        delay = _LOOK_S
        try:
            while True:
                try:
                    await self._serve_once()
                    delay = _LOOK_S
                except (grpc.aio.AioRpcError, OSError, RuntimeError) as error:
                    text = error.details() if isinstance(error, grpc.aio.AioRpcError) else error
                    log.warning("%s: not registered with the kubelet: %s", self.resource, text)
                    await asyncio.sleep(delay)
                    delay = min(delay * 2, _LONGEST_DELAY_S)
        finally:
            self._socket.unlink(missing_ok=True)

    async def _serve_once(self) -> None:
        """One kubelet's life: serve before registering, since Register makes the kubelet call back."""
        await self._listing.offered()
        seen = await self._kubelet_appears()
        self._socket.unlink(missing_ok=True)
        server = grpc.aio.server(options=[("grpc.max_receive_message_length", -1), ("grpc.so_reuseport", 0)])
        deviceplugin_pb2_grpc.add_DevicePluginServicer_to_server(self._servicer, server)  # type: ignore[no-untyped-call]
        server.add_insecure_port(f"unix://{self._socket}")
        await server.start()
        try:
            ours = _identity(self._socket)
            await self._register()
            self._set_registered(True)
            log.info("%s: registered with the kubelet", self.resource)
            while _identity(self._kubelet) == seen and _identity(self._socket) == ours:  # noqa: ASYNC110 - a folder has no event
                await asyncio.sleep(_LOOK_S)
            log.info("%s: the kubelet restarted", self.resource)
        finally:
            self._set_registered(False)
            await server.stop(None)

    def _set_registered(self, value: bool) -> None:
        self.registered = value
        self.signal.fire()

    async def _kubelet_appears(self) -> object:
        waited = False
        while (seen := _identity(self._kubelet)) is None:
            if not waited:
                log.info("%s: waiting for %s", self.resource, self._kubelet)
                waited = True
            await asyncio.sleep(_LOOK_S)
        return seen

    async def _register(self) -> None:
        async with grpc.aio.insecure_channel(f"unix://{self._kubelet}") as channel:
            stub = deviceplugin_pb2_grpc.RegistrationStub(channel)  # type: ignore[no-untyped-call]
            request = wire.RegisterRequest(
                version=VERSION,
                endpoint=self._socket.name,
                resource_name=self.resource,
                options=self._servicer.options(),
            )
            await stub.Register(request, timeout=_REGISTER_S)


def _identity(path: Path) -> object:
    """What tells one socket from the next under the same name; None when there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino, found.st_mtime_ns)
