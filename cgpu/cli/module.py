# SPDX-License-Identifier: Apache-2.0
"""`cgpu module`: the kernel module on this machine."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from cgpu.core.errors import SettingError
from cgpu.loader import Loader, Status


def main(argv: Sequence[str]) -> int:
    """Run `cgpu module` with these arguments; 1 when the module does not run in the wanted version. Raises CgpuError."""
    options = parser().parse_args(argv)
    call: Callable[[Loader, argparse.Namespace], int] = options.call
    return call(Loader(options.source), options)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="cgpu module", description=__doc__)
    verbs = made.add_subparsers(required=True, metavar="VERB")
    for name, call, about in (
        ("status", _status, "what runs, what is built, and everything that is in the way"),
        ("build", _build, "compile it for the running kernel, where DKMS would put it"),
        ("load", _load, "load it, built before; nothing happens where it runs already"),
        ("unload", _unload, "take it out; refused while instances are there"),
        ("upgrade", _upgrade, "exchange the running core for the built one, below running containers"),
    ):
        verb = verbs.add_parser(name, help=about, description=about)
        verb.add_argument("--source", type=Path, help="folder of its sources (default: /usr/src/cgpu_km-*, else ours)")
        verb.set_defaults(call=call)
        if name == "load":
            verb.add_argument("parameters", nargs="*", metavar="NAME=VALUE", help="parameters of the module")
    return made


def _status(loader: Loader, _: argparse.Namespace) -> int:
    status = loader.status()
    print("\n".join(render(status)))
    return 0 if status.ready else 1


def render(status: Status) -> list[str]:
    """The lines of `cgpu module status`."""
    rows = {
        "kernel": status.kernel,
        "NVIDIA driver": status.driver or "not loaded",
        "sources": status.wanted or "none",
        "built": ", ".join(status.built) or "nothing for this kernel",
        "running": status.loaded or "not loaded",
    }
    return [f"{name + ':':<15}{value}" for name, value in rows.items()] + [f"! {text}" for text in status.obstacles]


def _build(loader: Loader, _: argparse.Namespace) -> int:
    print(f"building for Linux {loader.release} ...", flush=True)
    print(f"built {', '.join(loader.build())} in {loader.installed}")
    return 0


def _load(loader: Loader, options: argparse.Namespace) -> int:
    words: list[str] = options.parameters
    for word in words:
        if "=" not in word:
            raise SettingError(f"{word!r}: a parameter is NAME=VALUE")
    print(f"version {loader.load(dict(word.split('=', 1) for word in words))} runs")
    return 0


def _unload(loader: Loader, _: argparse.Namespace) -> int:
    loader.unload()
    print("not loaded any more")
    return 0


def _upgrade(loader: Loader, _: argparse.Namespace) -> int:
    print(f"version {loader.upgrade()} runs")
    return 0
