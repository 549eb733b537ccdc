# SPDX-License-Identifier: Apache-2.0
"""The verb preempt: the least victims on each proposed node, on the books as they stand at `now`."""

from cgpu.core.errors import ClaimError
from cgpu.core.placement import fits
from extender.verbs import Verbs, claim_for
from extender.victims import least_victims
from extender.wire import PreemptRequest, Victims


def preempt(verbs: Verbs, request: PreemptRequest, now: float) -> dict[str, Victims]:
    """Nodes where evicting helps, each with its victims; a node where it does not is left out.

    Others' holds are left out: a hold ends within two seconds, an eviction is for good. So is a node whose victims
    have left for this pod: kube-scheduler, which has not heard of it yet, would evict more.
    """
    try:
        claim = claim_for(request.pod)
    except ClaimError:
        return {}
    if claim is None:
        return dict(request.victims)
    books, pod = verbs.books, request.pod
    found: dict[str, Victims] = {}
    for name, proposed in request.victims.items():
        if verbs.refusal_of_node(name) is not None:
            continue
        state = books.state_for(name, pod.uid, verbs.nominations.kept_from(pod, name, ()))
        if verbs.nominations.victims_left(pod.uid, name, now) and fits(state, claim):
            continue
        chosen = least_victims(state, claim, pod.priority, books.bookings(name), proposed)
        if chosen is not None:
            found[name] = chosen
            verbs.nominations.chose(pod.uid, name, chosen.uids, now)
    return found
