# SPDX-License-Identifier: Apache-2.0
"""`make demo-node`: true limits. A node that is a virtual machine, the kernel module, two pods on one T4."""

import json
import time
from pathlib import Path
from typing import Final

from cgpu.core.errors import UnavailableError
from cgpu.core.names import PLUGIN_PORT
from cgpu.sandbox.demo import Teller, told
from cgpu.sandbox.progress import Say
from cgpu.sandbox.release import NAMESPACE, install, uninstall
from cgpu.sandbox.sandbox import Sandbox
from cgpu.sandbox.spec import machine_nodes

_EXAMPLES: Final = "examples/isolated"
_PODS_S: Final = 180  # emulated, on a machine however busy
_SHOWN: Final = {"six": "6475MiB", "eight": "8633MiB"}
_PERCENT: Final = ("thirty", "sixty")
_PLUGIN: Final = "daemonset/ack-ai-installer-device-plugin"
_SELECTOR: Final = "app.kubernetes.io/component=device-plugin"
_BACKGROUND: Final = "cat > /tmp/busy.py; python3 /tmp/busy.py 600 > /tmp/busy.log 2>&1 &"
_REFUSED: Final = "then CUDA error 2"


def run(state: Path, project: Path, say: Say) -> int:
    """Tell the story; its sandbox is gone afterwards, whatever happened. Exit status 0 after `demo: ok`."""
    return told(state, machine_nodes(1), project, say, _tell)


def _tell(sandbox: Sandbox, project: Path, say: Say) -> None:
    teller = Teller(sandbox)
    examples = project / _EXAMPLES
    install(sandbox, project, say)
    teller.heading("The plugin has loaded the module, and the node offers its T4")
    teller.show(f"kubectl --namespace {NAMESPACE} logs {_PLUGIN}", only="cgpu_km")
    teller.show(r"kubectl get node vm-1 -o 'jsonpath={.status.allocatable.aliyun\.com/gpu-mem}'")
    _tell_of_memory(teller, examples)
    _tell_of_resize(teller)
    teller.ask(f"kubectl delete -f {examples / 'six-and-eight.yaml'}")
    _tell_of_compute(teller, examples)
    uninstall(sandbox, say)


def _tell_of_memory(teller: Teller, examples: Path) -> None:
    teller.heading("Two pods fill the card: 6 and 8 of its 14 GiB")
    teller.show(f"kubectl apply -f {examples / 'six-and-eight.yaml'}")
    _wait_ready(teller, *_SHOWN)
    teller.show("kubectl inspect cgpu")
    teller.show("kubectl inspect cgpu -d")
    teller.heading("NVIDIA's own nvidia-smi in each of them shows its part")
    for pod, size in _SHOWN.items():
        teller.show(f"kubectl exec {pod} -- nvidia-smi", wanted=size)
    teller.heading("A CUDA program gets its part and no more")
    for pod in _SHOWN:
        teller.show(f"kubectl exec -i {pod} -- python3 -", reads=examples / "allocate.py", wanted=_REFUSED)


def _tell_of_resize(teller: Teller) -> None:
    teller.heading("A live resize: one shrinks, the other takes the room; both run on")
    for pod, mem in (("eight", 4), ("six", 10)):
        teller.show(f"kubectl inspect cgpu resize {pod} --gpu-mem {mem}", wanted=f"-> {mem} GiB")
    teller.show("kubectl exec six -- nvidia-smi --query-gpu=memory.total --format=csv,noheader", wanted="10792 MiB")


def _tell_of_compute(teller: Teller, examples: Path) -> None:
    teller.heading("Compute too: 30 and 60 percent of the card, in mode core_mem")
    teller.show("kubectl label --overwrite node vm-1 ack.node.gpu.schedule=core_mem")
    teller.show(f"kubectl apply -f {examples / 'thirty-and-sixty.yaml'}")
    _wait_ready(teller, *_PERCENT)
    for pod in _PERCENT:
        teller.ask(f"kubectl exec -i {pod} -- sh -c '{_BACKGROUND}'", (examples / "busy.py").read_text())
    smi = f"kubectl --namespace {NAMESPACE} exec {_PLUGIN} -- cgpu-smi"
    name = f"kubectl --namespace {NAMESPACE} get pods -l {_SELECTOR} -o 'jsonpath={{.items[0].metadata.name}}'"
    metrics = f"kubectl get --raw /api/v1/namespaces/{NAMESPACE}/pods/{teller.ask(name)}:{PLUGIN_PORT}/proxy/metrics"
    _wait_busy(teller, f"{smi} --json")
    teller.ask(metrics)  # a ratio covers the time since an earlier look
    teller.show(smi)
    teller.show(metrics, only="cgpu_instance_utilization_ratio{")
    teller.ask(f"kubectl delete -f {examples / 'thirty-and-sixty.yaml'}")


def _wait_ready(teller: Teller, *pods: str) -> None:
    names = " ".join(f"pod/{name}" for name in pods)
    teller.ask(f"kubectl wait --for=condition=Ready --timeout={_PODS_S}s {names}")


def _wait_busy(teller: Teller, question: str) -> None:
    """Until both use the GPU, the one with the larger percentage more. Raises UnavailableError when they never do."""
    deadline = time.monotonic() + _PODS_S
    while True:
        rows = json.loads(teller.ask(question))["instances"]
        busy = {row["pod"]: row["utilPercent"] for row in rows}
        if 0 < busy.get("thirty", 0) < busy.get("sixty", 0):
            return
        if time.monotonic() > deadline:
            raise UnavailableError(f"the pods of 30 and 60 percent use {busy} of the GPU after {_PODS_S} s")
