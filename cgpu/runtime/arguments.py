# SPDX-License-Identifier: Apache-2.0
"""The command line of an OCI runtime, as Docker, containerd and Podman call runc and crun. Pure."""

from __future__ import annotations

from cgpu.core.light import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

# Options that take the next word, of runc 1.0 to 1.4 and crun 1.8 to 1.24; the rest are switches or hold their value.
VALUED: Final = frozenset(
    [
        "--root",
        "--log",
        "--log-format",
        "--log-level",
        "--criu",
        "--rootless",
        "--cgroup-manager",
        "--bundle",
        "-b",
        "--config",
        "--pid-file",
        "--console-socket",
        "--preserve-fds",
    ]
)
BUNDLED: Final = frozenset({"create", "run", "restore"})
_HEX: Final = "0123456789abcdef"
ID_LENGTH: Final = 12


class Call(NamedTuple):
    """What the caller wants. `words`: the command line as it came, for `runtime`; options that were not given are empty."""

    words: tuple[str, ...]
    command: str
    container: str
    bundle: str
    root: str
    log: str
    log_format: str
    runtime: str


def parse(words: Sequence[str], runtime: str = "runc") -> Call:
    """Reads a runtime's command line; what it does not know it leaves to the runtime to complain about."""
    plain: list[str] = []
    values: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if name in VALUED:
            values[name] = value if equals else next(rest, "")
        elif not word.startswith("-") or word == "-":
            plain.append(word)
    return Call(
        words=tuple(words),
        command=plain[0] if plain else "",
        container=plain[1] if len(plain) > 1 else "",
        bundle=values.get("--bundle") or values.get("-b") or ".",
        root=values.get("--root", ""),
        log=values.get("--log", ""),
        log_format=values.get("--log-format", ""),
        runtime=runtime,
    )


def instance_of(container: str) -> str:
    """The kernel instance of a container: the first 12 characters of its id, as `docker ps` shows it.

    Callers that name containers freely (`ctr run … web`) get the first 12 hex digits of the name's SHA-256.
    """
    if len(container) >= ID_LENGTH and not container.strip(_HEX):
        return container[:ID_LENGTH]
    import hashlib  # noqa: PLC0415 - slow to import, and Docker's ids never need it

    return hashlib.sha256(container.encode()).hexdigest()[:ID_LENGTH]
