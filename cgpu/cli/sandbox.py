# SPDX-License-Identifier: Apache-2.0
"""`cgpu sandbox`: a real Kubernetes on this machine."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from cgpu.core.errors import SettingError
from cgpu.sandbox import demo, demo_node, images, release, versions
from cgpu.sandbox.lifecycle import Plan, down, up
from cgpu.sandbox.machines import MachineNode
from cgpu.sandbox.progress import Say, cache_folder
from cgpu.sandbox.project import checkout, default_state
from cgpu.sandbox.sandbox import attach, status
from cgpu.sandbox.spec import NodeSpec, default_nodes, machine_nodes, read_nodes

_DEFAULT_NODES: Final = 2


def main(argv: Sequence[str]) -> int:
    """Run `cgpu sandbox` with these arguments. Raises CgpuError."""
    options = _parser().parse_args(argv)
    verb: Callable[[argparse.Namespace], int] = options.verb
    return verb(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="cgpu sandbox", description=__doc__)
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    made = _verb(verbs, "up", _up, "start it, or bring back what of it does not run")
    size = made.add_mutually_exclusive_group()
    size.add_argument("--nodes", type=int, help=f"how many nodes of mixed cards (default {_DEFAULT_NODES})")
    size.add_argument("--vm-nodes", type=int, metavar="N", help="N virtual machines with a T4 each, and a plain node")
    size.add_argument("--cards", type=Path, metavar="FILE", help="YAML: nodes, their labels and their cards")
    made.add_argument("--kubernetes", default=versions.KUBERNETES, metavar="VERSION", help="default %(default)s")
    made.add_argument("--install", action="store_true", help="install the chart too")
    _verb(verbs, "demo", _demo, "the whole story: up, install, example pods, books, down")
    _verb(verbs, "demo-node", _demo_node, "true limits: a virtual machine, the kernel module, two pods on one card")
    _verb(verbs, "image", _image, "build our container image, as an archive in the cache")
    _verb(verbs, "down", _down, "end it; nothing of it stays")
    _verb(verbs, "status", _status, "what runs")
    entered = _verb(verbs, "exec", _exec, "run a command in a node's namespaces")
    entered.add_argument("node", metavar="NODE")
    entered.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND ...")
    return parser


def _verb(
    verbs: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    call: Callable[[argparse.Namespace], int],
    about: str,
) -> argparse.ArgumentParser:
    parser = verbs.add_parser(name, help=about, description=about)
    parser.add_argument("--state", type=Path, help="folder of the sandbox (default .cluster of the project)")
    parser.set_defaults(verb=call)
    return parser


def _up(options: argparse.Namespace) -> int:
    say = _say()
    sandbox = up(Plan(_state(options), _nodes(options), options.kubernetes, checkout()), say)
    if options.install:
        release.install(sandbox, _project(), say)
    say(f"kubeconfig: {sandbox.kubeconfig}")
    return 0


def _nodes(options: argparse.Namespace) -> tuple[NodeSpec, ...]:
    if options.cards:
        return read_nodes(options.cards)
    if options.vm_nodes is not None:
        return machine_nodes(options.vm_nodes)
    return default_nodes(_DEFAULT_NODES if options.nodes is None else options.nodes)


def _demo(options: argparse.Namespace) -> int:
    given: Path | None = options.state
    project = _project()
    return demo.run((given or project / ".cluster-demo").resolve(), project, _say())


def _demo_node(options: argparse.Namespace) -> int:
    given: Path | None = options.state
    project = _project()
    return demo_node.run((given or project / ".cluster-demo").resolve(), project, _say())


def _image(_: argparse.Namespace) -> int:
    print(images.ours(cache_folder(), _project(), _say()).path)
    return 0


def _project() -> Path:
    """The checkout. Raises SettingError outside of one."""
    project = checkout()
    if project is None:
        raise SettingError("the image and the chart come from a checkout: run this command from one, after `make venv`")
    return project


def _down(options: argparse.Namespace) -> int:
    down(_state(options), _say())
    return 0


def _status(options: argparse.Namespace) -> int:
    sandbox = attach(_state(options))
    print(f"Kubernetes {sandbox.record.kubernetes}, kubeconfig {sandbox.kubeconfig}")
    rows = status(sandbox)
    for name, state in rows:
        print(f"{name:<32} {state}")
    return 0 if all(state in {"running", "Ready"} for _, state in rows) else 1


def _exec(options: argparse.Namespace) -> int:
    words = options.command[1:] if options.command[:1] == ["--"] else options.command
    sandbox = attach(_state(options))
    if options.node not in sandbox.record.machines:
        command = sandbox.node_command(options.node, words or ["sh"])
        os.execvp(command[0], command)  # noqa: S606  the terminal, signals and exit status are the command's
    return _run_in_machine(sandbox.machine(options.node), words)


def _run_in_machine(machine: MachineNode, words: list[str]) -> int:
    """A machine has no terminal for us: the command's output is passed through, its input is empty."""
    if not words:
        raise SettingError(f"{machine.name} is a virtual machine and takes whole commands: write -- COMMAND ...")
    done = machine.agent.run(words)
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    return done.returncode


def _state(options: argparse.Namespace) -> Path:
    given: Path | None = options.state
    return (given or default_state()).resolve()


def _say() -> Say:
    """Lines with the seconds since the command began."""
    began = time.monotonic()
    return lambda text: print(f"[{time.monotonic() - began:6.1f}] {text}", flush=True)
