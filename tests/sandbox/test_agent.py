# SPDX-License-Identifier: Apache-2.0
"""Commands in a virtual machine: what is sent through its port, and what is made of the answers."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cgpu.core.errors import UnavailableError
from cgpu.sandbox.agent import Agent, checked
from cgpu.sandbox.wire import Decoder, encode

Answer = Callable[[dict[str, Any], bytes], bytes]


@contextmanager
def port(path: Path, answer: Answer) -> Iterator[None]:
    """A machine's port: one request is read and answered, then the port is closed."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            decoder = Decoder()
            while not (frames := decoder.feed(connection.recv(4096))):
                continue
            connection.sendall(answer(*frames[0]))

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        thread.join()
        listener.close()


def test_a_command_comes_back_with_its_output_and_its_status(tmp_path: Path) -> None:
    sent: list[bytes] = []

    def answer(header: dict[str, Any], body: bytes) -> bytes:
        sent.append(body)
        number = header["id"]
        late = encode({"do": "out", "id": number + 1}, b"of an earlier caller")
        said = encode({"do": "out", "id": number}, b"yes\n") + encode({"do": "err", "id": number}, b"no\n")
        return encode({"do": "hello"}) + late + said + encode({"do": "exit", "id": number, "code": 3})

    with port(tmp_path / "agent", answer):
        done = Agent(tmp_path / "agent").run(["echo", "two words"])

    assert sent == [b"exec echo 'two words'\n"]
    assert (done.stdout, done.stderr, done.returncode) == ("yes\n", "no\n", 3)
    with pytest.raises(UnavailableError, match="echo 'two words' ended with 3: no"):
        checked(["echo", "two words"], done)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param(lambda header, _: b"", "it closed the port", id="a machine that ends meanwhile"),
        pytest.param(
            lambda header, _: encode({"do": "fail", "id": header["id"]}, b"no space left"),
            "no space left",
            id="a machine that cannot start it",
        ),
    ],
)
def test_a_machine_that_does_not_answer_is_an_error(tmp_path: Path, answer: Answer, words: str) -> None:
    with port(tmp_path / "agent", answer), pytest.raises(UnavailableError, match=words):
        Agent(tmp_path / "agent").run(["true"])


def test_a_machine_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="does not answer at .*/agent"):
        Agent(tmp_path / "agent").run(["true"])
