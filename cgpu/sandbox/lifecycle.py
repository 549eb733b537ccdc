# SPDX-License-Identifier: Apache-2.0
"""Make a sandbox, bring one back, end one."""

import json
import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from cgpu.core.errors import CgpuError, SettingError, UnavailableError
from cgpu.sandbox import versions
from cgpu.sandbox.binaries import ensure
from cgpu.sandbox.controlplane import ControlPlane
from cgpu.sandbox.host import PACKAGES, CgroupTree, ensure_packages, is_routed, require_root, run
from cgpu.sandbox.images import archives, copy_store
from cgpu.sandbox.light import node_objects
from cgpu.sandbox.machines import MachineNode
from cgpu.sandbox.network import make_network
from cgpu.sandbox.nodes import ContainerNode
from cgpu.sandbox.pki import Authority
from cgpu.sandbox.progress import Say, cache_folder, step
from cgpu.sandbox.record import Record, Records, state_locked
from cgpu.sandbox.sandbox import Sandbox, is_ready
from cgpu.sandbox.spec import NodeKind, NodeSpec
from cgpu.sandbox.store import ensure_store
from cgpu.sandbox.teardown import remove_tree, tear_down

_NODES_S: Final = 180
_MACHINES_S: Final = 480  # an emulated computer boots in 15 s, on a machine with nothing else to do
_GLANCE_S: Final = 5
_OUR_FILES: Final = frozenset(
    (
        "controller-manager.kubeconfig",
        "etcd",
        "kubeconfig",
        "log",
        "nodes",
        "pki",
        "scheduler.kubeconfig",
        "scheduler.yaml",
        "store",
        "units",
    )
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to make. `project`: the checkout our image is built from (None: without our image)."""

    state: Path
    nodes: tuple[NodeSpec, ...]
    kubernetes: str = versions.KUBERNETES
    project: Path | None = None

    def options(self) -> str:
        """What a running sandbox cannot change."""
        return json.dumps([[asdict(node) for node in self.nodes], self.kubernetes], sort_keys=True)

    def of_kind(self, kind: NodeKind) -> tuple[NodeSpec, ...]:
        """The nodes of a kind."""
        return tuple(node for node in self.nodes if node.kind is kind)


def up(plan: Plan, say: Say, records: Records | None = None, cache: Path | None = None) -> Sandbox:
    """Make the sandbox of `plan`, or bring back what of it does not run. One that is up is left as it is.

    Raises SettingError when the state folder holds another sandbox, UnavailableError when something does not come up;
    nothing half-made stays then.
    """
    require_root()
    if plan.of_kind(NodeKind.VM) and plan.project is None:
        raise SettingError("nodes of kind vm need a checkout: the simulated driver and its test bench are there")
    records, cache = records or Records(), cache or cache_folder()
    ensure_packages(PACKAGES, say)
    programs = ensure(cache, versions.sources(plan.kubernetes), say)
    images = archives(cache, plan.project, plan.kubernetes, programs["kube-scheduler"], say)
    store = ensure_store(cache, images, programs, say)
    with state_locked(plan.state):
        there = records.of_state(plan.state)
        if there and there.complete:
            return _bring_back(Sandbox(there, records, programs), plan, store, say)
        if there:
            say(f"removing what an interrupted start left in {plan.state}")
            tear_down(there, records)
        _end_lost(records, say)
        return _make(plan, records, programs, store, say)


def _end_lost(records: Records, say: Say) -> None:
    """End sandboxes whose state folder was deleted: nobody can name them any more."""
    for record in records.all():
        if not Path(record.state).exists():
            say(f"ending the sandbox of {record.state}, whose folder is gone")
            tear_down(record, records)


def _bring_back(sandbox: Sandbox, plan: Plan, store: Path, say: Say) -> Sandbox:
    """Start what does not run of a sandbox that is there, and give its nodes images that changed."""
    if sandbox.record.options != plan.options():
        raise SettingError(
            f"{plan.state} holds a sandbox with other nodes or another Kubernetes ({sandbox.record.kubernetes}); "
            "run `cgpu sandbox down` first, or name another --state"
        )
    for component in sandbox.components:
        if not sandbox.units.alive(component):
            say(f"starting {component}, which had ended")
            sandbox.start(component)
    ControlPlane(sandbox.record, sandbox.programs).wait_api()
    _refresh_images(sandbox, plan, store, say)
    _wait_nodes(sandbox, plan)
    return sandbox


def _refresh_images(sandbox: Sandbox, plan: Plan, store: Path, say: Say) -> None:
    note = Path(sandbox.record.state) / "store"
    if note.read_text() == store.name:
        return
    images = archives(cache_folder(), plan.project, plan.kubernetes, sandbox.programs["kube-scheduler"], say)
    if sandbox.record.machines:
        say("the virtual machines keep the images of their start: `cgpu sandbox down` and `up` change them")
    with step(say, "bringing changed images to the nodes"):
        for image in images:
            sandbox.load_image(image.path)
    note.write_text(store.name)


def _make(plan: Plan, records: Records, programs: dict[str, Path], store: Path, say: Say) -> Sandbox:
    _empty(plan.state)
    draft = Record(
        slot=0,
        state=str(plan.state),
        nodes=tuple(node.name for node in plan.of_kind(NodeKind.CONTAINER)),
        machines=tuple(node.name for node in plan.of_kind(NodeKind.VM)),
        options=plan.options(),
        kubernetes=plan.kubernetes,
    )
    record = records.claim(draft, is_routed)
    sandbox = Sandbox(record, records, programs)
    try:
        with step(say, f"Kubernetes {plan.kubernetes}, {len(plan.nodes)} nodes"):
            _start(sandbox, plan, records, store)
            _wait_nodes(sandbox, plan)
    except BaseException:
        _keep_logs(plan.state, say)
        tear_down(record, records)
        raise
    records.write(replace(record, complete=True))
    return Sandbox(replace(record, complete=True), records, programs)


def _start(sandbox: Sandbox, plan: Plan, records: Records, store: Path) -> None:
    """Everything that can start beside something else does."""
    record, authority = sandbox.record, Authority()
    systems = [f"{node}.system" for node in (*record.nodes, *record.machines)]
    CgroupTree.of_machine(record.cgroup).make(["control", *systems, *record.nodes])
    _make_pins(records.pins(record))
    make_network(record)
    control = ControlPlane(record, sandbox.programs)
    control.write_files(authority)
    control.start_api()
    (Path(record.state) / "store").write_text(store.name)
    with ThreadPoolExecutor() as pool:
        machines = [
            pool.submit(_start_machine, sandbox, spec, authority, store, plan.project)
            for spec in plan.of_kind(NodeKind.VM)
        ]
        nodes = [pool.submit(_start_node, sandbox, spec, authority, store) for spec in plan.of_kind(NodeKind.CONTAINER)]
        api = control.wait_api()
        light = plan.of_kind(NodeKind.KWOK)
        control.start_controllers(light_nodes=bool(light))
        started = [node.result() for node in nodes]
        for machine in machines:
            machine.result()
    for node in started:
        node.start_kubernetes()
    api.create("/api/v1/nodes", node_objects(light))


def _start_node(sandbox: Sandbox, spec: NodeSpec, authority: Authority, store: Path) -> ContainerNode:
    node = sandbox.node(spec.name)
    node.write_files(spec, authority)
    copy_store(store, node.home.bound("var/lib/containerd"))
    node.make_namespace()
    node.start_runtime()
    return node


def _start_machine(sandbox: Sandbox, spec: NodeSpec, authority: Authority, store: Path, project: Path | None) -> None:
    assert project is not None, "refused before anything was made"
    node = sandbox.machine(spec.name)
    node.write_files(authority)
    node.start(spec, store, project)


def _make_pins(folder: Path) -> None:
    """A private mount: the kernel takes pins of mount namespaces only there."""
    folder.mkdir(parents=True)
    run(["mount", "-t", "tmpfs", "-o", "mode=700", "tmpfs", str(folder)])
    run(["mount", "--make-private", str(folder)])


def _wait_nodes(sandbox: Sandbox, plan: Plan) -> None:
    """Return once every node is Ready with its labels.

    Raises UnavailableError naming those that are not, as soon as a kubelet ended or time is up.
    """
    missing = {node.name: node for node in plan.nodes}
    end = time.monotonic() + (_MACHINES_S if sandbox.record.machines else _NODES_S)
    while missing and time.monotonic() < end and not _ended(sandbox, missing):
        for item in sandbox.api.watch("/api/v1/nodes", min(end, time.monotonic() + _GLANCE_S)):
            spec = missing.get(item["metadata"]["name"])
            if spec and is_ready(item):
                _label(sandbox, spec, item)
                del missing[spec.name]
            if not missing:
                return
    first = (_ended(sandbox, missing) or list(missing))[0]
    raise UnavailableError(
        f"not Ready: {', '.join(list(missing)[:10])}; of {first}:\n{_last_words(sandbox, first)[-2000:]}"
    )


def _last_words(sandbox: Sandbox, name: str) -> str:
    if name in sandbox.record.machines:
        return sandbox.machine(name).last_words()
    return sandbox.units.tail(f"{name}/kubelet", 5) if name in sandbox.record.nodes else ""


def _ended(sandbox: Sandbox, names: Collection[str]) -> list[str]:
    """Those nodes whose kubelet, or whose machine, does not run any more."""
    units = {
        **{name: f"{name}/kubelet" for name in sandbox.record.nodes},
        **{name: MachineNode.unit_of(name) for name in sandbox.record.machines},
    }
    return [name for name in names if name in units and not sandbox.units.alive(units[name])]


def _label(sandbox: Sandbox, spec: NodeSpec, node: dict[str, Any]) -> None:
    if not spec.labels.items() <= node["metadata"].get("labels", {}).items():
        sandbox.api.patch(f"/api/v1/nodes/{spec.name}", {"metadata": {"labels": spec.labels}})


def _keep_logs(state: Path, say: Say) -> None:
    """Logs of a start that failed outlive it."""
    kept = Path(f"{state}.failed-logs")
    remove_tree(kept)
    with suppress(OSError, CgpuError):
        run(["cp", "-a", str(state / "log"), str(kept)])
        say(f"the logs are in {kept}")


def _empty(state: Path) -> None:
    """Refuse a folder with somebody else's files. Raises SettingError."""
    remains = sorted(path.name for path in state.iterdir())
    if remains and not set(remains) <= _OUR_FILES:
        raise SettingError(f"{state} holds other files ({', '.join(remains[:5])}); name an empty folder with --state")
    for name in remains:
        run(["rm", "-rf", "--one-file-system", str(state / name)])


def down(state: Path, say: Say, records: Records | None = None) -> None:
    """End the sandbox of a state folder and remove the folder; where there is none, nothing happens."""
    require_root()
    records = records or Records()
    record = records.of_state(state)
    if record is None:
        if state.is_dir():
            with state_locked(state):
                _empty(state)
                state.rmdir()
        say(f"no sandbox in {state}")
        return
    with step(say, f"ending the sandbox in {state}"), state_locked(state):
        tear_down(record, records)
