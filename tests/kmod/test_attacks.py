# SPDX-License-Identifier: Apache-2.0
"""What a container can do that no library does: forged arguments, foreign handles, tricks with mappings, plain writes.

Every attack has its control: the same deed succeeds straight on the driver, in an instance that is allowed to do it, or
against the module with that defence taken out (weakened.py).
"""

import re
from pathlib import Path
from typing import Final

import pytest

from tests.kmod.containers import MIB, output
from tests.kmod.weakened import weakened
from tests.vm.bench import Choice
from tests.vm.machine import Machine
from tests.vm.programs import compile_c

PROGRAMS: Final = Path(__file__).parent / "programs"
LIMIT: Final = 1000
SECONDS: Final = 3
LONG_ENOUGH: Final = 40
"""Seconds for a race that must be won: it ends when it is, which may take a busy host long."""
RACES: Final = ("heap-size", "class", "size", "pointer", "injected-size", "injected-status", "injected-success")
"""races.c tells what each changes."""
BEATEN_BY_WEAKNESS: Final = ("heap-size", "class", "size", "pointer", "injected-size")
RACE: Final = f"share aaa 0:{LIMIT}; inside aaa /tmp/races {{}} {{}} {LIMIT} /dev /run/cgpu/aaa"
FORGE: Final = f"share aaa 0:{LIMIT}; share bbb 0:{LIMIT}; /tmp/forge {SECONDS} /run/cgpu/aaa /run/cgpu/bbb"
"""A neighbour's client, made one's own by forged answers; forge.c prints how far that goes."""
AFTER: Final = "cut -d' ' -f5 /proc/cgpu_km/inst_ctl; awk '/^gpu 0/ { print $7, $8 }' /proc/nvsim"
machine = pytest.mark.parametrize("vm", [pytest.param(Choice("535"), id="535")], indirect=True, scope="module")


def put(vm: Machine, name: str) -> None:
    """Brings a program into the machine, below /tmp."""
    vm.put(f"/tmp/{name}", compile_c(name, [PROGRAMS / f"{name}.c"]))


def most_mib(shown: str) -> int:
    """The most MiB that the driver gave while a race ran."""
    found = re.search(r"tries=(\d+) landed=\d+ most=(\d+)", shown)
    assert found, shown
    assert int(found[1]) > 10 or int(found[2]) > LIMIT, shown
    return int(found[2])


@machine
@pytest.mark.parametrize("race", [pytest.param(name, id=name) for name in (*RACES, "export-file")])
def test_arguments_that_change_meanwhile_break_no_limit(vm: Machine, race: str) -> None:
    """The driver never gives more than the limit; nothing stays charged, and nothing stays with the driver."""
    put(vm, "races")
    shown = output(vm, f"{RACE.format(race, SECONDS)}; {AFTER}")

    assert most_mib(shown) <= LIMIT
    assert shown.splitlines()[-2:] == ["used=0", "used 0"]


@machine
def test_without_the_defences_the_same_races_break_the_limit(vm: Machine) -> None:
    """The control: each of them gets more than the limit out of a module that reads twice and lets anybody write."""
    put(vm, "races")
    files = weakened("6.1")
    for file in files:
        vm.put(f"/tmp/weak/{file.name}", file)
    load = "; ".join(f"insmod /tmp/weak/{file.name}" for file in files)
    put(vm, "forge")
    races = "; ".join(f"{RACE.format(name, LONG_ENOUGH)}; unshare_all" for name in BEATEN_BY_WEAKNESS)
    shown = output(vm, f"unload; {load}; {races}; {FORGE}; unshare_all; unload; load-cgpu").splitlines()

    assert {line.split()[0]: most_mib(line) > LIMIT for line in shown[:-1]} == dict.fromkeys(BEATEN_BY_WEAKNESS, True)
    assert shown[-1] == "memory"


@machine
def test_a_forged_answer_makes_no_client_ones_own(vm: Machine) -> None:
    """Which clients are the container's is known from what nobody can forge: a neighbour's stays out of reach."""
    put(vm, "forge")

    assert output(vm, f"{FORGE}; {AFTER}").splitlines() == ["nothing", "used=0", "used=0", "used 0"]


