# SPDX-License-Identifier: Apache-2.0
"""The module on a node: loaded when the mode needs it, and what is said while it is not there."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from cgpu.core.errors import UnavailableError
from cgpu.core.names import Mode
from cgpu.procfs import CgpuProc
from deviceplugin import module as looked_at
from deviceplugin.module import Module


class Loader:
    """Fails with each of `failures` in turn, then makes the module appear."""

    def __init__(self, root: Path, *failures: str, version: str = "1.0.0") -> None:
        self._root = root
        self._failures = list(failures)
        self._version = version
        self.given: list[Mapping[str, str]] = []

    def wanted(self) -> str | None:
        return self._version

    def ensure(self, parameters: Mapping[str, str]) -> str:
        self.given.append(parameters)
        if self._failures:
            raise UnavailableError(self._failures.pop(0))
        running(self._root, self._version)
        return self._version

    def exchange(self, parameters: Mapping[str, str]) -> str:
        return self.ensure(parameters)


def running(root: Path, version: str) -> None:
    (root / "cgpu_km").mkdir(parents=True, exist_ok=True)
    (root / "cgpu_km/version").write_text(f"{version}\n")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looked_at, "_EVERY_S", 0)


async def kept(module: Module, mode: Mode, wakes: int) -> list[str]:
    """The problem at each wake, until there were so many."""
    seen: list[str] = []
    enough = asyncio.Event()

    def wake() -> None:
        seen.append(module.problem(mode))
        if len(seen) == wakes:
            enough.set()

    task = asyncio.create_task(module.keep(lambda: mode, wake))
    await asyncio.wait_for(enough.wait(), 60)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return seen


async def test_a_node_that_recovers_needs_no_restart(tmp_path: Path, quick: None) -> None:
    loader = Loader(tmp_path, "no headers", "no headers", "no compiler")
    module = Module(CgpuProc(tmp_path), loader, {"slice_ms": "2"})
    assert "it is being loaded" in module.problem(Mode.CGPU)

    first, second, last = await kept(module, Mode.CGPU, 3)

    assert "could not be loaded: no headers; or label the node ack.node.gpu.schedule=share" in first
    assert "no compiler" in second
    assert last == ""
    assert loader.given == [{"slice_ms": "2"}] * 4


async def test_a_module_that_is_taken_out_is_loaded_again(tmp_path: Path, quick: None) -> None:
    module = Module(CgpuProc(tmp_path), Loader(tmp_path), {})
    assert await kept(module, Mode.CORE_MEM, 1) == [""]
    (tmp_path / "cgpu_km/version").unlink()
    assert module.problem(Mode.CORE_MEM) != ""

    assert await kept(module, Mode.CORE_MEM, 1) == [""]


async def test_another_version_is_exchanged_and_what_is_in_the_way_is_told(tmp_path: Path, quick: None) -> None:
    running(tmp_path, "0.9.0")
    module = Module(CgpuProc(tmp_path), Loader(tmp_path, "the front is another"), {})

    first, last = await kept(module, Mode.CGPU, 2)

    assert first == "kernel module cgpu_km 0.9.0 runs and 1.0.0 is wanted: the front is another"
    assert last == ""


async def test_modes_without_isolation_load_nothing(tmp_path: Path, quick: None) -> None:
    loader = Loader(tmp_path)
    modes = iter([Mode.SHARE, Mode.DEFAULT])
    module = Module(CgpuProc(tmp_path), loader, {})

    with pytest.raises(RuntimeError):  # the modes are used up: both were looked at
        await module.keep(lambda: next(modes), lambda: None)

    assert loader.given == []


@pytest.mark.parametrize(
    ("version", "want"),
    [
        pytest.param("1.0.0", "", id="the version that is meant"),
        pytest.param("0.9.0", "0.9.0 runs and 1.0.0 is wanted: it is being exchanged", id="another version"),
    ],
)
def test_the_version_that_runs_is_compared(tmp_path: Path, version: str, want: str) -> None:
    running(tmp_path, version)

    problem = Module(CgpuProc(tmp_path), Loader(tmp_path), {}).problem(Mode.CGPU)
    assert want in problem
    assert bool(want) == bool(problem)


def test_the_front_alone_is_no_module(tmp_path: Path) -> None:
    running(tmp_path, "none")

    assert "needs the kernel module cgpu_km" in Module(CgpuProc(tmp_path), None, {}).problem(Mode.CGPU)


def test_where_somebody_else_loads_it_the_reader_is_told(tmp_path: Path) -> None:
    problem = Module(CgpuProc(tmp_path), None, {}).problem(Mode.CGPU)

    assert "needs the kernel module cgpu_km" in problem
    assert "load it; or label the node" in problem
