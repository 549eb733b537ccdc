# SPDX-License-Identifier: Apache-2.0
"""Cards from a file, and from a small stand-in for NVIDIA's library that raises the library's own errors."""

import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from cgpu.core.errors import SettingError, UnavailableError
from cgpu.core.health import HealthBook
from cgpu.gpus import Gpu, NvmlGpus, SimulatedGpus
from tests.nvsim.driver import PROJECT, run


class FakeNvml:
    """Answers as pynvml does; `cards`: index → UUID, or the error that asking for it raises."""

    NVMLError = pynvml.NVMLError
    NVMLError_Timeout = pynvml.NVMLError_Timeout
    NVMLError_FunctionNotFound = pynvml.NVMLError_FunctionNotFound
    nvmlMemory_v2 = pynvml.nvmlMemory_v2  # noqa: N815 - the library's names
    nvmlEventTypeXidCriticalError = pynvml.nvmlEventTypeXidCriticalError  # noqa: N815

    def __init__(self, *cards: Any) -> None:
        self.cards = list(cards)
        self.init_error: Exception | None = None
        self.xids: list[tuple[str, int]] = []
        self.no_second_form = False
        self.used_mib = 0
        self.watched: list[str] = []

    def nvmlInit(self) -> None:  # noqa: N802
        if self.init_error:
            raise self.init_error

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.watched.clear()

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:  # noqa: N802
        if isinstance(self.cards[index], Exception):
            raise self.cards[index]
        return self.cards[index]

    def nvmlDeviceGetMemoryInfo(self, handle: str, version: int | None = None) -> Any:  # noqa: N802
        if version and self.no_second_form:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        return SimpleNamespace(total=15109 << 20, reserved=200 << 20, used=self.used_mib << 20)

    def nvmlDeviceGetMinorNumber(self, handle: str) -> int:  # noqa: N802
        return 7 - [str(card) for card in self.cards].index(handle)

    def nvmlDeviceGetUUID(self, handle: str) -> str:  # noqa: N802
        return handle

    def nvmlDeviceGetName(self, handle: str) -> str:  # noqa: N802
        return "Tesla T4"

    def nvmlDeviceGetNumaNodeId(self, handle: str) -> int:  # noqa: N802
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    def nvmlEventSetCreate(self) -> str:  # noqa: N802
        return "set"

    def nvmlDeviceRegisterEvents(self, handle: str, kind: int, events: str) -> None:  # noqa: N802
        self.watched.append(handle)

    def nvmlEventSetWait_v2(self, events: str, timeout_ms: int) -> Any:  # noqa: N802
        if not self.xids:
            time.sleep(min(timeout_ms, 10) / 1000)
            raise pynvml.NVMLError(pynvml.NVML_ERROR_TIMEOUT)
        uuid, xid = self.xids.pop(0)
        return SimpleNamespace(device=uuid, eventData=xid)


def test_cards_are_described_by_the_driver() -> None:
    nvml = FakeNvml("GPU-a", "GPU-b")

    found = NvmlGpus(HealthBook(), nvml=nvml).scan()

    assert found == (Gpu(0, 7, "GPU-a", "Tesla T4", 15109, 200), Gpu(1, 6, "GPU-b", "Tesla T4", 15109, 200))
    assert nvml.watched == ["GPU-a", "GPU-b"]


def test_branches_without_the_second_form_reserve_nothing() -> None:
    nvml = FakeNvml("GPU-a")
    nvml.no_second_form = True

    assert NvmlGpus(HealthBook(), nvml=nvml).scan()[0].reserved_mib == 0


def test_no_driver_is_said_and_looked_for_again() -> None:
    nvml = FakeNvml("GPU-a")
    nvml.init_error = pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
    gpus = NvmlGpus(HealthBook(), nvml=nvml)

    with pytest.raises(UnavailableError, match="no NVIDIA GPU can be used on this node: NVML: .*Not Found"):
        gpus.scan()
    nvml.init_error = None
    assert len(gpus.scan()) == 1


def test_a_machine_without_nvidias_library_says_so() -> None:
    with pytest.raises(UnavailableError, match="no NVIDIA GPU can be used on this node"):
        NvmlGpus(HealthBook()).scan()


def test_a_card_without_memory_of_its_own_is_left_out() -> None:
    nvml = FakeNvml(pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED), "GPU-b")

    assert [gpu.uuid for gpu in NvmlGpus(HealthBook(), nvml=nvml).scan()] == ["GPU-b"]
    with pytest.raises(UnavailableError, match="GPU 0: Not Supported"):
        NvmlGpus(HealthBook(), nvml=FakeNvml(pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED))).scan()


def test_memory_that_comes_into_use_is_seen_and_makes_no_other_card() -> None:
    nvml = FakeNvml("GPU-a")
    gpus = NvmlGpus(HealthBook(), nvml=nvml)
    before = gpus.scan()
    nvml.used_mib = 10240

    after = gpus.scan()

    assert ([gpu.used_mib for gpu in before], [gpu.used_mib for gpu in after]) == ([0], [10240])
    assert before == after


