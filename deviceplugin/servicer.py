# SPDX-License-Identifier: Apache-2.0
"""The device plugin's RPCs for one resource, and the list of ids that they speak of."""

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final, Protocol

import grpc

from cgpu.core.devices import cdi_name
from cgpu.core.errors import CgpuError, UnavailableError
from cgpu.core.names import ENV_VISIBLE_DEVICES, RESOURCE_MEM
from cgpu.kubelet import deviceplugin_pb2 as wire
from cgpu.kubelet import deviceplugin_pb2_grpc
from deviceplugin.stores import Signal

log = logging.getLogger(__name__)
VERSION: Final = "v1beta1"
_HEALTH: Final[Mapping[bool, str]] = {True: "Healthy", False: "Unhealthy"}

Devices = Sequence[tuple[str, bool]]
"""(id, healthy) in number order."""


class Listing:
    """The ids of one resource as they are now; every stream sends them whole after each change."""

    def __init__(self, resource: str) -> None:
        """An empty list: nothing is offered."""
        self.resource = resource
        self.devices: Devices = ()
        self.signal = Signal()

    def publish(self, devices: Devices) -> None:
        """Replace the list; streams are woken only when it differs."""
        if tuple(devices) != tuple(self.devices):
            self.devices = tuple(devices)
            self.signal.fire()

    async def offered(self) -> None:
        """Wait until there is something to offer."""
        while not self.devices:
            change = self.signal.next()
            await change.wait()

    def message(self) -> wire.ListAndWatchResponse:
        """The list on the wire."""
        return wire.ListAndWatchResponse(
            devices=[wire.Device(ID=id_, health=_HEALTH[healthy]) for id_, healthy in self.devices]
        )


class Starter(Protocol):
    """Hands a share out before a container starts."""

    async def start(self, ids: Sequence[str]) -> object:
        """Raises CgpuError with a text for the reader of `kubectl describe pod`."""


class Servicer(deviceplugin_pb2_grpc.DevicePluginServicer):
    """Serves one resource. Only aliyun.com/gpu-mem carries the CDI name and is asked before a container starts."""

    def __init__(self, listing: Listing, starter: Starter) -> None:
        """`listing`: what ListAndWatch tells; `starter`: what PreStartContainer does."""
        self._listing = listing
        self._starter = starter
        self._carries = listing.resource == RESOURCE_MEM

    def options(self) -> wire.DevicePluginOptions:
        """The same for registration and for GetDevicePluginOptions."""
        return wire.DevicePluginOptions(pre_start_required=self._carries, get_preferred_allocation_available=False)

    async def GetDevicePluginOptions(self, request: wire.Empty, context: Any) -> wire.DevicePluginOptions:  # noqa: N802 - the RPC's name
        """Whether PreStartContainer is wanted. Preferences are of no use, since ids say nothing about cards."""
        del request, context
        return self.options()

    async def ListAndWatch(self, request: wire.Empty, context: Any) -> AsyncIterator[wire.ListAndWatchResponse]:  # noqa: N802
        """The whole list now and after every change, until the kubelet hangs up."""
        del request, context
        while True:
            change = self._listing.signal.next()
            yield self._listing.message()
            await change.wait()

    async def Allocate(self, request: wire.AllocateRequest, context: Any) -> wire.AllocateResponse:  # noqa: N802
        """Answered from memory: the CDI name is a function of the ids. Nobody can know the pod here, so nothing is guessed."""
        del context
        return wire.AllocateResponse(
            container_responses=[self._answer(row.devices_ids) for row in request.container_requests]
        )

    def _answer(self, ids: Sequence[str]) -> wire.ContainerAllocateResponse:
        if not self._carries:
            return wire.ContainerAllocateResponse()
        # A runtime that ignores CDI names would start the container as if it had no limit: void keeps GPUs out then.
        return wire.ContainerAllocateResponse(
            envs={ENV_VISIBLE_DEVICES: "void"}, cdi_devices=[wire.CDIDevice(name=cdi_name(ids))]
        )

    async def PreStartContainer(  # noqa: N802
        self, request: wire.PreStartContainerRequest, context: Any
    ) -> wire.PreStartContainerResponse:
        """Hands the share out; an error keeps the container from starting and is retried by the kubelet."""
        if self._carries:
            try:
                await self._starter.start(request.devices_ids)
            except CgpuError as error:
                log.warning("PreStartContainer %s: %s", cdi_name(request.devices_ids), error)
                again = isinstance(error, UnavailableError)
                code = grpc.StatusCode.UNAVAILABLE if again else grpc.StatusCode.FAILED_PRECONDITION
                await context.abort(code, str(error))
        return wire.PreStartContainerResponse()
