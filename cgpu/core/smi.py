# SPDX-License-Identifier: Apache-2.0
"""What `cgpu-smi` shows: shares of compute from two looks at the kernel's figures, as rows, table and JSON.

The columns are those of the product documentation; a column grows when a value needs it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

FAIR, PREEMPTIVE, WEIGHTED, FIXED, SOFT, NATIVE = range(6)
POLICIES: Final = ("fair-share", "preemptive", "weighted preemptive", "fixed", "soft", "native")
_TITLES: Final = ("GPU", " pod            ", " highprio ", " GPU-Util/Limit ", " GPU Memory Usage/Total")
_PROCESS_TITLES: Final = ("GPU", " pod            ", "     PID ", " process         ", " GPU Memory")


@dataclass(frozen=True, slots=True)
class Look:
    """One instance on one GPU at one moment: bytes, slices, and ns that its turns have been busy."""

    gpu: int
    id: str
    mem: int
    used: int
    weight: int
    highprio: int
    busy_ns: int
    oom: int = 0


@dataclass(frozen=True, slots=True)
class Settings:
    """How a GPU is shared."""

    policy: int
    max_inst: int


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose an instance is; empty where nobody wrote it down."""

    runtime: str = ""
    namespace: str = ""
    pod: str = ""
    containers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Process:
    """A process that holds memory of a GPU: bytes; `name` is empty where it cannot be seen."""

    pid: int
    used: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """An instance on a GPU as it is shown: `util` and `limit` in percent of the GPU."""

    look: Look
    util: int
    limit: int
    owner: Owner = Owner()
    processes: tuple[Process, ...] = ()

    @property
    def name(self) -> str:
        """namespace/pod where a pod is known, else the instance."""
        return f"{self.owner.namespace}/{self.owner.pod}" if self.owner.pod else self.look.id


@dataclass(frozen=True, slots=True)
class Sample:
    """Two looks at all instances, and the time between them."""

    before: tuple[Look, ...]
    after: tuple[Look, ...]
    elapsed_ns: int


def rows_of(
    sample: Sample,
    settings: Mapping[int, Settings],
    owners: Mapping[str, Owner],
    processes: Mapping[tuple[int, str], Sequence[Process]] | None = None,
) -> tuple[Row, ...]:
    """The rows by GPU and name. An instance that was not there before has used what its counter says since."""
    earlier = {(look.gpu, look.id): look.busy_ns for look in sample.before}
    looks = sample.after
    spent = {(each.gpu, each.id): _spent(each.busy_ns, earlier.get((each.gpu, each.id), 0)) for each in looks}
    rows = [
        Row(
            each,
            min(100, round(100 * spent[each.gpu, each.id] / max(1, sample.elapsed_ns))),
            _limit(each, settings[each.gpu], [peer for peer in looks if peer.gpu == each.gpu], spent),
            owners.get(each.id, Owner()),
            tuple((processes or {}).get((each.gpu, each.id), ())),
        )
        for each in looks
        if each.gpu in settings
    ]
    return tuple(sorted(rows, key=lambda row: (row.look.gpu, row.name, row.look.id)))


def _spent(now: int, then: int) -> int:
    """A counter that went back belongs to a new instance of the same name."""
    return now - then if now >= then else now


def _limit(look: Look, settings: Settings, peers: Collection[Look], spent: Mapping[tuple[int, str], int]) -> int:
    busy = {peer.id for peer in peers if spent[peer.gpu, peer.id]} | {look.id}
    weights = sum(peer.weight for peer in peers)
    by_policy: dict[int, Callable[[], float]] = {
        FAIR: lambda: 1 / settings.max_inst,
        PREEMPTIVE: lambda: 1 / len(busy),
        WEIGHTED: lambda: look.weight / max(1, weights),
        FIXED: lambda: look.weight / settings.max_inst,
        SOFT: lambda: 1 / len(busy),
    }
    return round(100 * by_policy.get(settings.policy, lambda: 1.0)())


def table(version: str, rows: Sequence[Row]) -> str:
    """The table of the documentation; below it a sentence when there is nothing to show."""
    cells = [
        (
            f"{row.look.gpu:>3}",
            f" {row.name} ",
            f"{row.look.highprio:>9} ",
            f"{row.util:>10}/{row.limit:>3}  ",
            f"{row.look.used >> 20:>13}/{row.look.mem >> 20:<9}",
        )
        for row in rows
    ]
    text = _framed(f"| cGPU Version: {version}", _TITLES, cells)
    return text if rows else f"{text}\nno instance: no container has a share of a GPU"


def process_table(rows: Sequence[Row]) -> str:
    """One line a process that holds memory of a GPU."""
    cells = [
        (f"{row.look.gpu:>3}", f" {row.name} ", f"{each.pid:>8} ", f" {each.name or '-'} ", f"{each.used >> 20:>8}MiB")
        for row in rows
        for each in sorted(row.processes, key=lambda each: each.pid)
    ]
    return _framed("| Processes", _PROCESS_TITLES, cells)


def _framed(head: str, titles: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
    light = "+" + "+".join("-" * width for width in widths) + "+"
    lines = [head, light, _line(titles, widths), light.replace("-", "="), *(_line(row, widths) for row in cells)]
    return "\n".join(lines + ([light] if cells else []))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "|" + "|".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + "|"


def as_json(version: str, rows: Iterable[Row], settings: Mapping[int, Settings]) -> dict[str, Any]:
    """The same for programs: bytes and percent."""
    return {
        "version": version,
        "gpus": [
            {"gpu": gpu, "policy": each.policy, "policyName": _policy_name(each.policy), "maxInstances": each.max_inst}
            for gpu, each in sorted(settings.items())
        ],
        "instances": [_instance(row) for row in rows],
    }


def _policy_name(policy: int) -> str:
    return POLICIES[policy] if 0 <= policy < len(POLICIES) else ""


def _instance(row: Row) -> dict[str, Any]:
    look, owner = row.look, row.owner
    return {
        "gpu": look.gpu,
        "id": look.id,
        "runtime": owner.runtime,
        "namespace": owner.namespace,
        "pod": owner.pod,
        "containers": list(owner.containers),
        "highprio": look.highprio,
        "weight": look.weight,
        "utilPercent": row.util,
        "limitPercent": row.limit,
        "usedBytes": look.used,
        "limitBytes": look.mem,
        "oom": look.oom,
        "processes": [{"pid": each.pid, "name": each.name, "usedBytes": each.used} for each in row.processes],
    }
