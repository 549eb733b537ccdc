# SPDX-License-Identifier: Apache-2.0
"""Network namespaces of the control plane and the nodes, and the links between them.

The control plane's namespace holds a bridge; every node, every virtual machine and the host have a link to it. Nodes
send what they do not know to the control plane, which knows every node's pods.
"""

from dataclasses import dataclass

from cgpu.sandbox.configs import NAME_SERVER
from cgpu.sandbox.host import run
from cgpu.sandbox.record import Record


@dataclass(frozen=True, slots=True)
class Batch:
    """Lines for `ip -batch`, in one namespace ("" = the host's)."""

    namespace: str
    lines: tuple[str, ...]


def batches(record: Record) -> tuple[Batch, ...]:
    """What to do, in order."""
    control, host = record.namespace(), record.host_link
    steps = [
        Batch("", (f"netns add {control}", f"link add {host} type veth peer name host netns {control}")),
        Batch("", (f"addr add {record.address(1)}/24 dev {host}", f"link set {host} up")),
        Batch(
            control,
            (
                "link set lo up",
                "link add bridge type bridge",
                f"addr add {record.address(2)}/24 dev bridge",
                "link set bridge up",
                "link set host master bridge up",
            ),
        ),
    ]
    for number, node in enumerate(record.nodes):
        steps.extend(_node(record, node, f"node{number}"))
    steps.extend(Batch(control, _machine(record, machine)) for machine in record.machines)
    return tuple(steps)


def _machine(record: Record, machine: str) -> tuple[str, ...]:
    """QEMU opens the link by its name; the rest of the machine's network is its own boot's."""
    tap = record.tap(machine)
    return (
        f"tuntap add dev {tap} mode tap",
        f"link set {tap} master bridge up",
        f"route add {record.pods_of(machine)} via {record.node_address(machine)}",
    )


def _node(record: Record, node: str, link: str) -> tuple[Batch, ...]:
    control, namespace, address = record.namespace(), record.namespace(node), record.node_address(node)
    return (
        Batch("", (f"netns add {namespace}",)),
        Batch(
            control,
            (
                f"link add {link} type veth peer name eth0 netns {namespace}",
                f"link set {link} master bridge up",
            ),
        ),
        Batch(
            namespace,
            (
                "link set lo up",
                f"addr add {address}/24 dev eth0",
                "link set eth0 up",
                f"route add default via {record.address(2)}",
                f"route add unreachable {NAME_SERVER}",
            ),
        ),
        Batch(control, (f"route add {record.pods_of(node)} via {address}",)),
    )


_FORWARD = "echo 1 > /proc/sys/net/ipv4/ip_forward; echo 0 > /proc/sys/net/ipv4/conf/all/send_redirects"


def make_network(record: Record) -> None:
    """Make it. Raises UnavailableError at the first command that fails."""
    for batch in batches(record):
        where = ["-n", batch.namespace] if batch.namespace else []
        run(["ip", *where, "-batch", "-"], text="\n".join(batch.lines) + "\n")
    for namespace in (record.namespace(), *(record.namespace(node) for node in record.nodes)):
        run(["nsenter", f"--net=/run/netns/{namespace}", "sh", "-c", _FORWARD])


def remove_network(record: Record) -> None:
    """Remove what there is of it; links between namespaces go with them."""
    there = {line.split()[0] for line in run(["ip", "netns", "list"]).splitlines() if line}
    for namespace in (*(record.namespace(node) for node in record.nodes), record.namespace()):
        if namespace in there:
            run(["ip", "netns", "delete", namespace])
    if record.host_link in run(["ip", "-br", "link", "show"]).replace("@", " ").split():
        run(["ip", "link", "delete", record.host_link])
