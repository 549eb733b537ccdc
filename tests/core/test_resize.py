# SPDX-License-Identifier: Apache-2.0
"""Live resize: every order of steps, every crash between two of them, every late watch."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from cgpu.core.names import ANNOTATION_RESIZE_REQUEST, ANNOTATION_RESIZE_STATUS, ANNOTATION_RESIZED
from cgpu.core.resize import (
    Status,
    View,
    Word,
    Writes,
    books_write,
    decode_status,
    encode_sizes,
    limits,
    node_writes,
    view_of,
)

ASKED = 6
NAME = "main"


@dataclass(frozen=True)
class Written:
    """The three annotations of a pod with one container."""

    request: str | None = None
    resized: str | None = None
    status: str | None = None

    @property
    def annotations(self) -> dict[str, str]:
        rows = {
            ANNOTATION_RESIZE_REQUEST: self.request,
            ANNOTATION_RESIZED: self.resized,
            ANNOTATION_RESIZE_STATUS: self.status,
        }
        return {key: text for key, text in rows.items() if text is not None}

    @property
    def booked(self) -> int:
        return int(json.loads(self.resized)[NAME]["mem"]) if self.resized else ASKED

    @property
    def view(self) -> View:
        return view_of(self.annotations, {NAME: self.booked}, {NAME: 1})

    def with_(self, writes: Writes) -> "Written":
        names = {
            ANNOTATION_RESIZE_REQUEST: "request", ANNOTATION_RESIZED: "resized", ANNOTATION_RESIZE_STATUS: "status"
        }  # fmt: skip
        return replace(self, **{names[key]: text for key, text in writes.items()})


@dataclass(frozen=True)
class World:
    """The API server's truth, what each side has seen of it, the kernel, and what the node is about to write."""

    truth: Written = Written()
    node: Written = Written()
    books: Written = Written()
    kernel: int = ASKED
    writing: tuple[Written, tuple[tuple[str, str | None], ...]] | None = None
    wishes: int = 2


@dataclass(frozen=True)
class Case:
    """What stands in the way: bytes in use, a kernel that raises no limit, the most that the books take."""

    used: int = 0
    raises: bool = True
    room: int = 8


def asks(mem: int) -> str:
    return encode_sizes({NAME: mem})


WISHES = (None, asks(3), asks(7), asks(9), "no JSON")
CASES = {
    "nothing in the way": Case(),
    "more is used than is wanted": Case(used=4),
    "the kernel raises no limit": Case(raises=False),
    "both": Case(used=4, raises=False),
    "the card is full": Case(room=ASKED),
}


def node_acts(world: World, case: Case) -> World:
    """The kernel is changed, or not; what is to be written is known but not written."""
    view = world.node.view
    wanted = limits(view)[NAME]
    failure = "in use" if wanted < case.used and wanted < world.kernel else ""
    failure = failure or ("no room" if wanted > world.kernel and not case.raises else "")
    kernel = world.kernel if failure else wanted
    writes = node_writes(view, {NAME: kernel}, failure)
    return replace(world, kernel=kernel, writing=(world.node, tuple(writes.items())) if writes else None)


def node_is_written(world: World) -> World:
    """The API server takes it when nothing has changed since."""
    assert world.writing is not None
    seen, writes = world.writing
    truth = world.truth.with_(dict(writes)) if seen == world.truth else world.truth
    return replace(world, truth=truth, writing=None)


def books_act(world: World, case: Case) -> World:
    def room(sizes: object) -> str:
        return "full" if isinstance(sizes, dict) and sizes[NAME] > case.room else ""

    if world.books != world.truth:
        return world  # the API server refuses
    return replace(world, truth=world.truth.with_(books_write(world.truth.view, room)))


def next_worlds(world: World, case: Case) -> Iterator[World]:
    yield replace(world, node=world.truth)  # a watch tells, sooner or later
    yield replace(world, books=world.truth)
    yield replace(world, writing=None)  # the plugin was killed
    yield books_act(world, case)
    if world.writing is None:
        yield node_acts(world, case)  # a look, or a container's restart
    else:
        yield node_is_written(world)
    if world.wishes:
        for wish in WISHES:
            yield replace(world, truth=replace(world.truth, request=wish), wishes=world.wishes - 1)


