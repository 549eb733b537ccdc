# SPDX-License-Identifier: Apache-2.0
"""What this machine has: cards and the driver's files, asked once after a boot and kept in /run/cgpu/cards.json.

Asking the driver takes a tenth of a second and more; a container start must not. What was kept is asked anew when
the boot, the driver's version, the list of its cards or NVIDIA's list of its files differs.
"""

from __future__ import annotations

import os

from cgpu import light_json as json
from cgpu.core.errors import UnavailableError
from cgpu.core.light import TYPE_CHECKING, NamedTuple
from cgpu.light import Path
from cgpu.procfs import driver_version
from cgpu.runtime.cdilist import stamp_of
from cgpu.runtime.libraries import HostFile, discover
from cgpu.runtime.request import HostGpu

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Final

NVIDIA_MAJOR: Final = 195
QUERY: Final = ("nvidia-smi", "--query-gpu=index,pci.bus_id,uuid,memory.total", "--format=csv,noheader,nounits")
_FORM: Final = 3  # of cards.json


class Paths(NamedTuple):
    """Folders of the host; tests give others."""

    proc: Path = Path("/proc")
    dev: Path = Path("/dev")
    run: Path = Path("/run/cgpu")
    root: Path = Path("/")


class Host(NamedTuple):
    """The cards in index order, and the driver's files that a container may need."""

    gpus: tuple[HostGpu, ...]
    files: tuple[HostFile, ...]


def nvidia_majors(proc: Path) -> frozenset[int]:
    """Majors of every device that leads to a card: NVIDIA's 195, those that the kernel hands out (unified memory, caps), and ours.

    Ours too, since `--device` can name the nodes of another container's instance.
    """
    found = {NVIDIA_MAJOR}
    try:
        text = (proc / "devices").read_text()
    except OSError:
        return frozenset(found)
    for line in text.splitlines():
        number, _, name = line.strip().partition(" ")
        if number.isdecimal() and name.startswith(("nvidia", "cgpu")):
            found.add(int(number))
    return frozenset(found)


def parse_cards(listed: str, minors: Mapping[str, int]) -> tuple[HostGpu, ...]:
    """The cards in nvidia-smi's answer to `QUERY`; `minors`: number of the node by PCI address and by UUID. Raises UnavailableError."""
    try:
        return tuple(_card(line, minors) for line in listed.splitlines() if line.strip())
    except (ValueError, KeyError) as error:
        raise UnavailableError(f"nvidia-smi: its list of cards cannot be read: {listed.strip()[:200]!r}") from error


def _card(line: str, minors: Mapping[str, int]) -> HostGpu:
    index, address, uuid, total = (part.strip() for part in line.split(","))
    place = address.lower()[-12:]
    return HostGpu(int(index), minors[place if place in minors else uuid], uuid, int(total))


def scan_cards(proc: Path) -> tuple[HostGpu, ...]:
    """The cards as nvidia-smi lists them: what it shows is what a share is a part of. Raises UnavailableError."""
    import subprocess  # noqa: PLC0415 - slow to import, and needed once after a boot

    try:
        done = subprocess.run(QUERY, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UnavailableError(f"nvidia-smi: {error.strerror}: is NVIDIA's driver installed?") from error
    if done.returncode:
        said = " ".join((done.stdout + done.stderr).split())
        raise UnavailableError(f"nvidia-smi ended with {done.returncode}: {said[:300]}")
    return parse_cards(done.stdout, _minors(proc))


def _minors(proc: Path) -> dict[str, int]:
    """Number of /dev/nvidia<minor> by PCI address and by UUID; the driver's own list has it, nvidia-smi does not.

    By both, since nvidia-smi of branch 550 can leave the address out.
    """
    found: dict[str, int] = {}
    for card in (proc / "driver/nvidia/gpus").iterdir():
        lines = (line.partition(":") for line in (card / "information").read_text().splitlines())
        facts = {name.strip(): value.strip() for name, _, value in lines}
        if "Device Minor" in facts:
            minor = int(facts["Device Minor"])
            found |= {card.name.lower()[-12:]: minor, facts.get("GPU UUID", ""): minor}
    return found


def read_host(paths: Paths, scan: Callable[[Path], Sequence[HostGpu]] = scan_cards) -> Host:
    """Cards and files, from cards.json while it is true. Raises UnavailableError when the driver does not answer."""
    kept = paths.run / "cards.json"
    stamp = _stamp(paths)
    found = _read(kept, stamp)
    if found is None:
        found = Host(tuple(scan(paths.proc)), tuple(discover(paths.root, driver_version(paths.proc))))
        _write(kept, stamp, found)
    return found


def _stamp(paths: Paths) -> list[Any]:
    proc = paths.proc
    try:
        cards = sorted(card.name for card in (proc / "driver/nvidia/gpus").iterdir())
    except OSError:
        cards = []
    try:
        boot = (proc / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        boot = ""
    return [_FORM, boot, driver_version(proc), cards, stamp_of(paths.root)]


def _read(path: Path, stamp: list[Any]) -> Host | None:
    try:
        kept = json.loads(path.read_bytes())
        if kept["stamp"] != stamp:
            return None
        return Host(tuple(HostGpu(**card) for card in kept["cards"]), tuple(HostFile(**file) for file in kept["files"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None  # absent, half-written by a power cut, or of another version: asked anew


def _write(path: Path, stamp: list[Any], host: Host) -> None:
    document = {
        "stamp": stamp,
        "cards": [
            {"ordinal": gpu.ordinal, "minor": gpu.minor, "uuid": gpu.uuid, "total_mib": gpu.total_mib}
            for gpu in host.gpus
        ],
        "files": [{"source": file.source, "name": file.name, "capability": file.capability} for file in host.files],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".cards.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(document))
    temporary.replace(path)
