# SPDX-License-Identifier: Apache-2.0
"""What is written for the components, and what is done to the network, as text."""

import json
import tomllib
from pathlib import Path

import pytest
import yaml

from cgpu.cards import CardRow
from cgpu.core.annotations import decode_devices
from cgpu.sandbox import configs
from cgpu.sandbox.light import node_object
from cgpu.sandbox.network import batches
from cgpu.sandbox.nodes import NodeHome, mount_script
from cgpu.sandbox.record import Record
from cgpu.sandbox.spec import NodeKind, NodeSpec
from cgpu.sandbox.units import Place

RECORD = Record(slot=3, state="/s", nodes=("node-1", "node-2"), options="{}", kubernetes="1.37.2")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        pytest.param(configs.kubelet_config(RECORD, "node-1"), "KubeletConfiguration", id="kubelet"),
        pytest.param(configs.kube_proxy_config("node-1"), "KubeProxyConfiguration", id="kube-proxy"),
        pytest.param(configs.scheduler_config("/k"), "KubeSchedulerConfiguration", id="kube-scheduler"),
    ],
)
def test_component_configurations_are_yaml_of_their_kind(text: str, kind: str) -> None:
    assert yaml.safe_load(text)["kind"] == kind


def test_pods_of_a_node_are_counted_below_the_cgroup_of_the_sandbox() -> None:
    assert yaml.safe_load(configs.kubelet_config(RECORD, "node-2"))["cgroupRoot"] == "/cgpu-sandbox-3/node-2"


def test_containerd_takes_the_pause_image_that_the_sandbox_makes() -> None:
    config = tomllib.loads(configs.containerd_config())

    images = config["plugins"]["io.containerd.cri.v1.images"]
    assert images["pinned_images"]["sandbox"] == "localhost/pause:1"


def test_pods_of_a_node_have_its_subnet() -> None:
    network = json.loads(configs.cni_config(RECORD, "node-2"))

    assert network["plugins"][0]["ipam"]["ranges"] == [[{"subnet": "10.88.1.0/24"}]]


def test_the_api_server_is_known_by_the_address_it_listens_on() -> None:
    flags = configs.kube_apiserver("kube-apiserver", RECORD, "/pki")

    assert configs.api_url(RECORD) == "https://10.77.3.2:6443"
    assert "--advertise-address=10.77.3.2" in flags


def test_every_name_on_the_machine_belongs_to_the_slot() -> None:
    made = [line.split() for batch in batches(RECORD) if not batch.namespace for line in batch.lines]

    assert [words[2] for words in made if words[:2] == ["netns", "add"]] == ["cgpu3", "cgpu3-node-1", "cgpu3-node-2"]
    assert [words[2] for words in made if words[:2] == ["link", "add"]] == ["cgpu3h"]


def test_a_node_hides_every_folder_that_daemons_reach_by_host_path() -> None:
    lines = mount_script(NodeHome(Path("/s/nodes/a b"))).splitlines()

    hidden = {line.split()[-1] for line in lines if line.startswith("mount") and "rshared" not in line}
    assert {"/run", "/etc", "/var", "/opt", "/var/lib/kubelet", "/var/lib/containerd"} <= hidden
    assert "mount --bind '/s/nodes/a b' /mnt/.node" in lines
    assert lines[-1] == "mount --make-rshared /"


def test_a_program_joins_its_cgroups_before_it_starts() -> None:
    place = Place("/run/netns/x", "/pins/node-1", ("/sys/fs/cgroup/a/cgroup.procs",))

    assert place.command(["true", "a b"]) == [
        "sh",
        "-c",
        'echo $$ > /sys/fs/cgroup/a/cgroup.procs || exit 1; exec "$@"',
        "sh",
        "nsenter",
        "--net=/run/netns/x",
        "--mount=/pins/node-1",
        "true",
        "a b",
    ]


def test_a_light_node_offers_what_its_cards_add_up_to() -> None:
    cards = (CardRow("A10", 23028, count=2), CardRow("T4", 15109, healthy=False))
    node = node_object(NodeSpec("l-1", NodeKind.KWOK, {"zone": "x"}, cards))

    assert node["metadata"]["labels"]["zone"] == "x"
    assert node["metadata"]["annotations"]["kwok.x-k8s.io/node"] == "fake"
    assert [card.units for card in decode_devices(node["metadata"]["annotations"]["cgpu.aliyun.com/devices"])] == [
        22,
        22,
        14,
    ]
    assert node["status"]["capacity"]["aliyun.com/gpu-mem"] == "58"
    assert node["status"]["allocatable"]["aliyun.com/gpu-mem"] == "44"
    assert node["status"]["allocatable"]["aliyun.com/gpu-count"] == "2"


def test_a_light_node_without_cards_offers_no_memory() -> None:
    node = node_object(NodeSpec("l-1", NodeKind.KWOK))

    assert "aliyun.com/gpu-mem" not in node["status"]["capacity"]
    assert "cgpu.aliyun.com/devices" not in node["metadata"]["annotations"]
