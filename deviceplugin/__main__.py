# SPDX-License-Identifier: Apache-2.0
"""cgpu-device-plugin: wires the parts together, starts them, and ends them on SIGTERM."""

import asyncio
import logging
import signal
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from aiohttp import web

from cgpu.cdi import CdiFolder
from cgpu.core.errors import CgpuError, SettingError
from cgpu.core.health import HealthBook
from cgpu.driver import load_management_library
from cgpu.gpus import Gpu, NvmlGpus, SimulatedGpus
from cgpu.kube.client import KubeClient
from cgpu.kube.events import EventRecorder
from cgpu.kube.objects import NODES, PODS
from cgpu.kube.reflector import Reflector
from cgpu.loader import Loader, chrooted
from cgpu.procfs import CgpuProc
from cgpu.settings import read_settings
from cgpu.telemetry import set_up_logging
from deviceplugin.compute import Compute
from deviceplugin.events import BackgroundRecorder
from deviceplugin.handover import Handover
from deviceplugin.instances import Backends, Instances, NoInstances, SharedNodes, WithoutModule
from deviceplugin.inventory import GpuSource, Inventory, Rules
from deviceplugin.kernel import KernelInstances
from deviceplugin.module import Module
from deviceplugin.namespaces import Namespaces
from deviceplugin.offer import RESOURCES
from deviceplugin.options import Options
from deviceplugin.pairing import KubeletBooks
from deviceplugin.publisher import Publisher
from deviceplugin.reconcile import Reconciler
from deviceplugin.records import Records
from deviceplugin.resize import Resizer
from deviceplugin.runtime import runtime_problem
from deviceplugin.server import ResourceServer
from deviceplugin.servicer import Listing, Servicer
from deviceplugin.stores import NodeStore, PodStore
from deviceplugin.unserved import UnservedWatch
from deviceplugin.usage import BusyMeter, GpuRow, InstanceRow, gpu_rows, instance_rows
from deviceplugin.web import make_app
from deviceplugin.withdraw import withdraw

log = logging.getLogger("deviceplugin")
PROGRAM: Final = "cgpu-device-plugin"


class Plugin:
    """One node's plugin with all its parts; constructing it does no I/O."""

    def __init__(self, options: Options, client: KubeClient, enforced: Instances | None = None) -> None:
        """`enforced`: makes the instances of modes that isolate; None: nothing on this node does."""
        self.options = options
        self.nodes, self.pods = NodeStore(), PodStore()
        name = options.node
        self._watches = (
            Reflector(client, NODES, self.nodes, field_selector=f"metadata.name={name}"),
            Reflector(client, PODS, self.pods, field_selector=f"spec.nodeName={name}"),
        )
        self.recorder = recorder = BackgroundRecorder(EventRecorder(client, PROGRAM, host=name), self.nodes, name)
        self.books = KubeletBooks(options.kubelet_root)
        self.records = Records(options.run_folder / "grants")
        proc = CgpuProc(options.proc_root)
        self.module = Module(proc, _loader(options), dict(word.split("=", 1) for word in options.module_parameters))
        self.backends = Backends(
            NoInstances() if options.simulate else SharedNodes(options.dev_root),
            enforced or (WithoutModule(proc) if options.simulate else _kernel(options, proc, self.module)),
        )
        cdi = CdiFolder(options.cdi_folder)
        listings = {resource: Listing(resource) for resource in RESOURCES}
        self.inventory = Inventory(
            _source(options), self.books, self.nodes, self.pods, self.records,
            listings=listings, publisher=Publisher(client), recorder=recorder, rules=self._rules(),
        )  # fmt: skip
        self.handover = Handover(
            self.books, self.pods, self.records, cdi=cdi, backends=self.backends, recorder=recorder,
            serving=lambda: self.inventory.serving, policy=Namespaces(client),
            high_priority_classes=options.high_priority_classes,
        )  # fmt: skip
        self._busy = BusyMeter()
        self._reconciler = Reconciler(
            self.books, self.pods, self.records, cdi=cdi, backends=self.backends, handover=self.handover
        )
        self.unserved = UnservedWatch(
            self.books, self.pods, self.records, recorder,
            cards=lambda: self.inventory.serving.cards, proc_root=options.proc_root,
        )  # fmt: skip
        self._resizer = Resizer(client, self.pods, self.records, self.handover, lambda: self.inventory.serving.cards)
        folder = options.kubelet_root / "device-plugins"
        self.servers = {
            resource: ResourceServer(folder, listing, Servicer(listing, self.handover))
            for resource, listing in listings.items()
        }
        self.inventory.watch_servers([self.servers[resource] for resource in RESOURCES])

    def _rules(self) -> Rules:
        options = self.options
        return Rules(
            default_mode=options.default_mode,
            reserve_mib=options.reserve_mib,
            max_instances=options.max_instances,
            module_problem=lambda mode: self.backends.of(mode).problem(mode),
            runtime_problem=lambda version: runtime_problem(version, options.assume_cdi),
        )

    def rows(self) -> tuple[list[GpuRow], list[InstanceRow]]:
        """Cards and instances now."""
        cards = self.inventory.serving.cards
        kernel = self.backends.rows()
        instances = instance_rows(self.records, cards, kernel, self._busy.ratios(kernel, time.monotonic()))
        used = {
            gpu.uuid: gpu.used_mib << 20 for gpu in self.inventory.gpus if gpu.used_mib is not None and not gpu.fault
        }
        return gpu_rows(cards, self.pods.pods.values(), instances, kernel, used), instances

    def _state(self) -> tuple[str, str]:
        return self.inventory.mode, self.inventory.problem

    async def run(self) -> None:
        """Until cancelled. The web server is up first, so that /healthz can say what is missing."""
        self.records.load()
        options = self.options
        async with AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:
            stack.push_async_callback(self.books.close)
            app = make_app(options.node, self._state, self.rows, lambda: self.unserved.rows)
            self.runner = web.AppRunner(app, access_log=None)
            await self.runner.setup()
            stack.push_async_callback(self.runner.cleanup)
            await web.TCPSite(self.runner, options.listen.host, options.listen.port).start()
            for watch in self._watches:
                tasks.create_task(watch.run())
            tasks.create_task(self.inventory.scan_for_ever())
            for watch in self._watches:
                await watch.synced.wait()
            tasks.create_task(self.inventory.run())
            tasks.create_task(self.module.keep(lambda: self.inventory.mode, self.inventory.wake.fire))
            tasks.create_task(self._reconciler.run())
            tasks.create_task(self._resizer.run())
            tasks.create_task(self.unserved.run())
            for server in self.servers.values():
                tasks.create_task(server.run())


