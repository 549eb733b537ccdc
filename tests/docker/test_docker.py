# SPDX-License-Identifier: Apache-2.0
"""The documentation's containers in a real Docker, with NVIDIA's own programs, on the module and the simulated driver."""

import re

import pytest

from tests.docker.host import attempt, output
from tests.vm.bench import Choice
from tests.vm.machine import Machine

T4 = Choice("535", "T4", total_mib="15109")
on_t4 = pytest.mark.parametrize("vm", [T4], indirect=True, ids=["535"], scope="module")


@on_t4
def test_two_containers_have_their_slices_and_nothing_else(vm: Machine) -> None:
    text = output(
        vm,
        """
run one 6 15; run two 8 15
memory_of one; memory_of two
docker exec one ls /dev | grep '^nvidia[^-]' | tr '\\n' ' '; echo
one=$(id_of one)
for folder in /proc/cgpu_km /proc/cgpu_km/0 /proc/cgpu_km/0/$one; do
	ls $folder | sed "s/$one/ONE/; s/$(id_of two)/TWO/" | LC_ALL=C sort | tr '\\n' ' '; echo
done
setpriv --reuid 65534 --clear-groups cgpu-smi | tail -n 3 | sort
docker rm -f one two > /dev/null; ended
cat /proc/cgpu_km/inst_ctl | wc -l; ls /run/cgpu; mount | grep cgpufs || echo unmounted
""",
    )
    lines = text.splitlines()
    assert lines[:3] == ["0MiB /  6043MiB", "0MiB /  8058MiB", "nvidia0 nvidiactl "]
    assert lines[3:6] == [
        "0 default_memsize inst_ctl upgrade version ",
        "ONE TWO free_weight major max_inst policy prio_ratio ",
        "highprio id meminfo memsize weight ",
    ]
    assert sorted(re.findall(r"0/(\d+) +\|$", text, re.MULTILINE)) == ["6043", "8058"]
    assert lines[-3:] == ["0", "cards.json", "unmounted"]


@on_t4
def test_no_way_round_a_slice(vm: Machine) -> None:
    """From inside: genuine nodes, no variables, other roots, name spaces and containers, a preloaded library, and others' nodes given by the host."""
    text = output(
        vm,
        """
run two 8 15
theirs=/run/cgpu/$(id_of two)/nvidia0
cp /lib/x86_64-linux-gnu/libutil.so.1 /tmp/preloaded.so
run one 6 15 --cap-add SYS_ADMIN --device /dev/nvidia0:/dev/genuine --device $theirs:/dev/theirs \\
	-v $theirs:/dev/bound -v /tmp/preloaded.so:/preloaded.so
see() { docker exec "$@" 2>&1 | grep -o '[0-9]*MiB / *[0-9]*MiB'; }
see one chroot / env -i nvidia-smi
see -e LD_PRELOAD=/preloaded.so -e ALIYUN_COM_GPU_MEM_CONTAINER=15 -e CGPU_DISABLE=1 -e NVIDIA_VISIBLE_DEVICES=all one nvidia-smi
see one unshare -m -p -f nvidia-smi
docker exec -i one sh -c 'mkdir -p /tmp/nested/root; cd /tmp/nested; mount --rbind / root; cat > config.json
	crun --cgroup-manager=disabled --root /tmp/crun run --no-new-keyring --no-pivot nested' 2>&1 <<- 'END' | sed 's/^cat: .*: /cat: /' | grep -o -e '^cat.*' -e '[0-9]*MiB / *[0-9]*MiB'
		{"ociVersion": "1.0.0", "root": {"path": "root"}, "mounts": [],
		"process": {"cwd": "/", "user": {"uid": 0, "gid": 0}, "env": ["PATH=/bin:/usr/bin", "NVIDIA_VISIBLE_DEVICES=all"],
		"args": ["sh", "-c", "cat /dev/nested; nvidia-smi"]},
		"linux": {"namespaces": [{"type": "pid"}, {"type": "mount"}],
		"devices": [{"path": "/dev/nested", "type": "c", "major": 195, "minor": 0}]}}
	END
see -u 65534 one nvidia-smi
docker exec -i one sh -c '
	for node in 0 255; do mknod /tmp/n$node c 195 $node; done
	for node in /dev/genuine /dev/theirs; do [ -e $node ] || echo $node is not there; done
	for node in /tmp/n0 /tmp/n255 /dev/bound; do cat $node; done' 2>&1 | sed 's/^[a-z]*: //'
""",
    )
    assert text.splitlines() == [
        *["0MiB /  6043MiB"] * 3, "cat: Operation not permitted", *["0MiB /  6043MiB"] * 2,
        "/dev/genuine is not there", "/dev/theirs is not there",
        *[f"{node}: Operation not permitted" for node in ("/tmp/n0", "/tmp/n255", "/dev/bound")],
    ]  # fmt: skip