def test_a_lost_card_stays_in_the_list_and_comes_back_after_a_quiet_minute() -> None:
    now = [0.0]
    nvml = FakeNvml("GPU-a", "GPU-b")
    gpus = NvmlGpus(HealthBook(), lambda: now[0], nvml)
    gpus.scan()

    nvml.cards[0] = pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
    assert [gpu.fault for gpu in gpus.scan()] == ["the card does not answer", ""]
    nvml.cards[0] = "GPU-a"
    for now[0], want in ((30.0, "the card does not answer"), (60.0, "")):
        assert gpus.scan()[0].fault == want


def test_a_driver_that_goes_away_takes_every_card_out_but_forgets_none() -> None:
    nvml = FakeNvml("GPU-a")
    gpus = NvmlGpus(HealthBook(), nvml=nvml)
    gpus.scan()
    nvml.init_error = pynvml.NVMLError(pynvml.NVML_ERROR_DRIVER_NOT_LOADED)

    assert [(gpu.uuid, gpu.fault) for gpu in gpus.scan()] == [("GPU-a", "the card does not answer")]


def test_an_xid_ends_the_wait_and_marks_the_card() -> None:
    nvml = FakeNvml("GPU-a", "GPU-b")
    gpus = NvmlGpus(HealthBook(), nvml=nvml)
    gpus.scan()
    nvml.xids = [("GPU-a", 31), ("GPU-b", 79)]
    start = time.monotonic()

    gpus.wait(30)

    assert time.monotonic() - start < 25
    assert [gpu.fault for gpu in gpus.scan()] == ["", "Xid 79"]


def test_an_applications_xid_does_not_end_the_wait() -> None:
    nvml = FakeNvml("GPU-a")
    gpus = NvmlGpus(HealthBook(), nvml=nvml)
    gpus.scan()
    nvml.xids = [("GPU-a", 43)]

    gpus.wait(0.5)

    assert (nvml.xids, gpus.scan()[0].fault) == ([], "")


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, id="a branch without the call"),
        pytest.param(pynvml.NVML_ERROR_GPU_IS_LOST, id="a card that was lost"),
    ],
)
def test_a_wait_that_fails_still_takes_its_time(monkeypatch: pytest.MonkeyPatch, error: int) -> None:
    nvml = FakeNvml("GPU-a")
    gpus = NvmlGpus(HealthBook(), nvml=nvml)
    gpus.scan()
    asked = []

    def refuse(events: str, timeout_ms: int) -> None:
        asked.append(timeout_ms)
        raise pynvml.NVMLError(error)

    monkeypatch.setattr(nvml, "nvmlEventSetWait_v2", refuse)
    start = time.monotonic()
    gpus.wait(0.2)

    assert time.monotonic() - start >= 0.2
    assert len(asked) == 1


@pytest.mark.parametrize("branch", ["418", "470", "550"])
def test_nvidias_own_library_on_the_simulated_driver(branch: str) -> None:
    program = (
        "from cgpu.core.health import HealthBook\n"
        "from cgpu.gpus import NvmlGpus\n"
        "gpus = NvmlGpus(HealthBook())\n"
        "for gpu in gpus.scan():\n"
        "    print(gpu.index, gpu.minor, gpu.uuid[:4], gpu.model, gpu.total_mib, gpu.fault, sep='|')\n"
        "gpus.wait(0.1)\n"
    )
    argv = [sys.executable, "-c", program]

    done = run(branch, argv, cards="T4,V100", total_mib="15109,16130", env={"PYTHONPATH": str(PROJECT)})

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["0|0|GPU-|Tesla T4|15109|", "1|1|GPU-|Tesla V100-SXM2-16GB|16130|"]


def write(path: Path, text: str) -> None:
    temporary = path.with_suffix(".new")
    temporary.write_text(text)
    temporary.replace(path)


def test_a_simulated_card_is_switched_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "cards.yaml"
    write(path, "cards:\n- {model: T4, memMiB: 15109}\n")
    gpus = SimulatedGpus(path, "node-a")
    assert [(gpu.total_mib, gpu.fault) for gpu in gpus.scan()] == [(15109, "")]
    threading.Timer(0.2, write, (path, "cards:\n- {model: T4, memMiB: 15109, healthy: false}\n")).start()

    gpus.wait(30)

    assert gpus.scan()[0].fault == f"healthy: false in {path}"


def test_a_first_mistake_is_raised_a_later_one_keeps_the_last_good_list(tmp_path: Path) -> None:
    path = tmp_path / "cards.yaml"
    write(path, "cards: none\n")
    gpus = SimulatedGpus(path, "node-a")
    with pytest.raises(SettingError, match=r"cards\.yaml:1:8"):
        gpus.scan()
    write(path, "cards:\n- {model: T4, memMiB: 15109}\n")
    good = gpus.scan()
    write(path, "cards: none\n")

    assert gpus.scan() == good