def _source(options: Options) -> GpuSource:
    if options.simulate is not None:
        return SimulatedGpus(options.simulate, options.node)
    return HostNvml(NvmlGpus(HealthBook(options.ignored_xids), time.monotonic), options.host_root)


class HostNvml:
    """NVIDIA's library where it is, or the node's own where the pod was given none."""

    def __init__(self, gpus: NvmlGpus, host_root: Path) -> None:
        """`host_root`: where the node's own root folder is."""
        self._gpus = gpus
        self._host_root = host_root

    def scan(self) -> tuple[Gpu, ...]:
        """The cards now. Raises UnavailableError with the reason when there is none."""
        load_management_library(self._host_root)
        return self._gpus.scan()

    def wait(self, timeout_s: float) -> None:
        """Until they may have changed, at most `timeout_s`."""
        self._gpus.wait(timeout_s)


def _loader(options: Options) -> Loader | None:
    """What loads the module: the host's programs on the host's files."""
    if not options.load_module or options.simulate is not None:
        return None
    source = options.module_source if (options.module_source / "Kbuild").is_file() else None
    if options.host_root == Path("/"):
        return Loader(source)
    return Loader(source, options.host_root, run=chrooted(options.host_root))


def _kernel(options: Options, proc: CgpuProc, module: Module) -> KernelInstances:
    return KernelInstances(
        proc, module.problem, options.run_folder,
        compute=Compute(proc, options.run_folder, options.core_policy, options.max_instances),
        proc_root=options.proc_root, host_root=options.host_root,
    )  # fmt: skip


async def serve(options: Options) -> None:
    """Run the plugin until SIGTERM or SIGINT; with --withdraw, until the nodes are as they were before."""
    if options.withdraw:
        async with await KubeClient.connect(options.kubeconfig) as client:
            await withdraw(client)
        return
    if not options.node:
        raise SettingError("--node is missing: name this node, in a pod from spec.nodeName by CGPU_NODE")
    loop = asyncio.get_running_loop()
    async with await KubeClient.connect(options.kubeconfig) as client:
        work = asyncio.create_task(Plugin(options, client).run())
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, work.cancel)
        try:
            await work
        except asyncio.CancelledError:
            log.info("ended by a signal")


def main() -> None:
    """Exit status 2 for a setting that breaks its rule, 1 for anything else that keeps the plugin from running."""
    try:
        options = read_settings(Options, PROGRAM, sys.argv[1:])
        set_up_logging(options.log_level, options.log_format)
        asyncio.run(serve(options))
    except (CgpuError, OSError) as error:
        sys.stderr.write(f"{PROGRAM}: {error}\n")
        sys.exit(2 if isinstance(error, SettingError) else 1)


if __name__ == "__main__":
    main()
