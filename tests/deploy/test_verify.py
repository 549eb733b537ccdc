# SPDX-License-Identifier: Apache-2.0
"""verify-hardware.sh where there is no card; tests/soak/test_deploy.py has it in the virtual machine."""

import subprocess
from pathlib import Path


def test_without_a_card_it_says_what_is_missing(tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "deploy/verify-hardware.sh"
    done = subprocess.run(["sh", script, f"{tmp_path}/report"], capture_output=True, text=True)

    assert done.returncode == 2
    assert "NVIDIA's driver is not loaded (no /proc/driver/nvidia/version): install it" in done.stderr
    assert "NOT TRIED: " in Path(f"{tmp_path}/report").read_text()