@on_t4
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        pytest.param("-e ALIYUN_COM_GPU_MEM_CONTAINER=six -e ALIYUN_COM_GPU_MEM_DEV=15", "ALIYUN_COM_GPU_MEM_CONTAINER=six: 'six' is no whole number of GiB", id="letters"),
        pytest.param("-e ALIYUN_COM_GPU_MEM_CONTAINER=6 -e ALIYUN_COM_GPU_MEM_DEV=15 --privileged", "ALIYUN_COM_GPU_MEM_CONTAINER=6: a privileged container can open every device", id="privileged"),
        pytest.param("-e ALIYUN_COM_GPU_MEM_CONTAINER=16 -e ALIYUN_COM_GPU_MEM_DEV=15", "ALIYUN_COM_GPU_MEM_CONTAINER=16 is more than ALIYUN_COM_GPU_MEM_DEV=15", id="more than the card"),
    ],
)  # fmt: skip
def test_a_bad_value_is_one_sentence_of_docker_run(vm: Machine, words: str, reason: str) -> None:
    result = attempt(
        vm,
        f"docker run --rm --gpus all --network none {words} busybox true; code=$?; cat /proc/cgpu_km/inst_ctl; (exit $code)",
    )

    assert result.code != 0
    assert f"cgpu: {reason}" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr
    assert result.stdout == ""


@on_t4
def test_without_cgpu_a_container_has_the_whole_card(vm: Machine) -> None:
    text = output(
        vm,
        """
docker run --rm --gpus all --network none -e ALIYUN_COM_GPU_MEM_CONTAINER=0 busybox nvidia-smi | grep -o '[0-9]*MiB / *[0-9]*MiB'
docker run --rm --network none busybox ls /dev | grep nvidia || echo none
cat /proc/cgpu_km/inst_ctl
""",
    )
    assert text.splitlines() == ["0MiB / 15109MiB", "none"]


@on_t4
def test_restarts_updates_and_kills_keep_the_books(vm: Machine) -> None:
    text = output(
        vm,
        """
run one 6 15 --restart always --runtime=nvidia
docker update --memory 300m --memory-swap 300m one > /dev/null; memory_of one
kill -9 $(docker inspect --format '{{.State.Pid}}' one); until memory_of one 2> /dev/null; do sleep 0.2; done
docker kill one > /dev/null; docker wait one > /dev/null; ended; cat /proc/cgpu_km/inst_ctl | wc -l
docker start one > /dev/null; memory_of one
run two 10 15 2>&1 | grep -o 'ALIYUN.*15109 MiB'
for number in 1 2 3; do run n$number 1 15 & done; wait
docker kill n1 > /dev/null; docker rm -f n2 > /dev/null
cut -d ' ' -f 1 /proc/cgpu_km/inst_ctl | grep -c "$(id_of n3)"
end_all; ended; cat /proc/cgpu_km/inst_ctl | wc -l
dmesg | grep 'WARNING\\|BUG\\|Oops' || echo clean
""",
    )
    seen = "0MiB /  6043MiB"
    refused = "ALIYUN_COM_GPU_MEM_CONTAINER=10 asks for 10072 MiB of GPU 0, whose 1 instances leave 9066 of 15109 MiB"
    assert text.splitlines() == [seen, seen, "0", seen, refused, "1", "0", "clean"]


@on_t4
def test_a_wrapper_killed_in_the_middle_of_a_creation_leaves_nothing_for_long(vm: Machine) -> None:
    text = output(
        vm,
        """
printf '#!/bin/sh\\ncase "$*" in *create*) touch /tmp/reached; exec sleep 12345;; *) exec runc "$@";; esac\\n' > /tmp/slow; chmod 755 /tmp/slow
echo 'runtime = "/tmp/slow"' > /etc/cgpu/config.toml
run one 6 15 2> /tmp/said & docker=$!
until [ -e /tmp/reached ]; do sleep 0.1; done
cat /proc/cgpu_km/inst_ctl | wc -l
kill -9 $(sed -n 's/.*"maker": \\([0-9]*\\).*/\\1/p' /run/cgpu/*[0-9a-f].json)
wait $docker
rm /etc/cgpu/config.toml
run two 12 15; grep -cv "^$(id_of two) " /proc/cgpu_km/inst_ctl || :
""",
    )
    assert text.splitlines() == ["1", "0"], text
