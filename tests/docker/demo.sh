#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The documentation's two containers, in the virtual machine: what `make demo-docker` runs there.
set -euo pipefail
. /opt/project/tests/docker/guest.sh
step() { printf '\n== %s\n' "$*"; }
show() { printf '# %s\n' "$*"; "$@"; }
fail() { echo "demo: $*" >&2; exit 1; }
sees() { memory_of "$1" | grep -q " $2MiB$" || fail "$1 does not see $2 MiB"; }

step "install cgpu for Docker"
show install_cgpu
show start-docker
# emulated processors hand over slowly: longer slices than a GPU's 1.5 ms
show cgpu module unload
show load-cgpu slice_ms=20

step "two containers on one Tesla T4: 6 and 8 of 15 GiB"
for row in "gpu_test1 6" "gpu_test2 8"; do
	set -- $row
	show docker run -d -t --gpus all --shm-size=1g --ulimit memlock=-1 --ulimit stack=67108864 --name "$1" -v /mnt:/mnt \
		-e ALIYUN_COM_GPU_MEM_CONTAINER="$2" -e ALIYUN_COM_GPU_MEM_DEV=15 $HOST busybox sleep 100000
done
show docker exec -i gpu_test1 nvidia-smi
sees gpu_test1 6043
show docker exec -i gpu_test2 nvidia-smi
sees gpu_test2 8058

step "a CUDA program in gpu_test1 takes all that it can get"
show docker exec -i gpu_test1 python3 /opt/project/tests/docker/programs/fill.py
memory_of gpu_test2 | grep -q '^0MiB' || fail "gpu_test2 was touched"

step "what the kernel module shows"
one=$(id_of gpu_test1) two=$(id_of gpu_test2)
show ls /proc/cgpu_km /proc/cgpu_km/0 "/proc/cgpu_km/0/$one"

step "weights 1 and 2, both containers at work"
show cgpu-smi set "$two" --weight 2
echo "# echo 2 > /proc/cgpu_km/0/policy"
echo 2 > /proc/cgpu_km/0/policy
for name in gpu_test1 gpu_test2; do
	docker exec -d "$name" python3 /opt/project/tests/docker/programs/work.py
done
python3 /opt/project/tests/docker/programs/wait_busy.py 2
show cgpu-smi --watch=5 > /tmp/watched &
watching=$!
python3 /opt/project/tests/docker/programs/ratio.py "$one" "$two" 10 || fail "the weights do not show"
kill $watching
tail -n 7 /tmp/watched

step "the containers go, and their shares with them"
show docker rm -f gpu_test1 gpu_test2
[ ! -s /proc/cgpu_km/inst_ctl ] || fail "an instance was left"
show cgpu-smi
