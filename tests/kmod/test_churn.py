# SPDX-License-Identifier: Apache-2.0
"""A minute in which everything changes while CUDA runs, and random calls; tests/soak has the long ones."""

import pytest

from tests.kmod.churning import LEFT, REACHED, churn, fuzz, stall_beyond
from tests.kmod.containers import output
from tests.vm.bench import Choice
from tests.vm.machine import Machine

machine = pytest.mark.parametrize("vm", [pytest.param(Choice("535"), id="535")], indirect=True, scope="module")
STEPS = {"create", "mount", "kill", "umount", "destroy", "resize", "policy", "weight", "read", "kill computing cuda"}


@machine
def test_churn_leaves_nothing_and_never_stalls(vm: Machine) -> None:
    """Eight threads for a minute: no step stalls for a second of a machine that runs, all books are zero, the kernel reports nothing."""
    facts, left = churn(vm, 60)

    assert facts["failures"] == []
    assert set(facts["done"]) >= STEPS
    # a step waits for the machine several times: for who is killed, for who has a lock, and to be run again
    assert facts["stall_s"] < 1 + 3 * facts["stood_still_s"], facts
    assert left == LEFT


@pytest.mark.parametrize(
    ("steps", "beyond"),
    [
        pytest.param(
            {"kill": 40.0, "read": 2.0}, -3.0, id="a step that takes long without the module is its own affair"
        ),
        pytest.param({"kill": 9.0, "read": 9.0}, 4.0, id="one that does not is a stall"),
        pytest.param({"kill": 9.0, "destroy": 9.0}, 6.0, id="so is one that only the module has"),
    ],
)
def test_a_stall_is_what_the_machine_alone_does_not_take(steps: dict[str, float], beyond: float) -> None:
    assert stall_beyond({"idle_s": steps, "stood_still_s": 3.0}, {"idle_s": {"kill": 41.0, "read": 2.0}}) == beyond


@machine
def test_random_calls_do_no_harm(vm: Machine) -> None:
    """Malformed and half-valid calls and writes from two instances and the host at once; afterwards all books are zero."""
    done = fuzz(vm, 20000)

    assert done.calls == 20000
    assert done.left == LEFT
    assert set(done.met) >= REACHED


@machine
def test_what_a_container_makes_the_module_keep_is_the_containers_memory(vm: Machine) -> None:
    """Ranges that it announces without end, of 64 bytes or more each, fill its own limit of memory and not the host's."""
    script = """share keep 0:500; group=/sys/fs/cgroup/keep; mkdir $group
    inside keep sh -c "echo 0 > $group/cgroup.procs; exec python3 $P/ranges.py 20000 $group"; within 10 rmdir $group"""

    assert int(output(vm, script)) > 20000 * 60
