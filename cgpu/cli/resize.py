# SPDX-License-Identifier: Apache-2.0
"""`kubectl inspect cgpu resize`: another size for the share of a running container, and what came of it.

The wish is one annotation of the pod; whoever may `patch` pods may make it. Extender and device plugin do the rest.
"""

import argparse
import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from cgpu.cli.status import ended
from cgpu.core.annotations import allocation_of
from cgpu.core.errors import InputError, UnavailableError
from cgpu.core.model import Pod
from cgpu.core.names import ANNOTATION_RESIZE_REQUEST, ANNOTATION_RESIZE_STATUS
from cgpu.core.pods import claim_of, holds
from cgpu.core.resize import View, Word, encode_sizes, view_of_pod
from cgpu.kube.client import KubeClient

PROGRAM: Final = "kubectl inspect cgpu resize"
_LOOK_S: Final = 0.2


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog=PROGRAM, description="Give a running container a larger or smaller share.")
    made.add_argument("pod", metavar="NAMESPACE/POD", help="the pod; without NAMESPACE/ in the namespace default")
    made.add_argument("--container", metavar="NAME", help="whose share; may be left out where only one has a share")
    made.add_argument("--gpu-mem", type=int, required=True, metavar="GIB", help="its new size, over all its cards")
    made.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="how long to wait (default 60)")
    made.add_argument("--kubeconfig", type=Path, help="kubeconfig file; default $KUBECONFIG or ~/.kube/config")
    return made


async def run(options: argparse.Namespace) -> None:
    """Ask, wait for the answer and print it. Raises InputError, or UnavailableError with the refusal."""
    namespace, _, name = options.pod.rpartition("/")
    async with await KubeClient.connect(options.kubeconfig) as client:
        pod = await client.get_pod(namespace or "default", name)
        view = _view(pod)
        container = _container(pod, view, options.container)
        if options.gpu_mem < 1 or options.gpu_mem % view.cards[container]:
            raise InputError(
                f"--gpu-mem {options.gpu_mem}: a multiple of {view.cards[container]}, 1 GiB a card at least"
            )
        await _ask(client, pod, encode_sizes({container: options.gpu_mem}), time.monotonic() + options.timeout)
    print(f"{pod.key}: container {container}: {view.booked[container]} GiB -> {options.gpu_mem} GiB")


def _view(pod: Pod) -> View:
    claim = claim_of(pod)
    allocation = allocation_of(pod, claim, ()) if claim is not None and pod.node and holds(pod) else None
    if claim is None or allocation is None:
        raise InputError(f"pod {pod.key} holds no share of a GPU: `kubectl inspect cgpu -d` lists the pods that do")
    return view_of_pod(pod, claim, allocation)


def _container(pod: Pod, view: View, wanted: str | None) -> str:
    if wanted is None and len(view.booked) == 1:
        return next(iter(view.booked))
    if wanted is None or wanted not in view.booked:
        said = f"--container {wanted}: no such share" if wanted else "--container is missing"
        raise InputError(f"{said}: pod {pod.key} has {', '.join(sorted(view.booked))}")
    return wanted


async def _ask(client: KubeClient, pod: Pod, wish: str, end: float) -> None:
    """Write the wish and wait until it is granted. Raises UnavailableError when it is refused."""
    if pod.annotations.get(ANNOTATION_RESIZE_REQUEST) == wish and _answer(pod, wish).startswith(Word.REFUSED):
        # the same once more: the old answer has to go first
        await _write(client, pod, None)
        pod = await _await(client, pod, lambda seen: ANNOTATION_RESIZE_STATUS not in seen.annotations, end)
    await _write(client, pod, wish)
    pod = await _await(client, pod, lambda seen: bool(_answer(seen, wish)), end)
    answer = _answer(pod, wish)
    if answer != Word.APPLIED:
        raise UnavailableError(f"{pod.key} keeps its size: {answer}")


def _answer(pod: Pod, wish: str) -> str:
    """What the status says to this wish, "" while it is under way."""
    if pod.annotations.get(ANNOTATION_RESIZE_REQUEST) != wish:
        return f"{ANNOTATION_RESIZE_REQUEST} was changed by somebody else"
    view = _view(pod)
    wanted = view.request
    if view.problem or (view.status.word is Word.REFUSED and view.status.sizes == wanted):
        return pod.annotations.get(ANNOTATION_RESIZE_STATUS, view.problem)
    met = wanted is not None and all(view.booked[name] == mem for name, mem in wanted.items())
    return Word.APPLIED.value if met and view.status.word is Word.APPLIED else ""


async def _write(client: KubeClient, pod: Pod, wish: str | None) -> None:
    await client.patch_pod_annotations(pod.namespace, pod.name, {ANNOTATION_RESIZE_REQUEST: wish})


async def _await(client: KubeClient, pod: Pod, done: Callable[[Pod], bool], end: float) -> Pod:
    """The pod as soon as it is `done`. Raises UnavailableError when it is gone or nobody answers until `end`."""
    while True:
        seen = await client.get_pod(pod.namespace, pod.name)
        if seen.uid != pod.uid:
            raise UnavailableError(f"pod {pod.key} was replaced by another of its name")
        if done(seen):
            return seen
        if time.monotonic() > end:
            status = seen.annotations.get(ANNOTATION_RESIZE_STATUS, "nobody has answered yet")
            raise UnavailableError(
                f"{pod.key}: not done yet ({status}); it goes on: see annotation {ANNOTATION_RESIZE_STATUS}, and the logs"
                " of the extender (growing) and of the node's device plugin"
            )
        await asyncio.sleep(_LOOK_S)


def main(argv: Sequence[str]) -> int:
    """Exit 0 applied, 1 refused or not answered, 2 usage."""
    options = parser().parse_args(argv)
    return ended(PROGRAM, lambda: asyncio.run(run(options)))
