# SPDX-License-Identifier: Apache-2.0
"""The guest's end of the serial port: runs what the host sends, streams its output, moves files. Started by init.

It imports little and starts programs by fork and exec: under emulation every import of the standard library is felt.
"""

# pathlib costs half a second here
# ruff: noqa: PTH101, PTH103, PTH108, PTH110, PTH120, PTH123, PTH208
import errno
import os
import select

from wire import Decoder, encode

CHUNK = 65536
SIGKILL = 9
ENVIRONMENT = {
    "CUDA_PATH": "/opt/cuda/site/nvidia/cuda_runtime",
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "PATH": "/opt/bench/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONPATH": "/opt/python:/opt/project:/opt/cuda/site",
    "TERM": "dumb",
}


def find_port(name, root="/sys/class/virtio-ports"):
    """The device node of the serial port that QEMU calls `name`."""
    for port in os.listdir(root):
        with open(f"{root}/{port}/name") as file:
            if file.read().strip() == name:
                return f"/dev/{port}"
    raise SystemExit(f"agent: no virtio serial port is called {name}")


def start(command, env, out, err):
    """Starts a program as the leader of a session of its own, with these two pipes for output; returns its pid."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        nothing = os.open("/dev/null", os.O_RDONLY)
        for number, descriptor in enumerate((nothing, out, err)):
            os.dup2(descriptor, number)
        os.chdir("/root")
        os.execve(command[0], command, env)
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    os._exit(126 if os.path.exists(command[0]) else 127)


class Job:
    """One running script: its process, a pidfd for its end, and the pipes of its output."""

    def __init__(self, number, env, script):
        self.number = number
        self.path = f"/run/script-{number}"
        with open(self.path, "wb") as file:
            file.write(script)
        os.chmod(self.path, 0o700)
        command = [self.path] if script.startswith(b"#!") else ["/bin/bash", self.path]
        (out, out_end), (err, err_end) = os.pipe2(os.O_CLOEXEC), os.pipe2(os.O_CLOEXEC)
        self.pid = start(command, {**ENVIRONMENT, **env}, out_end, err_end)
        os.close(out_end)
        os.close(err_end)
        self.pipes = {out: "out", err: "err"}
        self.pidfd = os.pidfd_open(self.pid)

    def close(self):
        """Gives everything back and returns the exit code, 128 + N for a death by signal N."""
        _, status = os.waitpid(self.pid, 0)
        os.close(self.pidfd)
        os.unlink(self.path)
        code = os.waitstatus_to_exitcode(status)
        return code if code >= 0 else 128 - code


class Agent:
    """One loop over the port, the output of all jobs, and their ends."""

    def __init__(self, port):
        self.port = port
        self.decoder = Decoder()
        self.jobs = {}
        self.poll = select.epoll()
        self.actions = {}
        # told once of each change: a port that no host holds stays ready, and to be told of that would never end
        self.watch(port, self.on_port, select.EPOLLIN | select.EPOLLET)

    def watch(self, descriptor, action, events=select.EPOLLIN):
        """Calls `action` when there is something to read."""
        self.actions[descriptor] = action
        self.poll.register(descriptor, events)

    def forget(self, descriptor):
        """Ends the watch of a descriptor and closes it."""
        self.poll.unregister(descriptor)
        del self.actions[descriptor]
        os.close(descriptor)

    def send(self, header, body=b""):
        """Writes one frame whole."""
        rest = memoryview(encode(header, body))
        while rest:
            rest = rest[os.write(self.port, rest) :]

    def on_port(self):
        """Takes everything that the host sent."""
        while data := os.read(self.port, CHUNK):
            for header, body in self.decoder.feed(data):
                self.on_frame(header, body)
            if not select.select([self.port], [], [], 0)[0]:
                break

    def on_frame(self, header, body):
        """Does what a frame says, and answers why it cannot."""
        try:
            getattr(self, f"do_{header['do']}")(header, body)
        except OSError as error:
            self.send({"do": "fail", "id": header.get("id")}, str(error).encode())

    def do_run(self, header, body):
        """Starts a script."""
        job = Job(header["id"], header["env"], body)
        self.jobs[job.number] = job
        for pipe in job.pipes:
            self.watch(pipe, lambda pipe=pipe: self.on_output(job, pipe))
        self.watch(job.pidfd, lambda: self.on_end(job))

    def do_kill(self, header, _body):
        """Kills a script with everything in its process group."""
        job = self.jobs.get(header["job"])
        if job is not None:
            os.killpg(job.pid, SIGKILL)

    def do_put(self, header, body):
        """Writes a file."""
        os.makedirs(os.path.dirname(header["path"]), exist_ok=True)
        with open(header["path"], "wb") as file:
            file.write(body)
        os.chmod(header["path"], header["mode"])
        self.send({"do": "data", "id": header["id"]})

    def do_get(self, header, _body):
        """Reads a file."""
        with open(header["path"], "rb") as file:
            self.send({"do": "data", "id": header["id"]}, file.read())

    def on_output(self, job, pipe):
        """Passes on what a script wrote; False at its end."""
        data = os.read(pipe, CHUNK)
        if data:
            self.send({"do": job.pipes[pipe], "id": job.number}, data)
            return True
        del job.pipes[pipe]
        self.forget(pipe)
        return False

    def on_end(self, job):
        """Sends what a finished script left in its pipes, then its exit code.

        A daemon that it started may hold the pipes open for ever, so their end is not waited for.
        """
        for pipe in list(job.pipes):
            os.set_blocking(pipe, False)
            try:
                while self.on_output(job, pipe):
                    pass
            except OSError as error:
                if error.errno != errno.EAGAIN:
                    raise
                self.forget(pipe)
        self.poll.unregister(job.pidfd)
        del self.actions[job.pidfd], self.jobs[job.number]
        self.send({"do": "exit", "id": job.number, "code": job.close()})

    def serve(self):
        """Runs for as long as the machine does."""
        self.send({"do": "hello"})
        while True:
            for descriptor, _events in self.poll.poll():
                action = self.actions.get(descriptor)
                if action is not None:
                    action()


if __name__ == "__main__":
    Agent(os.open(find_port("bench"), os.O_RDWR | os.O_CLOEXEC)).serve()
