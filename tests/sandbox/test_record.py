# SPDX-License-Identifier: Apache-2.0
"""Records: what one sandbox may call its own, so that two never meet and every one can be ended."""

import json
import threading
from dataclasses import asdict, replace
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from cgpu.core.errors import SettingError, UnavailableError
from cgpu.sandbox.record import SLOTS, Record, Records, decode_record, network_of, state_locked

DRAFT = Record(slot=0, state="/s", nodes=("node-1", "node-2"), options="{}", kubernetes="1.37.2")


def nobody(_: IPv4Network) -> bool:
    return False


def test_sandboxes_side_by_side_share_no_name_and_no_address(tmp_path: Path) -> None:
    records = Records(tmp_path / "records")
    first = records.claim(DRAFT, nobody)
    second = records.claim(replace(DRAFT, state="/t"), nobody)

    for name in ("name", "host_link", "cgroup", "network"):
        assert getattr(first, name) != getattr(second, name)
    assert not first.network.overlaps(second.network)
    assert first.namespace("node-1") != second.namespace("node-1")


def test_nodes_of_a_sandbox_have_addresses_and_pods_of_their_own() -> None:
    assert [DRAFT.node_address(node) for node in DRAFT.nodes] == ["10.77.0.10", "10.77.0.11"]
    assert [DRAFT.pods_of(node) for node in DRAFT.nodes] == ["10.88.0.0/24", "10.88.1.0/24"]


def test_machines_have_addresses_pods_and_links_of_their_own() -> None:
    record = replace(DRAFT, machines=("vm-1", "vm-2"))

    assert [record.node_address(node) for node in record.machines] == ["10.77.0.12", "10.77.0.13"]
    assert [record.pods_of(node) for node in record.machines] == ["10.88.2.0/24", "10.88.3.0/24"]
    assert [record.tap(node) for node in record.machines] == ["tap2", "tap3"]
    assert decode_record(json.dumps(asdict(record)), Path("0.json")) == record


def test_the_longest_link_name_fits_the_kernel() -> None:
    assert len(replace(DRAFT, slot=SLOTS - 1).host_link) <= 15


def test_a_network_that_the_machine_routes_already_is_left_alone(tmp_path: Path) -> None:
    claimed = Records(tmp_path).claim(DRAFT, lambda network: network == network_of(0))

    assert claimed.slot == 1


def test_a_record_is_there_until_it_is_forgotten(tmp_path: Path) -> None:
    folder = tmp_path / "records"
    records = Records(folder)
    claimed = records.claim(DRAFT, nobody)

    assert Records(folder).of_state(Path("/s")) == claimed
    records.forget(claimed)
    assert Records(folder).all() == ()
    assert not folder.exists()


def test_forgetting_twice_is_fine(tmp_path: Path) -> None:
    records = Records(tmp_path / "records")
    claimed = records.claim(DRAFT, nobody)

    records.forget(claimed)
    records.forget(claimed)


def test_a_slot_is_used_again(tmp_path: Path) -> None:
    records = Records(tmp_path / "records")
    records.forget(records.claim(DRAFT, nobody))

    assert records.claim(DRAFT, nobody).slot == 0


def test_when_every_slot_is_taken_the_holders_are_named(tmp_path: Path) -> None:
    records = Records(tmp_path)
    for number in range(SLOTS):
        records.claim(replace(DRAFT, state=f"/s{number}"), nobody)

    with pytest.raises(UnavailableError, match="all 16 slots .*/s0, .*/s9; run `cgpu sandbox down` there"):
        records.claim(replace(DRAFT, state="/late"), nobody)


def test_claims_at_once_get_different_slots(tmp_path: Path) -> None:
    records = Records(tmp_path)
    slots: list[int] = []
    threads = [
        threading.Thread(target=lambda: slots.append(records.claim(replace(DRAFT, state="/x"), nobody).slot))
        for _ in range(SLOTS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(slots) == list(range(SLOTS))


def test_a_record_of_a_newer_version_can_still_be_read() -> None:
    text = json.dumps({**asdict(DRAFT), "added_later": 1})

    assert decode_record(text, Path("0.json")) == DRAFT


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"slot": 1}'])
def test_a_file_that_is_no_record_is_named(text: str) -> None:
    with pytest.raises(SettingError, match="/run/x/3.json is no record of a sandbox"):
        decode_record(text, Path("/run/x/3.json"))


def test_one_process_at_a_time_holds_a_state_folder(tmp_path: Path) -> None:
    state = tmp_path / "state"
    order: list[str] = []

    def second() -> None:
        with state_locked(state):
            order.append("second")

    with state_locked(state):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(0.2)
        order.append("first")
        state.rmdir()  # as `down` does at its end
    thread.join()

    assert order == ["first", "second"]
    assert state.is_dir()
