# SPDX-License-Identifier: Apache-2.0
"""config.json before and after."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgpu.runtime.spec import File, Node, has_driver_files, isolated, may_open_anything, whole
from tests.runtime.documents import CLIENTS_HOOK, DENY_ALL, DOCKER_RULES, HOOK, MAJORS, NULL, document, node, rule

NODES = [
    Node("/run/cgpu/0123456789ab/nvidia0", "/dev/nvidia0", 240, 3),
    Node("/run/cgpu/0123456789ab/nvidiactl", "/dev/nvidiactl", 241, 6),
]
FILES = [File("/opt/libcuda.so.1", "/usr/lib/x86_64-linux-gnu/libcuda.so.1")]
OTHER_HOOK = {"path": "/usr/bin/other"}
GIVEN = document(
    {"NVIDIA_VISIBLE_DEVICES": "all"},
    devices=[NULL, node("/dev/nvidia0", 195, 0), node("/dev/nvidiactl", 195, 255), node("/dev/nvidia-uvm", 510, 0)],
    rules=[rule(195, 0), {"allow": True, "type": "c", "major": 195, "access": "rw"}, rule(10, 229)],
    hooks={"prestart": [HOOK, OTHER_HOOK], "poststop": [OTHER_HOOK]},
)


def rules(spec: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = spec["linux"]["resources"]["devices"]
    return found


def test_an_isolated_container_has_its_instances_nodes_and_nothing_of_nvidia() -> None:
    given = copy.deepcopy(GIVEN)
    made = isolated(given, NODES, FILES, MAJORS)

    assert given == GIVEN
    assert made["linux"]["devices"] == [NULL]
    assert rules(made) == [*DOCKER_RULES, rule(10, 229), rule(240, 3, "rw"), rule(241, 6, "rw")]
    assert made["hooks"] == {"prestart": [OTHER_HOOK], "poststop": [OTHER_HOOK]}
    assert [mount["destination"] for mount in made["mounts"]] == [
        "/dev", "/dev/nvidia0", "/dev/nvidiactl", "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
    ]  # fmt: skip


@pytest.mark.parametrize("stage", ["prestart", "createRuntime", "createContainer"])
@pytest.mark.parametrize("hook", [HOOK, CLIENTS_HOOK])
def test_no_hook_stays_that_brings_real_nodes_back(stage: str, hook: dict[str, Any]) -> None:
    made = isolated(document(hooks={stage: [hook, OTHER_HOOK], "poststop": None}), NODES, [], MAJORS)

    assert made["hooks"] == {stage: [OTHER_HOOK], "poststop": []}


def test_nodes_are_bind_mounts_that_can_be_opened_and_files_cannot_be_written() -> None:
    mounts = isolated(document(), NODES, FILES, MAJORS)["mounts"]

    assert mounts[1]["type"] == "bind"
    assert mounts[1]["source"] == "/run/cgpu/0123456789ab/nvidia0"
    assert {"nodev", "ro"} & set(mounts[1]["options"]) == set()
    assert {"ro", "nodev"} <= set(mounts[-1]["options"])


def test_a_mount_of_the_users_over_a_node_gives_way() -> None:
    mine = {"destination": "/dev/nvidia0", "source": "/dev/nvidia0", "type": "bind"}
    made = isolated(document(mounts=[mine]), NODES, [], MAJORS)

    assert [mount["source"] for mount in made["mounts"] if mount["destination"] == "/dev/nvidia0"] == [NODES[0].source]


def test_a_container_without_cgpu_gets_the_real_nodes() -> None:
    made = whole(document(hooks={"prestart": [HOOK]}), [Node("/dev/nvidia0", "/dev/nvidia0", 195, 0)], FILES)

    assert [(entry["path"], entry["major"], entry["minor"]) for entry in made["linux"]["devices"]] == [
        ("/dev/nvidia0", 195, 0)
    ]
    assert rules(made) == [*DOCKER_RULES, rule(195, 0, "rw")]
    assert made["hooks"]["prestart"] == []
    assert made["mounts"][-1]["destination"] == FILES[0].path


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param([], False, id="Docker's own rules, which let nodes be made"),
        pytest.param([{"allow": True, "access": "rwm"}], True, id="--privileged"),
        pytest.param([{"allow": True, "type": "a", "major": -1, "minor": -1, "access": "rwm"}], True, id="type a"),
        pytest.param([{"allow": True, "type": "c", "access": "rw"}], True, id="every character device"),
        pytest.param([{"allow": True}], True, id="nothing said is everything"),
        pytest.param([{"allow": True, "type": "b", "access": "rwm"}], False, id="every block device"),
        pytest.param([{"allow": True, "type": "c", "major": 195, "access": "rwm"}], False, id="one major"),
    ],
)
def test_an_open_device_cgroup(more: list[dict[str, Any]], expected: bool) -> None:
    assert may_open_anything(document(rules=more)) == expected


@pytest.mark.parametrize("empty", [{}, {"linux": None}, {"linux": {"resources": None}, "mounts": None, "hooks": None}])
def test_a_document_without_the_parts_gets_them(empty: dict[str, Any]) -> None:
    assert rules(isolated(empty, NODES, [], MAJORS)) == [DENY_ALL, rule(240, 3, "rw"), rule(241, 6, "rw")]


def test_whoever_has_mounted_the_libraries_is_seen() -> None:
    mounted = document(mounts=[{"destination": "/usr/lib64/libcuda.so.535.261.03"}])

    assert (has_driver_files(mounted), has_driver_files(document())) == (True, False)


RULE = st.fixed_dictionaries(
    {"allow": st.booleans()},
    optional={
        "type": st.sampled_from(["a", "b", "c", "u", "p", ""]),
        "major": st.sampled_from([-1, 1, 195, 510, 240]),
        "minor": st.sampled_from([-1, 0, 255]),
        "access": st.sampled_from(["r", "w", "m", "rw", "rwm", ""]),
    },
)


@given(st.lists(RULE, max_size=6))
def test_whatever_the_rules_no_nvidia_major_stays_open(given_rules: list[dict[str, Any]]) -> None:
    spec = document()
    spec["linux"]["resources"]["devices"] = given_rules
    made = isolated(spec, NODES, [], MAJORS)

    if not may_open_anything(spec):  # what is open is refused before
        readable = [each for each in rules(made) if each["allow"] and (each.get("access") or "rwm").strip("m")]
        character = [each for each in readable if each.get("type") not in ("b", "p")]
        assert [each for each in character if each.get("major", -1) in {-1, *MAJORS}] == []