DRIVER_ALLOWS: Final = {"dup", "import", "register", "place", "take-space", "take-channel"}
REFUSED: Final = {"free", "alloc", "dup-into", "map", "export"} | DRIVER_ALLOWS


@machine
@pytest.mark.parametrize(
    ("folders", "working"),
    [
        pytest.param("/run/cgpu/aaa /run/cgpu/bbb", set(), id="across containers nothing works"),
        pytest.param("/dev /dev", DRIVER_ALLOWS, id="the driver alone would allow it"),
    ],
)
def test_handles_of_another_container_are_of_no_use(vm: Machine, folders: str, working: set[str]) -> None:
    """Its true client and handles, given to nodes of one's own: memory is neither taken, shared, mapped nor freed."""
    put(vm, "strangers")
    shown = output(vm, f"share aaa 0:1000; share bbb 0:1000; /tmp/strangers {folders}; {AFTER}")
    deeds = dict(line.split() for line in shown.splitlines()[: len(REFUSED)])

    assert set(deeds) == REFUSED
    assert {deed for deed, what in deeds.items() if what == "works"} == working
    assert shown.splitlines()[len(REFUSED) :] == ["used=0", "used=0", "used 0"]


KEEPING: Final = {
    "announce",
    "announce-in-vain",
    "announce-less",
    "map-again",
    "map-over",
    "free-mapped",
    "free-inside",
    "move",
    "map-and-free",
    "free-around",
    "map-on-no-gpu",
}
"""Ways of keep.c to unified memory that go far straight on the driver, which counts for nobody."""
PROBING: Final = {"tear", "inherit", "end-elsewhere"}
"""Ways that end what they began: what is asked is whether a byte counts twice, or not at all."""


@machine
def test_no_memory_is_kept_beyond_what_is_charged(vm: Machine) -> None:
    """Whatever is said about a range, before or after the driver's answer, its memory counts for as long as it is there."""
    put(vm, "keep")
    shown = output(vm, "share aaa 0:1000; /tmp/keep /run/cgpu/aaa aaa; /tmp/keep /dev")
    rows = [line.split() for line in shown.splitlines()]
    half = len(rows) // 2

    assert {name: (over, left) for name, over, left in rows[:half]} == dict.fromkeys(KEEPING | PROBING, ("0", "0"))
    assert {name for name, over, _ in rows[half:] if int(over) >= 100} == KEEPING


RINGING: Final = ("plain", "fork", "mremap", "munmap-part", "mprotect", "read", "unnamed", "dup", "another-number")
NEVER: Final = ("mremap-double", "mprotect-exec", "proc-mem", "process_vm_writev", "after-memory")
POOR: Final = """echo "create rich gpu=0 mem=1048576000 weight=20" > /proc/cgpu_km/inst_ctl
mkdir -p /run/cgpu/rich; mount -t cgpufs -o id=rich cgpu /run/cgpu/rich; share poor 0:1000; """


@machine
@pytest.mark.parametrize(
    ("instance", "patience_ms", "fate"),
    [
        pytest.param("poor", 200, "waits", id="an instance without a slice never rings"),
        pytest.param("rich", 20000, "rang", id="one whose turn it is does"),
    ],
)
def test_no_trick_with_a_doorbell_gets_past_the_gate(vm: Machine, instance: str, patience_ms: int, fate: str) -> None:
    """Copies in a child, moved, torn and protected mappings, other numbers and handles all wait for the turn."""
    put(vm, "doorbell")
    shown = output(vm, f"{POOR} inside {instance} /tmp/doorbell all {patience_ms}")

    assert dict(line.split() for line in shown.splitlines()) == {
        **dict.fromkeys(RINGING, fate),
        **dict.fromkeys(NEVER, "refused"),
    }


@machine
def test_a_waiting_store_does_not_keep_the_scheduler_busy(vm: Machine) -> None:
    """A system call that stores to a closed doorbell, with a signal pending, costs its scheduler nothing."""
    put(vm, "doorbell")
    shown = output(
        vm,
        f"""{POOR} ticks() {{ cat /proc/$(pgrep -x cgpu/0)/stat | cut -d' ' -f15; }}
before=$(ticks); inside poor /tmp/doorbell read 1000; echo $(($(ticks) - before))""",
    )

    assert shown.startswith("read waits\n")
    assert int(shown.split()[-1]) < 50  # hundredths of a second in three seconds