def settled(world: World, case: Case) -> World:
    """Both sides go on until nothing changes."""
    for _ in range(20):
        before = world
        world = node_acts(replace(world, node=world.truth, writing=None), case)
        world = node_is_written(world) if world.writing else world
        world = books_act(replace(world, books=world.truth), case)
        world = replace(world, node=world.truth)
        if world == before:
            return world
    raise AssertionError(f"it goes round and round: {world}")


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_no_order_of_steps_and_no_crash_lets_the_kernel_pass_the_books(case: Case) -> None:
    start = World()
    seen, queue = {start}, [start]
    while queue:
        world = queue.pop()
        for after in next_worlds(world, case):
            if after not in seen:
                assert after.kernel <= after.truth.booked, (world, after)
                seen.add(after)
                queue.append(after)
    assert len(seen) > 500
    for world in seen:
        end = settled(world, case)
        assert end.kernel == end.truth.booked, (world, end)
        answer = decode_status(end.truth.status or "").word
        if end.truth.request is not None:
            got = end.truth.request == asks(end.truth.booked)
            assert answer is (Word.APPLIED if got else Word.REFUSED), (world, end)


@pytest.mark.parametrize(
    ("case", "wish", "size", "status"),
    [
        pytest.param(Case(), 8, 8, "applied", id="it grows"),
        pytest.param(Case(), 3, 3, "applied", id="it shrinks"),
        pytest.param(Case(), ASKED, ASKED, "applied", id="what it has already"),
        pytest.param(Case(), 9, ASKED, 'refused: {"main":{"mem":9}}: full', id="no room"),
        pytest.param(Case(used=4), 3, ASKED, 'refused: {"main":{"mem":3}}: in use', id="below what is used"),
        pytest.param(Case(raises=False), 8, ASKED, 'refused: {"main":{"mem":8}}: no room', id="refused by the kernel"),
    ],
)
def test_a_wish_has_one_end(case: Case, wish: int, size: int, status: str) -> None:
    world = settled(World(truth=Written(request=asks(wish))), case)

    assert (world.kernel, world.truth.booked, world.truth.status) == (size, size, status)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("{}", "names no container", id="nobody"),
        pytest.param(
            '{"other":{"mem":2}}', "container other has no share that can be resized: those are a, b", id="who"
        ),
        pytest.param('{"first":{"mem":2}}', "container first has no share", id="an init container"),
        pytest.param('{"a":{"mem":5}}', "5 GiB cannot be divided over its 2 cards", id="two cards"),
        pytest.param('{"a":{"mem":8},"b":{"mem":1}}', "either grows or shrinks", id="both directions"),
        pytest.param('{"a":{"mem":0}}', "at least 1", id="nothing"),
        pytest.param("[", "no JSON", id="no JSON"),
    ],
)
def test_a_wish_that_can_never_be_granted_is_told_why(text: str, why: str) -> None:
    booked, cards = {"a": 4, "b": 2, "first": 2}, {"a": 2, "b": 1, "first": 1}
    view = view_of({ANNOTATION_RESIZE_REQUEST: text}, booked, cards, frozenset({"first"}))

    assert limits(view) == {"a": 4, "b": 2}
    [status] = books_write(view, lambda _: "").values()
    assert why in str(status)
    written = {ANNOTATION_RESIZE_REQUEST: text, ANNOTATION_RESIZE_STATUS: str(status)}
    assert not books_write(view_of(written, booked, cards, frozenset({"first"})), lambda _: "")


@pytest.mark.parametrize(
    "status",
    [
        pytest.param(Status(Word.APPLIED), id="applied"),
        pytest.param(Status(Word.LIMITED, {"a": 1, "b": 2}), id="limited"),
        pytest.param(Status(Word.REFUSED, {"a": 1}, "GPU 0: 3 free: none"), id="refused"),
    ],
)
def test_a_status_is_read_as_it_was_written(status: Status) -> None:
    assert decode_status(status.text()) == status


@pytest.mark.parametrize("text", ["", "applied?", "limited", "limited: x", 'refused: {"a":1}: why', "done: {}"])
def test_a_text_that_nobody_of_ours_wrote_is_no_status(text: str) -> None:
    assert decode_status(text) == Status()
