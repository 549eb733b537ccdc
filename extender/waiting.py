# SPDX-License-Identifier: Apache-2.0
"""Why pods wait, pure: the text of our event, the reason of the metric, and what `inspect?pod=` answers."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from cgpu.core.annotations import encode_allocation
from cgpu.core.errors import ClaimError
from cgpu.core.explain import Refusal, group_refusals, unit_hint
from cgpu.core.model import Claim, Pod
from cgpu.core.names import RESOURCE_MEM
from extender.verbs import Verbs, claim_for

MESSAGE_LIMIT: Final = 1024


class Reason(StrEnum):
    """The label of cgpu_extender_pending_pods."""

    INVALID = "invalid"  # the pod contradicts itself
    NEVER = "never-fits"  # no node's cards are large enough
    FULL = "no-room"  # some would be, once others leave
    SCHEDULING = "scheduling"  # a node takes it: kube-scheduler decides


@dataclass(frozen=True, slots=True)
class Wait:
    """Why one pod waits; `key` changes when the reasons do, numbers left out."""

    pod: Pod
    reason: Reason
    message: str
    key: str


def waiting_pods(verbs: Verbs, schedulers: Iterable[str]) -> Iterator[Wait]:
    """Every unbound pod of our schedulers."""
    ours = frozenset(schedulers)
    for pod in list(verbs.books.waiting.values()):
        if pod.scheduler_name in ours and not pod.deleting:
            yield wait_of(verbs, pod)


def wait_of(verbs: Verbs, pod: Pod) -> Wait:
    """Why this pod waits; holds are left out, they are gone in a moment."""
    try:
        claim = claim_for(pod)
    except ClaimError as error:
        return Wait(pod, Reason.INVALID, str(error), str(error))
    if claim is None:
        return Wait(pod, Reason.SCHEDULING, "the pod asks for no GPU memory", "")
    table = verbs.table(claim)
    found = [refusal for name, refusal in sorted(table.refused.items()) if _has_cards(verbs, name)]
    # kube-scheduler asks us only about nodes that its own rules allow
    allowed = verbs.refused_on.get(pod.uid, ())
    if table.passing and (not allowed or any(name in table.passing for name in allowed)):
        count = len(table.passing)
        text = f"{count} of {count + len(found)} GPU nodes take the pod: kube-scheduler decides, other rules permitting"
        return Wait(pod, Reason.SCHEDULING, text, "")
    found = [table.refused[name] for name in allowed if name in table.refused] if table.passing else found
    reason = Reason.NEVER if all(refusal.forever for refusal in found) else Reason.FULL
    key = ";".join(sorted(Counter(refusal.reason for refusal in found)))
    return Wait(pod, reason, _message(claim, found, len(table.passing)), key)


def _has_cards(verbs: Verbs, name: str) -> bool:
    offer = verbs.books.offers[name]
    return bool(offer.cards or offer.problem)


def _message(claim: Claim, refusals: list[Refusal], elsewhere: int) -> str:
    if not refusals:
        return f"no node offers {RESOURCE_MEM}: label GPU nodes ack.node.gpu.schedule=cgpu or share"
    hint = unit_hint(claim)
    if hint:
        return hint
    head = f"0 of {len(refusals)} GPU nodes take the pod: "
    if elsewhere:
        head = f"{elsewhere} GPU nodes have room, but the pod's own rules keep it off them; the others do not: "
    return head + group_refusals(refusals, MESSAGE_LIMIT - len(head))


def pod_report(verbs: Verbs, key: str) -> dict[str, Any] | None:
    """What `inspect?pod=namespace/name` says, or None for a pod that the books do not know."""
    uid = verbs.books.uid_of(key)
    pod = verbs.books.known(uid) if uid is not None else None
    if pod is None:
        return None
    report: dict[str, Any] = {"pod": pod.key, "uid": pod.uid, "error": ""}
    booking = verbs.books.booking(pod.uid)
    decision = verbs.decisions.get(pod.uid)
    if booking is None and not pod.node:
        wait = wait_of(verbs, pod)
        report |= {"state": "pending", "reason": str(wait.reason), "why": wait.message, "nodes": _rows(verbs, pod)}
        return report
    report["state"] = "bound" if pod.node else "binding"
    report["node"] = pod.node or (booking.node if booking is not None else "")
    if booking is None:
        report["why"] = verbs.books.tampered.get(pod.uid, "it was not bound by the extender: no card is booked for it")
        return report
    report["allocation"] = encode_allocation(booking.allocation)
    if decision is None or decision.node != report["node"]:
        report["why"] = "the choice was made before this extender started: its record is the pod's annotation"
        return report
    others = f"; next best: {decision.runner_up}" if decision.runner_up else ""
    report["why"] = f"{decision.policy}: best of {decision.taking} nodes that take the pod{others}"
    report["refused"] = dict(decision.reasons)
    return report


def _rows(verbs: Verbs, pod: Pod) -> list[dict[str, Any]]:
    try:
        claim = claim_for(pod)
    except ClaimError:
        return []
    if claim is None:
        return []
    table = verbs.table(claim)
    rows: dict[str, tuple[bool, str]] = dict.fromkeys(table.passing, (True, ""))
    rows |= {name: (False, refusal.detail) for name, refusal in table.refused.items()}
    return [{"name": name, "takes": takes, "why": why} for name, (takes, why) in sorted(rows.items())]
