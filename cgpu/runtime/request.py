# SPDX-License-Identifier: Apache-2.0
"""What a container's variables ask for. Pure: variables and cards in, shares out, or one sentence that says why not."""

from __future__ import annotations

from cgpu.core.errors import ContainerError
from cgpu.core.light import TYPE_CHECKING, NamedTuple
from cgpu.core.memory import fractions_of, is_number, visible_mib
from cgpu.core.variables import (
    ENV_CONTAINER,
    ENV_DEV,
    ENV_DISABLE,
    ENV_HIGH_PRIO,
    ENV_IDX,
    ENV_POD,
    ENV_WEIGHT,
    MAX_INSTANCES_DEFAULT,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Final

_SWITCH: Final = {"": False, "0": False, "false": False, "1": True, "true": True}


class HostGpu(NamedTuple):
    """A card of this machine: the number that nvidia-smi gives it, that of /dev/nvidia<minor>, its UUID, MiB that the driver reports."""

    ordinal: int
    minor: int
    uuid: str
    total_mib: int


class Slice(NamedTuple):
    """A part of one card, in bytes."""

    gpu: HostGpu
    mem: int


class Request(NamedTuple):
    """What the kernel is to make. `weight` None: the container names none."""

    slices: tuple[Slice, ...]
    weight: int | None = None
    highprio: bool = False


def is_off(env: Mapping[str, str]) -> bool:
    """Whether cGPU is off whatever GPUs there are. Raises ContainerError for a bad CGPU_DISABLE."""
    if _switch(ENV_DISABLE, env):
        return True
    parts = [part.strip() for part in env.get(ENV_CONTAINER, "").split(",")]
    return parts == [""] or any(is_number(part) and int(part) == 0 for part in parts)


def request_of(env: Mapping[str, str], gpus: Sequence[HostGpu], most: int = MAX_INSTANCES_DEFAULT) -> Request | None:
    """The shares of a container on its GPUs (in the order in which it sees them), None when cGPU is off for it.

    `most`: the lowest max_inst of these GPUs, the highest weight. Raises MemoryRuleError or ContainerError with
    variable, value and rule.
    """
    if _switch(ENV_DISABLE, env):
        return None
    fractions = fractions_of(env.get(ENV_CONTAINER), env.get(ENV_DEV), len(gpus))
    if fractions is None:
        return None
    _check_compatible(env)
    mibs = [visible_mib(gpu.total_mib, part.container, part.dev) for gpu, part in zip(gpus, fractions, strict=True)]
    for gpu, mib in zip(gpus, mibs, strict=True):
        if mib < 1:
            raise ContainerError(
                f"{ENV_CONTAINER}={env[ENV_CONTAINER]} of {ENV_DEV}={env[ENV_DEV]} is less than 1 MiB of GPU {gpu.ordinal}"
                f" ({gpu.total_mib} MiB): {ENV_DEV} must be the card's GiB"
            )
    return Request(
        tuple(Slice(gpu, mib << 20) for gpu, mib in zip(gpus, mibs, strict=True)),
        _weight(env, most),
        _switch(ENV_HIGH_PRIO, env),
    )


def _switch(variable: str, env: Mapping[str, str]) -> bool:
    text = env.get(variable, "").strip().lower()
    if text not in _SWITCH:
        raise ContainerError(f"{variable}={env[variable][:80]}: must be 1 or true, 0 or false")
    return _SWITCH[text]


def _weight(env: Mapping[str, str], most: int) -> int | None:
    text = env.get(ENV_WEIGHT, "").strip()
    if not text:
        return None
    if not is_number(text) or not 1 <= int(text) <= most:
        raise ContainerError(f"{ENV_WEIGHT}={text[:80]}: must be a whole number from 1 to {most} (max_inst of the GPU)")
    return int(text)


def _check_compatible(env: Mapping[str, str]) -> None:
    """These decide nothing, but a wrong one is somebody's mistake."""
    for variable in (ENV_IDX, ENV_POD):
        text = env.get(variable, "").strip()
        if text and not all(map(is_number, text.split(","))):
            raise ContainerError(f"{variable}={text[:80]}: must be a whole number, or a comma list of them")
