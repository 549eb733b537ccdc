# SPDX-License-Identifier: Apache-2.0
"""One virtual machine: QEMU without hardware acceleration, an agent in it, and an eye on its console.

The guest kernel panics on any warning and QEMU ends with it, so whatever goes wrong in a module ends as `GuestCrashError`
with the kernel's own words, at the call that was waiting.
"""

import re
import selectors
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from cgpu.sandbox.wire import Decoder, encode
from tests.vm.cache import say
from tests.vm.errors import BenchError, GuestCrashError
from tests.vm.hardware import Hardware, command_line

ANSWER_SECONDS: Final = 60.0
# what a kernel says when something is wrong, whether it stops or not (lockdep and kmemleak do not)
REPORT: Final = re.compile(
    r"Kernel panic|WARNING: |BUG: |BUG [\w.-]+ \(|Oops: |KASAN: |UBSAN: |general protection fault|kmemleak: \d+ new"
    r"|DEBUG_LOCKS_WARN_ON|INFO: (?:task .* blocked|possible |rcu.*stall)|initrd: .* (?:failed|cannot)"
)

Sink = Callable[[bytes], object]


@dataclass(frozen=True, slots=True)
class Result:
    """What a script left: its output, its error output, and its exit code (128 + N for death by signal N)."""

    stdout: str
    stderr: str
    code: int

    def checked(self) -> "Result":
        """Itself, when the script succeeded; BenchError with the end of its output otherwise."""
        if self.code:
            raise BenchError(f"the script ended with {self.code}:\n" + (self.stdout + self.stderr)[-4000:])
        return self


@dataclass(slots=True)
class Running:
    """A script that runs in the guest; filled as frames arrive."""

    number: int
    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    sinks: tuple[Sink | None, Sink | None] = (None, None)
    code: int | None = None
    data: bytes | None = None
    failure: str | None = None

    def take(self, header: dict[str, Any], body: bytes) -> None:
        """Takes one frame of this request."""
        match header["do"]:
            case "out" | "err" as stream:
                (self.stdout if stream == "out" else self.stderr).extend(body)
                sink = self.sinks[stream == "err"]
                if sink is not None:
                    sink(body)
            case "exit":
                self.code = header["code"]
            case "data":
                self.data = body
            case "fail":
                self.failure = body.decode()

    @property
    def ended(self) -> bool:
        """True when nothing more will come."""
        return self.code is not None or self.data is not None or self.failure is not None


