# SPDX-License-Identifier: Apache-2.0
"""Commands in a virtual machine, through the agent at the other end of its serial port."""

import os
import shlex
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from cgpu.core.errors import UnavailableError
from cgpu.sandbox.wire import Decoder, encode

_SECONDS: Final = 120.0
_CHUNK: Final = 65536


class Agent:
    """The agent of one machine. One caller at a time: QEMU's socket takes a single connection, the next one waits."""

    def __init__(self, path: Path, seconds: float = _SECONDS) -> None:
        """`path`: QEMU's socket; `seconds`: how long a command may take."""
        self._path = path
        self._seconds = seconds

    def run(self, argv: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        """A command's output and exit status. Raises UnavailableError when the machine does not answer in time."""
        # an id of our own: answers to an earlier caller, who went away, are still in the port
        number = int.from_bytes(os.urandom(6), "big")
        script = f"exec {shlex.join(argv)}\n".encode()
        try:
            with self._connect() as port:
                port.sendall(encode({"do": "run", "env": {}, "id": number}, script))
                return self._collect(port, number, argv)
        except OSError as error:
            raise UnavailableError(f"the machine does not answer at {self._path}: {error}") from error

    def _connect(self) -> socket.socket:
        port = socket.socket(socket.AF_UNIX)
        port.settimeout(self._seconds)
        try:
            port.connect(str(self._path))
        except OSError:
            port.close()
            raise
        return port

    def _collect(self, port: socket.socket, number: int, argv: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        decoder, said = Decoder(), {"out": b"", "err": b""}
        end = time.monotonic() + self._seconds
        while data := port.recv(_CHUNK):
            for header, body in decoder.feed(data):
                if header.get("id") != number:
                    continue
                status = _take(header, body, said)
                if status is not None:
                    texts = [said[name].decode(errors="replace") for name in ("out", "err")]
                    return subprocess.CompletedProcess(list(argv), status, *texts)
            if time.monotonic() > end:
                raise TimeoutError(f"{shlex.join(argv)} goes on after {self._seconds:g} s")
        raise ConnectionError("it closed the port")


def _take(header: dict[str, Any], body: bytes, said: dict[str, bytes]) -> int | None:
    """Keep what a frame brings; the exit status when it is the last one. Raises OSError for a refusal."""
    if header["do"] == "fail":
        raise OSError(body.decode(errors="replace"))
    if header["do"] == "exit":
        return int(header["code"])
    said[header["do"]] += body
    return None


def checked(argv: Sequence[str], done: "subprocess.CompletedProcess[str]") -> str:
    """Standard output of a command that must have succeeded. Raises UnavailableError with its last words."""
    if done.returncode:
        words = (done.stderr.strip() or done.stdout.strip())[-1500:]
        raise UnavailableError(f"{shlex.join(argv)} ended with {done.returncode}: {words}")
    return done.stdout
