# SPDX-License-Identifier: Apache-2.0
import json
from pathlib import Path

import pytest

from cgpu.cdi import BindMount, CdiFolder, DeviceNode, Edits, env_only, real_nodes, spec_of, virtual_nodes
from cgpu.core.errors import UnavailableError

ENV = {"A": "1", "B": ""}


def test_simulated_cards_bring_env_only() -> None:
    assert spec_of("abc", env_only(ENV)) == {
        "cdiVersion": "0.3.0",
        "kind": "aliyun.com/gpu-mem",
        "devices": [{"name": "abc", "containerEdits": {"env": ["A=1", "B="]}}],
    }


def test_mode_share_names_the_real_nodes_that_exist(tmp_path: Path) -> None:
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()

    edits = real_nodes(ENV, [1, 3], tmp_path)

    assert [node.path for node in edits.nodes] == ["/dev/nvidia1", "/dev/nvidia3", "/dev/nvidiactl", "/dev/nvidia-uvm"]


def test_isolated_nodes_are_mounts_with_inert_entries_for_the_rules() -> None:
    libraries = [BindMount("/usr/lib/libcuda.so.1", "/usr/lib/libcuda.so.1", ("ro", "bind"))]
    edits = virtual_nodes(ENV, Path("/run/cgpu/abc"), {"nvidia0": (240, 3), "nvidiactl": (240, 1027)}, libraries)

    container = spec_of("abc", edits)["devices"][0]["containerEdits"]

    assert container["deviceNodes"] == [
        {"path": "/dev/.cgpu/nvidia0", "permissions": "rw", "type": "c", "major": 240, "minor": 3},
        {"path": "/dev/.cgpu/nvidiactl", "permissions": "rw", "type": "c", "major": 240, "minor": 1027},
    ]
    assert [(row["hostPath"], row["containerPath"]) for row in container["mounts"]] == [
        ("/run/cgpu/abc/nvidia0", "/dev/nvidia0"),
        ("/run/cgpu/abc/nvidiactl", "/dev/nvidiactl"),
        ("/usr/lib/libcuda.so.1", "/usr/lib/libcuda.so.1"),
    ]
    assert all("nodev" not in row["options"] for row in container["mounts"])


@pytest.mark.parametrize(
    ("name", "edits", "want"),
    [
        pytest.param("abc", env_only(ENV), "0.3.0", id="env"),
        pytest.param("1bc", env_only(ENV), "0.5.0", id="a name that starts with a digit"),
        pytest.param("abc", Edits(ENV, (DeviceNode("/dev/a", "/dev/b"),)), "0.5.0", id="hostPath of a device node"),
    ],
)
def test_the_lowest_version_that_knows_the_fields(name: str, edits: Edits, want: str) -> None:
    assert spec_of(name, edits)["cdiVersion"] == want


def test_files_are_written_whole_and_removed(tmp_path: Path) -> None:
    folder = CdiFolder(tmp_path / "cdi")
    folder.write("abc", env_only(ENV))
    folder.write("abc", env_only({"A": "2"}))

    [path] = list((tmp_path / "cdi").iterdir())
    assert path.name == "aliyun.com-gpu-mem-abc.json"
    assert json.loads(path.read_text())["devices"][0]["containerEdits"]["env"] == ["A=2"]
    assert folder.names() == {"abc"}
    folder.remove("abc")
    folder.remove("abc")
    assert folder.names() == frozenset()


def test_a_folder_that_cannot_be_written_is_named_and_nothing_stays(tmp_path: Path) -> None:
    (tmp_path / "cdi").write_text("a file")

    with pytest.raises(UnavailableError, match=r"CDI file for abc cannot be written in .*cdi"):
        CdiFolder(tmp_path / "cdi").write("abc", env_only(ENV))
