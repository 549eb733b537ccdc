# SPDX-License-Identifier: Apache-2.0
"""cgpu-extender: wiring and life of the process."""

import asyncio
import contextlib
import gc
import logging
import signal
import ssl
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aiohttp import web

from cgpu.core.errors import CgpuError, SettingError
from cgpu.core.names import EXTENDER_READ_PORT, EXTENDER_VERB_PORT, SCHEDULER_NAME
from cgpu.kube.client import KubeClient
from cgpu.kube.events import EventRecorder
from cgpu.settings import Address, address, boolean, member, names, path, read_settings, seconds, setting
from cgpu.telemetry import LogFormat, LogLevel, set_up_logging
from extender.app import Service
from extender.binder import Binder
from extender.books import Books
from extender.cache import Cache
from extender.events import Announcer
from extender.metrics import Metrics
from extender.resize import Leadership, Resizer
from extender.setbacks import Setbacks
from extender.verbs import Verbs
from extender.waker import Waker

log: Final = logging.getLogger("extender")

SETTLE_SECONDS: Final = 2.0
STOP_SECONDS: Final = 5.0


def lease(written: str) -> str:
    """`namespace/name`, or nothing. Raises ValueError."""
    namespace, _, name = written.partition("/")
    if written and not (namespace and name and "/" not in name):
        raise ValueError("write namespace/name")
    return written


@dataclass(frozen=True, slots=True)
class Settings:
    """The scheduler extender: finds the card for every pod that asks for aliyun.com/gpu-mem."""

    kubeconfig: Path | None = setting("kubeconfig file; without it the pod's service account", path, None)
    verb_address: Address = setting(
        "where filter, prioritize, bind and preempt listen", address, Address("127.0.0.1", EXTENDER_VERB_PORT)
    )
    read_address: Address = setting(
        "where inspect, health and metrics listen",
        address,
        Address("0.0.0.0", EXTENDER_READ_PORT),  # noqa: S104 - read only, for probes and scrapes
    )
    tls_cert: Path | None = setting("PEM certificate of the verb listener", path, None)
    tls_key: Path | None = setting("PEM key of the verb listener", path, None)
    tls_client_ca: Path | None = setting("PEM CA whose client certificates may call the verbs", path, None)
    allow_remote_verbs: bool = setting(
        "let the verbs listen beyond this machine without TLS: whoever reaches the address can bind any pod to any node",
        boolean,
        False,
    )
    scheduler_names: tuple[str, ...] = setting(
        "schedulerName of the pods whose waiting is explained by events", names, (SCHEDULER_NAME,)
    )
    compare_seconds: float = setting("how often the books are compared with a fresh list", seconds(1, 86_400), 300.0)
    lease: str = setting(
        "namespace/name of the Lease that kube-scheduler holds: only beside its holder shares grow; empty = this"
        " extender is the only one",
        lease,
        "",
    )
    log_level: LogLevel = setting("debug, info, warning or error", member(LogLevel), LogLevel.INFO)
    log_format: LogFormat = setting("text or json", member(LogFormat), LogFormat.TEXT)


def verb_tls(settings: Settings) -> ssl.SSLContext | None:
    """TLS of the verb listener; None only where nobody else can reach it, or where that was asked for.

    Raises SettingError.
    """
    files = (settings.tls_cert, settings.tls_key, settings.tls_client_ca)
    if any(files) and not all(files):
        raise SettingError("--tls-cert, --tls-key and --tls-client-ca belong together: set all three or none")
    cert, key, client_ca = files
    if cert and key and client_ca:
        try:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(client_ca))
            context.load_cert_chain(cert, key)
        except OSError as error:
            raise SettingError(f"the TLS files {cert}, {key}, {client_ca} cannot be used: {error}") from error
        context.verify_mode = ssl.CERT_REQUIRED
        return context
    if not settings.verb_address.is_loopback and not settings.allow_remote_verbs:
        raise SettingError(
            f"--verb-address={settings.verb_address}: beyond 127.0.0.1 anybody could bind pods; set --tls-cert,"
            " --tls-key and --tls-client-ca, or --allow-remote-verbs if only the scheduler reaches the address"
        )
    return None


async def serve(settings: Settings, stop: asyncio.Event) -> None:
    """Run until `stop`. Raises SettingError or UnavailableError when it cannot start."""
    tls = verb_tls(settings)
    books = Books()
    setbacks = Setbacks()
    verbs = Verbs(books, setbacks)
    async with await KubeClient.connect(settings.kubeconfig) as client, contextlib.AsyncExitStack() as servers:
        cache = Cache(client, books)
        verbs.on_refused = cache.changes.set
        binder = Binder(client, verbs, setbacks)
        metrics = Metrics(cache, verbs, settings.scheduler_names)
        service = Service(cache, verbs, binder, metrics)
        announcer = Announcer(verbs, EventRecorder(client, "cgpu-extender"), settings.scheduler_names)
        await _listen(servers, service.verb_app(), settings.verb_address, tls)
        await _listen(servers, service.read_app(), settings.read_address, None)
        log.info("verbs on %s, inspect and metrics on %s", settings.verb_address, settings.read_address)
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(cache.run()),
                group.create_task(_announced(cache, announcer)),
                group.create_task(_compared(cache, settings.compare_seconds)),
                group.create_task(_settled(binder)),
                group.create_task(Waker(client, verbs).run()),
                group.create_task(_resized(cache, Resizer(client, books, Leadership(client, settings.lease)))),
            ]
            await stop.wait()
            for task in tasks:
                task.cancel()
    log.info("stopped")


async def _listen(
    servers: contextlib.AsyncExitStack, app: web.Application, where: Address, tls: ssl.SSLContext | None
) -> None:
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=STOP_SECONDS)
    await runner.setup()
    servers.push_async_callback(runner.cleanup)
    try:
        await web.TCPSite(runner, where.host, where.port, ssl_context=tls).start()
    except OSError as error:
        raise SettingError(f"cannot listen on {where}: {error.strerror}; is another extender running?") from error


async def _announced(cache: Cache, announcer: Announcer) -> None:
    await cache.nodes.synced.wait()
    await cache.pods.synced.wait()
    log.info(
        "books rebuilt: %d nodes, %d bound pods, %d waiting",
        len(cache.books.nodes),
        len(cache.books.pods),
        len(cache.books.waiting),
    )
    # what a cluster's objects make of the heap is never garbage: a full collection would only hold up a filter
    gc.collect()
    gc.freeze()
    await announcer.run(cache.changes)


async def _compared(cache: Cache, every: float) -> None:
    await cache.pods.synced.wait()
    while True:
        await asyncio.sleep(every)
        try:
            await cache.compare()
        except CgpuError as error:
            log.warning("the books could not be compared: %s", error)


async def _resized(cache: Cache, resizer: Resizer) -> None:
    await cache.nodes.synced.wait()
    await cache.pods.synced.wait()
    await resizer.run(cache.pod_changes)


async def _settled(binder: Binder) -> None:
    while True:
        await asyncio.sleep(SETTLE_SECONDS)
        await binder.settle()


async def _run(settings: Settings) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await serve(settings, stop)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit 0 after a signal, 1 when it cannot run, 2 for wrong settings."""
    try:
        settings = read_settings(Settings, "cgpu-extender", sys.argv[1:] if argv is None else argv)
        set_up_logging(settings.log_level, settings.log_format)
        asyncio.run(_run(settings))
    except SettingError as error:
        print(f"cgpu-extender: {error}", file=sys.stderr)  # noqa: T201
        return 2
    except CgpuError as error:
        print(f"cgpu-extender: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
