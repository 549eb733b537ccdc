# SPDX-License-Identifier: Apache-2.0
"""What NVML's sensors tell of every card at rest, then of the first card while a kernel of half a minute runs: JSON."""

import json
import time

import pynvml
from libcuda import Cuda, Spin

WINDOWS_S = 0.6  # a whole window of 250 ms lies in it


def read(index: int) -> dict[str, object]:
    """Every sensor of a card; the error's text where it has none."""
    card = pynvml.nvmlDeviceGetHandleByIndex(index)
    try:
        fan = str(pynvml.nvmlDeviceGetFanSpeed(card))
    except pynvml.NVMLError as error:
        fan = str(error)
    return {
        "celsius": pynvml.nvmlDeviceGetTemperature(card, pynvml.NVML_TEMPERATURE_GPU),
        "milliwatts": pynvml.nvmlDeviceGetPowerUsage(card),
        "limits": [
            pynvml.nvmlDeviceGetEnforcedPowerLimit(card),
            pynvml.nvmlDeviceGetPowerManagementLimit(card),
            pynvml.nvmlDeviceGetPowerManagementDefaultLimit(card),
            *pynvml.nvmlDeviceGetPowerManagementLimitConstraints(card),
        ],
        "pstate": pynvml.nvmlDeviceGetPerformanceState(card),
        "mhz": [pynvml.nvmlDeviceGetClockInfo(card, clock) for clock in range(3)],
        "busy": pynvml.nvmlDeviceGetUtilizationRates(card).gpu,
        "fan": fan,
    }


def main() -> None:
    pynvml.nvmlInit()
    found = [read(index) for index in range(pynvml.nvmlDeviceGetCount())]
    Spin(Cuda()).launch(30 * 10**9)
    time.sleep(WINDOWS_S)
    print(json.dumps({"rest": found, "busy": read(0)}))


if __name__ == "__main__":
    main()
