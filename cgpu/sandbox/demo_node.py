# SPDX-License-Identifier: Apache-2.0
"""`make demo-node`: true limits. A node that is a virtual machine, the kernel module, two pods on one T4."""

from pathlib import Path
from typing import Final

from cgpu.sandbox.demo import Teller, told
from cgpu.sandbox.progress import Say
from cgpu.sandbox.release import NAMESPACE, install, uninstall
from cgpu.sandbox.sandbox import Sandbox
from cgpu.sandbox.spec import machine_nodes

_EXAMPLES: Final = "examples/isolated"
_PODS_S: Final = 180  # emulated, on a machine however busy
_SHOWN: Final = {"six": "6475MiB", "eight": "8633MiB"}
_REFUSED: Final = "then CUDA error 2"


def run(state: Path, project: Path, say: Say) -> int:
    """Tell the story; its sandbox is gone afterwards, whatever happened. Exit status 0 after `demo: ok`."""
    return told(state, machine_nodes(1), project, say, _tell)


def _tell(sandbox: Sandbox, project: Path, say: Say) -> None:
    teller = Teller(sandbox)
    install(sandbox, project, say)
    teller.heading("The plugin has loaded the module, and the node offers its T4")
    teller.show(f"kubectl --namespace {NAMESPACE} logs daemonset/ack-ai-installer-device-plugin", only="cgpu_km")
    teller.show(r"kubectl get node vm-1 -o 'jsonpath={.status.allocatable.aliyun\.com/gpu-mem}'")
    teller.heading("Two pods fill the card: 6 and 8 of its 14 GiB")
    teller.show(f"kubectl apply -f {project / _EXAMPLES / 'six-and-eight.yaml'}")
    pods = " ".join(f"pod/{name}" for name in _SHOWN)
    teller.ask(f"kubectl wait --for=condition=Ready --timeout={_PODS_S}s {pods}")
    teller.show("kubectl inspect cgpu")
    teller.show("kubectl inspect cgpu -d")
    teller.heading("NVIDIA's own nvidia-smi in each of them shows its part")
    for pod, size in _SHOWN.items():
        teller.show(f"kubectl exec {pod} -- nvidia-smi", wanted=size)
    teller.heading("A CUDA program gets its part and no more")
    for pod in _SHOWN:
        teller.show(f"kubectl exec -i {pod} -- python3 -", reads=project / _EXAMPLES / "allocate.py", wanted=_REFUSED)
    teller.ask(f"kubectl delete -f {project / _EXAMPLES / 'six-and-eight.yaml'}")
    uninstall(sandbox, say)
