# SPDX-License-Identifier: Apache-2.0
"""nvsim.ko in a virtual machine: several processes, faults, ends of processes, bad ioctls, unloading."""

import re

import pytest

from tests.nvsim import fuzzing
from tests.nvsim.machines import PROGRAMS, machine, play

# hold PROGRAM...: starts it, waits until it says "ready"; its pid in $H, its output in /tmp/held
HOLD = f"""
hold() {{ rm -f /tmp/held; python3 {PROGRAMS}/"$@" > /tmp/held 2>&1 & H=$!
	for _ in $(seq 600); do grep -q ready /tmp/held && return; sleep 0.1; done; cat /tmp/held; exit 9; }}
"""
IDLE = f"""for p in /proc/[0-9]*; do [ "$(cat $p/comm 2> /dev/null)" = nvsim ] && engine=$p; done
told() {{ until [ $(grep -c $1 /tmp/told) = $2 ]; do kill -0 $H; sleep 0.1; done; }}
asleep() {{ until before=$(grep ctxt $engine/status); sleep 1; [ "$before" = "$(grep ctxt $engine/status)" ]; do kill -0 $H; done; }}
set -e; rm -f /tmp/work; mkfifo /tmp/work; python3 {PROGRAMS}/idle.py < /tmp/work > /tmp/told & H=$!
exec 3> /tmp/work; told ready 1; echo ready; n=0
for word in fork work; do asleep; echo asleep; n=$((n + 1)); echo $word >&3; told launched $n; echo launched; done
asleep; exec 3>&-; wait $H
"""
alone = pytest.mark.parametrize("vm", [pytest.param(machine("6.1"), id="535 on a T4")], indirect=True)


@pytest.fixture(autouse=True)
def as_booted(vm) -> None:
    """The machine's own branch and card, whatever was played in it before."""
    vm.run(
        "grep -q '^nvsim branch 535 ' /proc/nvsim && [ $(grep -c ^gpu /proc/nvsim) = 1 ] || { rmmod nvsim; load-driver; }"
    ).checked()


def ledger(text: str, kind: str) -> list[dict[str, str]]:
    """The lines of one kind in /proc/nvsim, as words and values."""
    rows = [line.split() for line in text.splitlines() if line.startswith(f"{kind} ")]
    return [dict(zip(row[2::2], row[3::2], strict=False)) for row in rows]


@alone
def test_the_process_list_shows_who_holds_memory(vm) -> None:
    """nvidia-smi shows pid and memory, which the ledger confirms; both are gone with a killed process."""
    shown = vm.run(
        HOLD + "hold hold.py; echo pid $H; nvidia-smi; cat /proc/nvsim; kill -9 $H; wait; cat /proc/nvsim"
    ).stdout
    pid = re.search(r"pid (\d+)", shown)[1]
    before, after = shown.split("nvsim branch")[1:]

    assert re.search(rf"\b{pid} +C +.*MiB", shown)
    assert [row["pid"] for row in ledger(before, "client")] == [pid]
    assert ledger(after, "client") == ledger(after, "channel") == []
    assert ledger(after, "gpu")[0]["used"] == "0"


@alone
def test_fresh_memory_shows_nothing_of_whoever_had_it_before(vm) -> None:
    """It is filled to the last byte each time, by a process that just ends."""
    shown = vm.run(f"for n in 1 2; do python3 {PROGRAMS}/sentinel.py 8; done")

    assert shown.checked().stdout.split() == ["0", "8"] * 2


@alone
@pytest.mark.parametrize("branch", ["418", "535"])
def test_two_processes_share_the_engine_by_time_slices(vm, branch: str) -> None:
    """While both have kernels of 10 ms queued, each gets half the engine to a slice; together they get all of it."""
    script = f"""rm -f /tmp/go; for n in 1 2; do python3 {PROGRAMS}/share.py 200 10000000 queued /tmp/go > /tmp/o$n & done
	for n in 1 2; do until grep -q ready /tmp/o$n; do sleep 0.1; done; done; touch /tmp/go
	until [ $(grep -c '^tsg .* busy_ns [1-9]' /proc/nvsim) = 2 ]; do sleep 0.05; done
	cat /proc/nvsim; sleep 1; echo later; cat /proc/nvsim; wait; cat /tmp/o1 /tmp/o2; tail -n +2 /proc/nvsim"""
    vm.put("/tmp/share.sh", script)
    first, later = play(vm, branch, ("T4",), "bash /tmp/share.sh").split("later\n")
    gained = {row["pid"]: int(row["busy_ns"]) for row in ledger(later, "tsg") if row["busy_ns"] != "0"}
    for row in ledger(first, "tsg"):
        gained[row["pid"]] -= int(row["busy_ns"])

    took = [float(word) for word in re.findall(r"elapsed_ms (\S+)", later)]

    assert len(gained) == len(took) == 2
    assert max(gained.values()) - min(gained.values()) <= 2 * 2_048_000
    assert ledger(later, "gpu")[-1]["used"] == "0"
    assert ledger(later, "gpu")[-1]["busy_ns"] == str(2 * 200 * 10_000_000), "of each kernel its time, and no more"
    assert min(took) >= 200 * 10 * 0.99, "no program has its kernels done before the engine was busy with them"


