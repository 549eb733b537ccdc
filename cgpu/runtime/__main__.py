# SPDX-License-Identifier: Apache-2.0
"""The part of `cgpu-runtime` that thinks: creation of a container, and the end of one that has an instance.

Its sh front starts it for those commands only, with the arguments RUNTIME WORDS...; RUNTIME is runc or crun. It calls
`command` itself, without `site`: `python -m` would import twice as much.
"""

from __future__ import annotations

import errno
import os
import sys
import time

from cgpu import light_json as json
from cgpu.core.errors import CgpuError, UnavailableError
from cgpu.core.light import TYPE_CHECKING
from cgpu.libc import die_with_parent
from cgpu.light import Path, suppress
from cgpu.procfs import CgpuProc
from cgpu.runtime.arguments import BUNDLED, Call, instance_of, parse
from cgpu.runtime.config import Config, config_path, read_config
from cgpu.runtime.create import Tools, prepare, read_document, write_document
from cgpu.runtime.host import Paths
from cgpu.runtime.instances import Instances

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Final, NoReturn

NOT_FOUND: Final = 127
_SIGKILL: Final = 9


def main(argv: Sequence[str] | None = None, tools: Tools | None = None) -> int:
    """Runs one command; returns its exit status, or never when the runtime takes over."""
    runtime, *words = sys.argv[1:] if argv is None else argv
    call = parse(words, runtime)
    try:
        given = tools or _tools(read_config(config_path()))
        if call.command in BUNDLED:
            return _create(call, given)
        if call.command == "delete":
            return _delete(call, given)
        _become(call)
    except CgpuError as error:
        return _tell(call, str(error))
    except Exception as error:  # noqa: BLE001 - nobody reads a traceback here: the caller shows what --log holds
        return _tell(call, f"a fault of cgpu-runtime: {type(error).__name__}: {error}", traceback())


def command() -> NoReturn:
    """The whole command. Nothing is left to tidy at its end, which Python would take a millisecond or two for."""
    status = main()
    sys.stdout.flush()
    os._exit(status)


def _tools(config: Config) -> Tools:
    paths = Paths()
    kernel = CgpuProc(paths.proc)
    return Tools(config, paths, kernel, Instances(kernel, paths.run, paths.dev / "char"), _log(config.log_file))


def _create(call: Call, tools: Tools) -> int:
    _clear(tools)
    id_ = instance_of(call.container)
    bundle = Path(call.bundle)
    try:
        edited = prepare(call, read_document(bundle), tools)
        if edited is not None:
            write_document(bundle, edited)
        if not tools.instances.has(id_):
            _become(call)
        status = _run(call)
    except Exception:
        _end(id_, tools)
        raise
    if status:
        _end(id_, tools)
    return status


def _end(id_: str, tools: Tools) -> None:
    """Ends the instance of a container that is not there (any more); what stays is tried again at the next creation."""
    if not tools.instances.has(id_):
        return
    try:
        tools.instances.end(id_)
    except UnavailableError as error:
        tools.say(f"{id_}: its container is gone, but its instance stays until the next one is made: {error}")


def _delete(call: Call, tools: Tools) -> int:
    """A failure to end the instance is no failure of the command, else Docker would keep the container."""
    status = _run(call)
    if status == 0:
        _end(instance_of(call.container), tools)
    return status


def _clear(tools: Tools) -> None:
    """Ends what a killed wrapper or daemon left."""
    for id_ in tools.instances.leftovers():
        tools.say(f"{id_}: its container went without a word")
        _end(id_, tools)


def _run(call: Call) -> int:
    """The runtime as a child, with our files and signals; its exit status as a shell gives it.

    Whoever kills us means the runtime: left alone, it would make a container that nobody knows.
    """
    parent = os.getpid()
    child = os.fork()
    if not child:
        try:
            _die_with(parent)
            _become(call)
        finally:
            os._exit(NOT_FOUND)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF


def _die_with(parent: int) -> None:
    die_with_parent(_SIGKILL)
    if os.getppid() != parent:
        os._exit(NOT_FOUND)


def _become(call: Call) -> NoReturn:
    try:
        os.execv(_program(call.runtime), [call.runtime, *call.words])  # noqa: S606 - the runtime takes our place
    except OSError as error:
        sys.stderr.write(f"cgpu-runtime: {call.runtime}: {error.strerror}; set runtime in /etc/cgpu/config.toml\n")
        sys.exit(NOT_FOUND)


def _program(name: str) -> str:
    """The program of that name on PATH; `os.execvp` would import `warnings` to look for it. Raises FileNotFoundError."""
    if "/" in name:
        return name
    for folder in os.environ.get("PATH", os.defpath).split(":"):
        if os.access(found := f"{folder or '.'}/{name}", os.X_OK) and Path(found).is_file():
            return found
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


def traceback() -> str:
    """Where the present exception came from."""
    from traceback import format_exc  # noqa: PLC0415 - for faults only

    return format_exc()


def _tell(call: Call, reason: str, more: str = "") -> int:
    """Where Docker, containerd and Podman look: the file that --log names, and standard error."""
    reason = _on_one_line(reason)
    text = f"cgpu: {reason}"
    sys.stderr.write(f"{text}\n")
    if call.log:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        entry = json.dumps({"level": "error", "msg": text, "time": stamp}) if call.log_format == "json" else text
        with suppress(OSError), Path(call.log).open("a") as log:
            log.write(entry + "\n")
    with suppress(CgpuError):
        _log(read_config(config_path()).log_file)(f"{call.container[:12]}: refused: {reason}\n{more}".rstrip())
    return 1


def _on_one_line(text: str) -> str:
    """Variables may hold anything; a terminal must not obey it, and a log keeps one line a message."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _log(path: str) -> Callable[[str], None]:
    def say(text: str) -> None:
        if path:
            with suppress(OSError), Path(path).open("a") as log:
                log.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}\n")

    return say


if __name__ == "__main__":
    command()
