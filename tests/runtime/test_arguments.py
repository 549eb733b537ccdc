# SPDX-License-Identifier: Apache-2.0
"""Command lines as Docker, Podman and people write them."""

import pytest

from cgpu.runtime.arguments import instance_of, parse

ID = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("line", "command", "container", "bundle"),
    [
        pytest.param(
            f"--root /run/r --log /b/log.json --log-format json create --bundle /b --pid-file /b/p {ID}",
            "create", ID, "/b", id="containerd's shim",
        ),
        pytest.param(f"--root=/run/create --systemd-cgroup create -b /b {ID}", "create", ID, "/b", id="a root named create"),
        pytest.param("--root delete state abc", "state", "abc", ".", id="a root named delete"),
        pytest.param(f"delete --force {ID}", "delete", ID, ".", id="delete"),
        pytest.param(f"create {ID} --bundle=/b", "create", ID, "/b", id="options behind"),
        pytest.param("--version", "", "", ".", id="no command"),
        pytest.param("exec --process /p web", "exec", "/p", ".", id="an option of exec is not ours to know"),
        pytest.param("", "", "", ".", id="nothing"),
    ],
)  # fmt: skip
def test_a_command_line(line: str, command: str, container: str, bundle: str) -> None:
    call = parse(line.split())

    assert (call.command, call.container, call.bundle) == (command, container, bundle)
    assert list(call.words) == line.split()


def test_where_errors_are_told() -> None:
    call = parse(["--log", "/b/log.json", "--log-format", "json", "--root", "/run/r", "create", ID])

    assert (call.log, call.log_format, call.root) == ("/b/log.json", "json", "/run/r")


def test_an_instance_is_named_as_docker_ps_shows_the_container() -> None:
    assert instance_of(ID) == "0123456789ab"


@pytest.mark.parametrize("name", ["web", "0123", "0123456789AB", "a/b", "012345678901x"])
def test_a_free_name_becomes_twelve_hex_digits_of_its_own(name: str) -> None:
    assert len(instance_of(name)) == 12
    assert int(instance_of(name), 16) >= 0
    assert instance_of(name) != instance_of(name + "x")
