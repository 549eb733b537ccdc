# SPDX-License-Identifier: Apache-2.0
"""The guest's end of the serial port: runs what the host sends, streams its output, moves files. Started by init."""

import os
import selectors
import signal
import subprocess
import tempfile
import tty
from pathlib import Path
from typing import Any

from wire import Decoder, encode

CHUNK = 65536
ENVIRONMENT = {
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "PATH": "/opt/bench/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONPATH": "/opt/python:/opt/project",
    "TERM": "dumb",
}


def find_port(name: str, root: Path = Path("/sys/class/virtio-ports")) -> str:
    """The device node of the serial port that QEMU calls `name`."""
    for port in root.iterdir():
        if (port / "name").read_text().strip() == name:
            return f"/dev/{port.name}"
    raise SystemExit(f"agent: no virtio serial port is called {name}")


class Job:
    """One running script: its process, a pidfd for its end, and the pipes of its output."""

    def __init__(self, number: int, header: dict[str, Any], script: bytes) -> None:
        self.number = number
        with tempfile.NamedTemporaryFile(prefix="script-", dir="/run", delete=False) as file:
            file.write(script)
        self.path = Path(file.name)
        self.path.chmod(0o700)
        command = [str(self.path)] if script.startswith(b"#!") else ["/bin/bash", str(self.path)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            cwd=header.get("cwd", "/root"), env={**ENVIRONMENT, **header.get("env", {})})
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.pipes = {self.process.stdout.fileno(): "out", self.process.stderr.fileno(): "err"}
        self.pidfd = os.pidfd_open(self.process.pid)

    def close(self) -> int:
        """Gives everything back and returns the exit code, 128 + N for a death by signal N."""
        code = self.process.wait()
        os.close(self.pidfd)
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.process.stdout.close()
        self.process.stderr.close()
        self.path.unlink(missing_ok=True)
        return code if code >= 0 else 128 - code


class Agent:
    """One loop over the port, the output of all jobs, and their ends."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.decoder = Decoder()
        self.jobs: dict[int, Job] = {}
        self.selector = selectors.DefaultSelector()
        self.selector.register(port, selectors.EVENT_READ, self.on_port)

    def send(self, header: dict[str, Any], body: bytes = b"") -> None:
        """Writes one frame whole."""
        rest = memoryview(encode(header, body))
        while rest:
            rest = rest[os.write(self.port, rest) :]

    def on_port(self, _key: selectors.SelectorKey) -> None:
        """Takes what the host sent."""
        for header, body in self.decoder.feed(os.read(self.port, CHUNK)):
            try:
                getattr(self, f"do_{header['do']}")(header, body)
            except OSError as error:
                self.send({"do": "fail", "id": header.get("id")}, str(error).encode())

    def do_run(self, header: dict[str, Any], body: bytes) -> None:
        """Starts a script."""
        job = Job(header["id"], header, body)
        self.jobs[job.number] = job
        for pipe in job.pipes:
            self.selector.register(pipe, selectors.EVENT_READ, lambda key, job=job: self.on_output(job, key.fd))
        self.selector.register(job.pidfd, selectors.EVENT_READ, lambda _key, job=job: self.on_end(job))

    def do_kill(self, header: dict[str, Any], _body: bytes) -> None:
        """Kills a script with everything in its session's process group."""
        job = self.jobs.get(header["job"])
        if job is not None:
            os.killpg(job.process.pid, signal.SIGKILL)

    def do_put(self, header: dict[str, Any], body: bytes) -> None:
        """Writes a file."""
        path = Path(header["path"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
        path.chmod(header.get("mode", 0o644))
        self.send({"do": "data", "id": header["id"]})

    def do_get(self, header: dict[str, Any], _body: bytes) -> None:
        """Reads a file."""
        self.send({"do": "data", "id": header["id"]}, Path(header["path"]).read_bytes())

    def do_off(self, _header: dict[str, Any], _body: bytes) -> None:
        """Powers the machine off at once: its disks keep nothing."""
        Path("/proc/sysrq-trigger").write_text("o")

    def on_output(self, job: Job, pipe: int) -> bool:
        """Passes on what a script wrote; False at its end."""
        data = os.read(pipe, CHUNK)
        if data:
            self.send({"do": job.pipes[pipe], "id": job.number}, data)
            return True
        self.selector.unregister(pipe)
        del job.pipes[pipe]
        return False

    def on_end(self, job: Job) -> None:
        """Sends what a finished script left in its pipes, then its exit code.

        A daemon that it started may hold the pipes open for ever, so their end is not waited for.
        """
        self.selector.unregister(job.pidfd)
        for pipe in list(job.pipes):
            os.set_blocking(pipe, False)
            try:
                while self.on_output(job, pipe):
                    pass
            except BlockingIOError:
                self.selector.unregister(pipe)
        del self.jobs[job.number]
        self.send({"do": "exit", "id": job.number, "code": job.close()})

    def serve(self) -> None:
        """Runs for as long as the machine does."""
        self.send({"do": "hello", "uptime": float(Path("/proc/uptime").read_text().split()[0])})
        while True:
            for key, _events in self.selector.select():
                if key.fd in self.selector.get_map():
                    key.data(key)


def main() -> None:
    """Opens the port, raw, and serves."""
    port = os.open(find_port("bench"), os.O_RDWR)
    if os.isatty(port):
        tty.setraw(port)
    Agent(port).serve()


if __name__ == "__main__":
    main()