@machine
@pytest.mark.parametrize(
    ("privilege", "made"),
    [
        pytest.param(
            "setpriv --bounding-set -sys_admin --inh-caps -sys_admin", False, id="root in a container may not"
        ),
        pytest.param("", True, id="root of the host may"),
    ],
)
def test_settings_are_not_for_containers(vm: Machine, privilege: str, made: bool) -> None:
    """Containers see /proc/cgpu_km and their root owns nothing in it: no instance, no size, no policy."""
    shown = output(
        vm,
        f"""share aaa 0:1000; cd /proc/cgpu_km; policy=$(cat 0/policy); dmesg -C
for try in "create evil gpu=0 mem={MIB}:inst_ctl" "{2000 * MIB}:0/aaa/memsize" 5:0/policy; do
	{privilege} sh -c "echo '${{try%:*}}' > ${{try#*:}}" 2>&1
done
ls -d 0/evil 2> /dev/null; cat 0/aaa/memsize 0/policy; dmesg; echo $policy > 0/policy""",
    )

    assert ("0/evil" in shown, str(2000 * MIB) in shown.split(), "CAP_SYS_ADMIN" in shown) == (made, made, not made)


@machine
def test_a_container_sees_its_own_instance_and_no_other(vm: Machine) -> None:
    """Figures of neighbours are for the host; what is a container's own shows while one of its processes uses it."""
    look = (
        """cd /proc/cgpu_km; cut -d' ' -f1 inst_ctl; cat version; for id in aaa bbb; do cat 0/$id/memsize 2>&1; done"""
    )
    vm.put("/tmp/look", look.encode())
    shown = output(
        vm,
        """share aaa 0:1000; share bbb 0:2000; echo host: $(sh /tmp/look)
inside aaa setpriv --bounding-set -sys_admin --inh-caps -sys_admin sh -c '
	echo before: $(sh /tmp/look); exec 3<> /dev/nvidiactl; echo own: $(sh /tmp/look)'""",
    )
    denied, mine, other = "cat: 0/{}/memsize: Permission denied", str(1000 * MIB), str(2000 * MIB)

    assert shown.splitlines() == [
        f"host: aaa bbb 1.0.0 {mine} {other}",
        f"before: 1.0.0 {denied.format('aaa')} {denied.format('bbb')}",
        f"own: aaa 1.0.0 {mine} {denied.format('bbb')}",
    ]


@machine
def test_a_node_that_a_container_makes_opens_nothing(vm: Machine) -> None:
    """The numbers of the virtual devices have no driver behind them; the genuine ones, which the cgroup forbids, do."""
    shown = output(
        vm,
        """share aaa 0:1000; set -- $(grep -o '[a-z]*=[0-9]*:[0-9]*' /proc/cgpu_km/inst_ctl)
for device in "$@" genuine=195:255; do
	mknod /tmp/node c $(echo ${device#*=} | tr : ' '); inside aaa sh -c "exec 3<> /tmp/node && echo ${device%=*} opens" 2>&1
	rm /tmp/node
done; true""",
    )

    assert shown.count("No such device or address") == 3
    assert [line for line in shown.splitlines() if line.endswith("opens")] == ["genuine opens"]


@machine
def test_taking_away_the_arguments_page_ends_the_instance_alone(vm: Machine) -> None:
    """The process dies, its instance gets no more calls and says why; a neighbour works on, and the books are empty."""
    put(vm, "unmap")
    put(vm, "fill")
    shown = output(
        vm,
        f"""share aaa 0:1000; share bbb 0:1000; dmesg -C; hold inside bbb /tmp/fill
inside aaa sh -c '/tmp/unmap 20; echo code $?'; inside aaa /tmp/fill < /dev/null 2>&1 | head -1
inside bbb nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits; dmesg; let_go; {AFTER}""",
    )

    assert "code 137" in shown
    assert "Input/output error" in shown
    assert "aaa: argument page unmapped during a call" in shown
    assert "\n1000\n" in shown
    assert "\nused=0\nused=0\nused 0\n" in shown
