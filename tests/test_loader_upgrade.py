# SPDX-License-Identifier: Apache-2.0
"""Another version of the module in place of the one that runs."""

import pytest

from cgpu.core.errors import UnavailableError
from tests.test_loader import RELEASE, Host, host

__all__ = ["host"]


def run_older(host: Host) -> None:
    host.write("proc/modules", "cgpu_core_0_9_0 1 0 - Live\ncgpu_km 1 0 - Live\n")
    host.write("proc/cgpu_km/version", "0.9.0\n")


def test_an_upgrade_switches_to_the_new_core_and_drops_the_old(host: Host) -> None:
    run_older(host)
    host.loader.upgrade()

    assert host.made("insmod") == ["cgpu_core_1_0_0.ko"]
    assert (host.root / "proc/cgpu_km/upgrade").read_text() == "cgpu_core_1_0_0\n"
    assert host.made("rmmod") == ["cgpu_core_0_9_0"]


def test_a_core_that_refuses_leaves_the_old_one_and_is_dropped(host: Host) -> None:
    run_older(host)
    (host.root / "proc/cgpu_km/upgrade").mkdir()  # a file that cannot be written

    with pytest.raises(UnavailableError, match="cgpu_core_1_0_0 was refused: Is a directory; 0.9.0 runs on"):
        host.loader.upgrade()
    assert host.made("rmmod") == ["cgpu_core_1_0_0"]


def test_a_core_of_other_structures_needs_the_cold_upgrade(host: Host) -> None:
    run_older(host)
    host.answers["insmod"] = (1, "", "insmod: ERROR: could not insert module: Protocol error")

    with pytest.raises(
        UnavailableError, match="end all containers, then `cgpu module unload` and `load`.*; 0.9.0 runs on"
    ):
        host.loader.upgrade()


def test_an_upgrade_without_the_new_core_says_so(host: Host) -> None:
    run_older(host)
    (host.root / f"lib/modules/{RELEASE}/updates/dkms/cgpu_core_1_0_0.ko").unlink()

    with pytest.raises(UnavailableError, match="cgpu_core_1_0_0.ko is not built .*; 0.9.0 runs on"):
        host.loader.upgrade()


def test_a_front_that_cannot_stay_waits_until_no_instance_is_there(host: Host) -> None:
    run_older(host)
    refused = (1, "", "insmod: ERROR: could not insert module: Protocol error")
    host.answers["insmod cgpu_core_1_0_0.ko"] = refused
    host.write("proc/cgpu_km/inst_ctl", "aaa gpu=0 mem=1\n")

    with pytest.raises(UnavailableError, match="0.9.0 runs on; it is loaded anew when no pod has a share"):
        host.loader.exchange({"slice_ms": "2"})
    assert host.made("rmmod") == []

    host.write("proc/cgpu_km/inst_ctl", "")
    host.calls.clear()
    unloaded = host.loader.unload

    def unload() -> None:
        unloaded()
        host.answers.clear()  # what refused was the front, and that is gone

    host.loader.unload = unload  # type: ignore[method-assign]
    assert host.loader.exchange({"slice_ms": "2"}) == "1.0.0"
    assert host.made("rmmod") == ["cgpu_core_0_9_0", "cgpu_km"]
    assert host.made("insmod")[1:] == ["cgpu_km.ko slice_ms=2", "cgpu_core_1_0_0.ko"]


def test_an_exchange_below_running_containers_takes_nothing_out(host: Host) -> None:
    run_older(host)
    host.write("proc/cgpu_km/inst_ctl", "aaa gpu=0 mem=1\n")

    host.loader.exchange({})

    assert (host.made("insmod"), host.made("rmmod")) == (["cgpu_core_1_0_0.ko"], ["cgpu_core_0_9_0"])


def test_an_upgrade_to_what_runs_does_nothing(host: Host) -> None:
    host.loader.load()
    host.calls.clear()

    assert host.loader.upgrade() == "1.0.0"
    assert host.calls == []
