# SPDX-License-Identifier: Apache-2.0
"""The verb preempt: the least victims on each proposed node, pure."""

from cgpu.core.errors import ClaimError
from extender.verbs import Verbs, claim_for
from extender.victims import least_victims
from extender.wire import PreemptRequest, Victims


def preempt(verbs: Verbs, request: PreemptRequest) -> dict[str, Victims]:
    """Nodes where evicting helps, each with its victims; a node where it does not is left out.

    Others' holds are left out: a hold ends within two seconds, an eviction is for good.
    """
    try:
        claim = claim_for(request.pod)
    except ClaimError:
        return {}
    if claim is None:
        return dict(request.victims)
    books = verbs.books
    found: dict[str, Victims] = {}
    for name, proposed in request.victims.items():
        if verbs.refusal_of_node(name) is not None:
            continue
        state = books.state_for(name, request.pod.uid, ())
        chosen = least_victims(state, claim, request.pod.priority, books.bookings(name), proposed)
        if chosen is not None:
            found[name] = chosen
    return found