@alone
@pytest.mark.parametrize(
    ("xid", "code"),
    [
        pytest.param(31, 719, id="a page fault is 719"),
        pytest.param(13, 719, id="a graphics exception is 719"),
        pytest.param(43, 719, id="a stopped channel is 719"),
        pytest.param(8, 702, id="a watchdog is 702"),
    ],
)
def test_an_injected_fault_reaches_the_waiting_call(vm, xid, code) -> None:
    """The wait ends with CUDA's error, which sticks to the context."""
    shown = vm.run(HOLD + f"hold hold.py; echo xid 0 {xid} $H > /proc/nvsim; wait $H; cat /tmp/held").stdout

    assert shown == f"ready\nwaited {code}\nthen {code}\n"


@alone
def test_a_fault_spares_other_processes(vm) -> None:
    """Only the named process dies of it; a process that is not there is refused."""
    script = (
        HOLD
        + """hold hold.py 3; F=$H; mv /tmp/held /tmp/first; hold hold.py; echo xid 0 31 $H > /proc/nvsim; wait $H
	wait $F; cat /tmp/held /tmp/first; echo xid 0 31 999999 > /proc/nvsim || echo refused"""
    )
    shown = vm.run(script).stdout

    assert shown == "ready\nwaited 719\nthen 719\nready\nwaited 0\nthen 0\nrefused\n"


@alone
def test_random_kills_leave_nothing(vm) -> None:
    """Processes killed at any point of their life give back memory, objects and channels."""
    script = f"""for n in $(seq 25); do
	for m in 1 2; do python3 {PROGRAMS}/everything.py > /dev/null 2>&1 & eval "P$m=$!"; done
	sleep 0.$((RANDOM % 9))$((RANDOM % 9)); sleep $((RANDOM % 3)); kill -9 $P1 $P2; wait; done; cat /proc/nvsim"""
    shown = vm.run(script, timeout=300).checked().stdout

    assert ledger(shown, "client") == ledger(shown, "channel") == ledger(shown, "tsg") == []
    assert ledger(shown, "gpu")[0]["used"] == "0"


@alone
def test_random_ioctls_do_no_harm(vm) -> None:
    """20,000 malformed calls of children that are killed: no report, nothing left, and the driver still works."""
    fuzzing.put(vm)
    calls, _ = fuzzing.fuzz(vm, seed=1, count=20_000, processes=2, timeout=300)
    shown = vm.run("cat /proc/nvsim; nvidia-smi -L").checked().stdout

    assert calls >= 20_000
    assert ledger(shown, "client") == []
    assert "GPU 0: Tesla T4" in shown


@alone
def test_an_idle_context_wakes_nobody(vm) -> None:
    """After a while without launches the engine's thread sleeps until the next one, also beside children with the mappings."""
    assert vm.run(IDLE).checked().stdout == "ready\n" + "asleep\nlaunched\n" * 2


@alone
def test_the_module_goes_and_comes_back(vm) -> None:
    """Unloading is refused while a file is open, and leaves no page behind (the kernel would warn)."""
    script = (
        HOLD
        + """hold hold.py; rmmod nvsim 2> /dev/null || echo busy; kill -9 $H; wait
	for n in 1 2 3; do rmmod nvsim && load-driver; done; nvidia-smi -L"""
    )
    shown = vm.run(script).checked().stdout

    assert shown.startswith("busy\n")
    assert "GPU 0: Tesla T4" in shown


@alone
@pytest.mark.parametrize(
    ("parameters", "want"),
    [
        pytest.param("branch=440", "branch=440 is not played", id="an unknown branch"),
        pytest.param("cards=T5", "cards=T5 is not played", id="an unknown card"),
    ],
)
def test_parameters_that_cannot_be_played_are_refused(vm, parameters, want) -> None:
    """insmod fails and the log says why."""
    shown = vm.run(
        f"rmmod nvsim; insmod /opt/bench/modules/nvsim.ko {parameters} || echo refused; dmesg | tail -2; load-driver"
    ).stdout

    assert "refused" in shown
    assert want in shown