class Machine:
    """A booted virtual machine. Use it as a context manager; leaving it ends QEMU and removes its folder."""

    def __init__(self, hardware: Hardware, folder: Path | None = None) -> None:
        self.hardware = hardware
        self.folder = folder or Path(tempfile.mkdtemp(prefix="cgpu-vm-"))
        self.boot_seconds = 0.0
        self._requests: dict[int, Running] = {}
        self._next = 1
        self._decoder = Decoder()
        self._hello = False
        self._seen = 0
        self._qemu: subprocess.Popen[bytes] | None = None
        self._agent: socket.socket | None = None
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def alive(self) -> bool:
        """True while QEMU runs."""
        return self._qemu is not None and self._qemu.poll() is None

    def start(self) -> None:
        """Boots and waits for the agent's first word.

        A machine that dies before has run nothing of the project: that is loudly tried once more.
        """
        try:
            self._boot()
        except GuestCrashError as error:
            say(f"the machine died before it ran anything of the project, and is booted once more: {error}")
            self._forget()
            self._boot()

    def _boot(self) -> None:
        """Starts QEMU and waits for the agent's first word."""
        started = time.monotonic()
        with (self.folder / "qemu.log").open("wb") as log:
            self._qemu = subprocess.Popen(
                command_line(self.hardware, self.folder), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        deadline = started + self.hardware.boot_seconds
        self._agent = self._connect("agent", deadline)
        self._selector.register(self._agent, selectors.EVENT_READ)
        while not self._hello:
            self._pump(deadline, "the guest's agent")
        self.boot_seconds = time.monotonic() - started

    def _forget(self) -> None:
        """Back to before the boot, after a crash that ended QEMU."""
        assert self._agent is not None
        self._selector.unregister(self._agent)
        self._agent.close()
        self._decoder, self._seen = Decoder(), 0
        for socket_ in ("agent", "console"):  # else the next connection finds what nobody listens on
            (self.folder / socket_).unlink(missing_ok=True)

    def _connect(self, name: str, deadline: float) -> socket.socket:
        """Connects to one of QEMU's sockets as soon as it listens."""
        while True:
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.connect(str(self.folder / name))
            except (FileNotFoundError, ConnectionRefusedError):
                connection.close()
                if not self.alive or time.monotonic() > deadline:
                    raise BenchError("QEMU did not start:\n" + (self.folder / "qemu.log").read_text()) from None
                time.sleep(0.02)
            else:
                return connection

    def console_socket(self) -> socket.socket:
        """The guest's serial console, for a person."""
        return self._connect("console", time.monotonic() + ANSWER_SECONDS)

    def console(self) -> str:
        """Everything that the guest wrote to its console."""
        log = self.folder / "console.log"
        return log.read_text(errors="replace") if log.exists() else ""

    def _crash(self, why: str) -> GuestCrashError:
        """Ends the machine and makes the error that shows the kernel's words."""
        if self._qemu is not None:
            self._qemu.kill()
            self._qemu.wait()
        lines = self.console().splitlines()
        first = next((number for number, line in enumerate(lines) if REPORT.search(line)), max(len(lines) - 40, 0))
        return GuestCrashError(f"{why}; its console:\n" + "\n".join(lines[max(first - 5, 0) : first + 80]))

    def _check_console(self) -> None:
        """Raises when the kernel reported something since the last check, even if it went on."""
        log = self.folder / "console.log"
        if log.exists() and log.stat().st_size > self._seen:
            text = self.console()
            fresh, self._seen = text[self._seen :], len(text)
            found = REPORT.search(fresh)
            if found:
                raise self._crash(f"the guest kernel reported {found.group(0).strip()!r}")

    def _pump(self, deadline: float, awaited: str) -> None:
        """Takes what the agent sends within half a second; raises when the guest is gone or the deadline passed."""
        assert self._agent is not None
        if self._selector.select(0.5):
            data = self._agent.recv(1 << 20)
            for header, body in self._decoder.feed(data):
                if header["do"] == "hello":
                    if self._hello:
                        raise self._crash("the guest's agent ended and was started again")
                    self._hello = True
                elif header["id"] in self._requests:
                    self._requests[header["id"]].take(header, body)
            if data:
                return
        if not self.alive:
            raise self._crash(f"the guest stopped while {awaited} was awaited")
        if time.monotonic() > deadline:
            raise TimeoutError(awaited)

    def _send(self, header: dict[str, Any], body: bytes = b"") -> None:
        """Sends one frame."""
        assert self._agent is not None
        try:
            self._agent.sendall(encode(header, body))
        except OSError:
            raise self._crash("the guest stopped") from None

    def _request(
        self, header: dict[str, Any], body: bytes = b"", sinks: tuple[Sink | None, Sink | None] = (None, None)
    ) -> Running:
        """Sends a request and returns the record that its answers will fill."""
        request = Running(self._next, sinks=sinks)
        self._requests[self._next] = request
        self._next += 1
        self._send({**header, "id": request.number}, body)
        return request

    def _await(self, request: Running, seconds: float, what: str) -> Running:
        """Pumps until a request has its answer."""
        deadline = time.monotonic() + seconds
        try:
            while not request.ended:
                self._pump(deadline, what)
        finally:
            self._requests.pop(request.number)
        self._check_console()
        if request.failure is not None:
            raise BenchError(f"{what}: {request.failure}")
        return request

    def spawn(
        self,
        script: str | bytes,
        env: Mapping[str, str] | None = None,
        sinks: tuple[Sink | None, Sink | None] = (None, None),
    ) -> Running:
        """Starts a script and returns at once; `wait` collects it. Several may run."""
        body = script.encode() if isinstance(script, str) else script
        return self._request({"do": "run", "env": dict(env or {})}, body, sinks)

    def wait(self, running: Running, timeout: float = 300.0) -> Result:
        """Waits for a spawned script; BenchError when it needs longer than `timeout` seconds (it is killed then)."""
        try:
            self._await(running, timeout, "a script")
        except TimeoutError:
            self._requests[running.number] = running
            self._send({"do": "kill", "job": running.number})
            try:
                self._await(running, ANSWER_SECONDS, "the end of a killed script")
            except TimeoutError:
                raise self._crash(f"the guest hangs: a script killed after {timeout:g} s does not end") from None
            shown = (running.stdout + running.stderr)[-4000:].decode(errors="replace")
            raise BenchError(f"the script was killed after {timeout:g} s; its output ends with:\n{shown}") from None
        assert running.code is not None
        return Result(running.stdout.decode(errors="replace"), running.stderr.decode(errors="replace"), running.code)

    def run(
        self,
        script: str | bytes,
        env: Mapping[str, str] | None = None,
        timeout: float = 300.0,
        sinks: tuple[Sink | None, Sink | None] = (None, None),
    ) -> Result:
        """Runs a script (bash, or what its first line names) as root and returns what it left.

        Raises GuestCrashError when the kernel panics or warns meanwhile, BenchError after `timeout` seconds.
        """
        return self.wait(self.spawn(script, env, sinks), timeout)

    def _transfer(self, header: dict[str, Any], body: bytes, what: str) -> bytes:
        """A request that is answered with bytes."""
        try:
            return self._await(self._request(header, body), ANSWER_SECONDS, what).data or b""
        except TimeoutError:
            raise self._crash(f"the guest hangs: {what} does not end") from None

    def put(self, path: str, content: bytes | str | Path, mode: int = 0o644) -> None:
        """Writes a file in the guest; a Path is a file of the host whose mode is kept."""
        if isinstance(content, Path):
            mode, content = content.stat().st_mode & 0o777, content.read_bytes()
        body = content.encode() if isinstance(content, str) else content
        self._transfer({"do": "put", "path": path, "mode": mode}, body, f"writing {path}")

    def get(self, path: str) -> bytes:
        """Reads a file of the guest; BenchError when it cannot be read."""
        return self._transfer({"do": "get", "path": path}, b"", f"reading {path}")

    def dmesg(self) -> str:
        """The kernel's log so far."""
        return self.run("dmesg").checked().stdout

    def stop(self) -> None:
        """Ends QEMU (the disks keep nothing) and removes the machine's folder."""
        if self._qemu is not None:
            self._qemu.kill()
            self._qemu.wait()
        if self._agent is not None:
            self._agent.close()
        self._selector.close()
        shutil.rmtree(self.folder, ignore_errors=True)
