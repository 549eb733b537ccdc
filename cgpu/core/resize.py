# SPDX-License-Identifier: Apache-2.0
"""Live resize, pure: what the annotations of a pod mean, and what each side does next. GiB over all cards of a container.

Three annotations carry it. `resize-request` is the user's wish. `resized` is what the books hold, written by the extender.
`resize-status` is the answer: `applied`; `refused: SIZES: why`; or `limited: SIZES[: why]`, by which the node says that the
kernel holds these containers to SIZES and will not raise them while this status stands. SIZES is JSON as in the request.

At every moment the books hold at least what the kernel allows: growing changes the books first, shrinking the kernel
first, and the books come down to `limited` only. Both sides look at what is written and go on from there, so that either
may end between any two steps; each write is refused by the API server when the annotations have changed since.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from cgpu.core.annotations import decode_resize
from cgpu.core.errors import AnnotationError
from cgpu.core.model import Allocation, Claim, ContainerKind, Pod, Share
from cgpu.core.names import ANNOTATION_RESIZE_REQUEST, ANNOTATION_RESIZE_STATUS, ANNOTATION_RESIZED

Sizes = Mapping[str, int]
"""container name → GiB."""
Writes = dict[str, str | None]
"""annotations to write in one request; None removes one."""


class Word(StrEnum):
    """What resize-status says."""

    NONE = ""
    APPLIED = "applied"
    LIMITED = "limited"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Status:
    """resize-status taken apart."""

    word: Word = Word.NONE
    sizes: Sizes = field(default_factory=dict)
    why: str = ""

    def text(self) -> str:
        """As it is written."""
        if self.word is Word.APPLIED:
            return self.word
        return ": ".join([self.word, encode_sizes(self.sizes), *([self.why] if self.why else [])])


@dataclass(frozen=True, slots=True)
class View:
    """A pod as its annotations show it. `booked`: every container with a share; `cards`: how many each has."""

    booked: Sizes
    cards: Sizes
    resized: Sizes
    request: Sizes | None = None
    problem: str = ""  # why the request cannot be read or can never be granted
    status: Status = Status()

    @property
    def idle(self) -> bool:
        """Whether nobody ever asked for anything here."""
        return self.request is None and not self.problem and self.status.word is Word.NONE


def encode_sizes(sizes: Sizes) -> str:
    """As resize-request and resized carry them."""
    rows = {name: {"mem": mem} for name, mem in sorted(sizes.items())}
    return json.dumps(rows, separators=(",", ":"), ensure_ascii=False)


def decode_status(text: str) -> Status:
    """What is written; a text that nobody of ours wrote counts as none."""
    word, _, rest = text.partition(": ")
    if word == Word.APPLIED:
        return Status(Word.APPLIED)
    if word not in (Word.LIMITED, Word.REFUSED):
        return Status()
    try:
        _, end = json.JSONDecoder().raw_decode(rest)
        sizes = decode_resize(ANNOTATION_RESIZE_STATUS, rest[:end])
    except (ValueError, AnnotationError):
        return Status()
    return Status(Word(word), sizes, rest[end:].removeprefix(": "))


def view_of(annotations: Mapping[str, str], booked: Sizes, cards: Sizes, fixed: frozenset[str] = frozenset()) -> View:
    """`booked`: GiB now, `resized` included; `fixed`: plain init containers, which cannot be resized."""
    known = {name: mem for name, mem in booked.items() if name not in fixed}
    status = decode_status(annotations.get(ANNOTATION_RESIZE_STATUS, ""))
    written = annotations.get(ANNOTATION_RESIZED)
    resized = decode_resize(ANNOTATION_RESIZED, written) if written is not None else {}
    text = annotations.get(ANNOTATION_RESIZE_REQUEST)
    if text is None:
        return View(known, cards, resized, status=status)
    try:
        request = decode_resize(ANNOTATION_RESIZE_REQUEST, text)
    except AnnotationError as error:
        return View(known, cards, resized, problem=str(error), status=status)
    problem = _problem(request, known, cards)
    return View(known, cards, resized, None if problem else request, problem, status)


def _problem(request: Sizes, booked: Sizes, cards: Sizes) -> str:
    """What keeps a request from ever being granted."""
    if not request:
        return f'{ANNOTATION_RESIZE_REQUEST} names no container: write {{"<container>":{{"mem":<GiB>}}}}'
    for name, mem in request.items():
        if name not in booked:
            return f"container {name} has no share that can be resized: those are {', '.join(sorted(booked)) or 'none'}"
        if mem % cards[name]:
            return f"container {name}: {mem} GiB cannot be divided over its {cards[name]} cards"
    if any(mem > booked[name] for name, mem in request.items()) and _any_less(request, booked):
        return "one request either grows or shrinks: ask for the smaller sizes first, then for the larger ones"
    return ""


def _any_less(request: Sizes, booked: Sizes) -> bool:
    return any(mem < booked[name] for name, mem in request.items())


def _refused(view: View) -> bool:
    return view.status.word is Word.REFUSED and view.request == view.status.sizes


def _shrinks(view: View) -> bool:
    """Whether a request that nobody refused wants less than is booked."""
    return view.request is not None and not _refused(view) and _any_less(view.request, view.booked)


def grows(view: View) -> bool:
    """Whether a request that nobody refused wants more than is booked."""
    wanted = view.request or {}
    return not _refused(view) and any(mem > view.booked[name] for name, mem in wanted.items())


def limits(view: View) -> dict[str, int]:
    """What the kernel has to hold each container to: never more than is booked, also at a restart."""
    if view.status.word is Word.LIMITED:
        return {name: min(mem, view.status.sizes.get(name, mem)) for name, mem in view.booked.items()}
    return {**view.booked, **(view.request or {})} if _shrinks(view) else dict(view.booked)


def node_writes(view: View, held: Sizes, failure: str) -> Writes:
    """What the node writes after it has tried to bring the kernel to `limits`.

    `held`: what the kernel holds each container to now; `failure`: why that is not `limits`, "" when it is.
    """
    if view.status.word is Word.LIMITED:
        waits = bool(view.status.why) or view.request == view.status.sizes
        return (
            {} if waits else {ANNOTATION_RESIZE_STATUS: None}
        )  # the wish has changed: raised when nobody counts on it
    if failure and _shrinks(view):
        return {ANNOTATION_RESIZE_STATUS: Status(Word.REFUSED, view.request or {}, failure).text()}
    if failure:
        lower = {name: mem for name, mem in held.items() if mem < view.booked.get(name, 0)}
        return {ANNOTATION_RESIZE_STATUS: Status(Word.LIMITED, lower, failure).text()} if lower else {}
    if _shrinks(view):
        return {ANNOTATION_RESIZE_STATUS: Status(Word.LIMITED, view.request or {}).text()}
    met = view.request is not None and not _refused(view) and not grows(view)
    return {ANNOTATION_RESIZE_STATUS: Word.APPLIED.value} if met and view.status.word is not Word.APPLIED else {}


def books_write(view: View, room: Callable[[Sizes], str]) -> Writes:
    """What the extender writes next. `room`: why the cards do not take these sizes, "" when they do."""
    if view.status.word is Word.LIMITED:
        return _come_down(view)
    if view.problem:
        refused = Status(Word.REFUSED, {}, view.problem)
        return {ANNOTATION_RESIZE_STATUS: refused.text()} if view.status != refused else {}
    if view.request is None:
        return {ANNOTATION_RESIZE_STATUS: None} if view.status.word is Word.REFUSED else {}
    if not grows(view):
        return {}  # the node's turn, or nobody's
    if why := room(view.request):
        return {ANNOTATION_RESIZE_STATUS: Status(Word.REFUSED, view.request, why).text()}
    return {ANNOTATION_RESIZED: _merged(view, view.request), ANNOTATION_RESIZE_STATUS: None}


def _come_down(view: View) -> Writes:
    """The books follow what the node holds the kernel to."""
    status = view.status
    if not status.why and view.request != status.sizes:
        return {}  # the wish has changed: the node takes its word back
    applied, refused = Status(Word.APPLIED), Status(Word.REFUSED, view.request or status.sizes, status.why)
    answer = refused if status.why else applied
    return {ANNOTATION_RESIZED: _merged(view, status.sizes), ANNOTATION_RESIZE_STATUS: answer.text()}


def _merged(view: View, sizes: Sizes) -> str:
    return encode_sizes({**view.resized, **sizes})


def view_of_pod(pod: Pod, claim: Claim, allocation: Allocation) -> View:
    """`allocation`: what is booked, `resized` included. Raises AnnotationError when `resized` cannot be read."""
    booked = {name: sum(share.mem for share in shares.values()) for name, shares in allocation.items()}
    fixed = frozenset(ask.name for ask in claim.asks if ask.kind is ContainerKind.INIT)
    return view_of(pod.annotations, booked, {name: len(shares) for name, shares in allocation.items()}, fixed)


def spread(shares: Mapping[str, Share], mem: int) -> dict[str, Share]:
    """A container's shares with another size, the same on each card."""
    return {uuid: Share(mem // len(shares), share.core) for uuid, share in shares.items()}
