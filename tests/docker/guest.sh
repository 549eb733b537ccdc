# SPDX-License-Identifier: Apache-2.0
# For scripts in the virtual machine: cgpu installed as the README says, Docker started, containers by one word.
PROGRAMS=/opt/project/tests/nvsim/programs

# install_cgpu: the module is the bench's, loaded already; containers have no network, which costs time under emulation
install_cgpu() {
	mkdir -p /etc/docker
	[ -e /etc/docker/daemon.json ] || echo '{"bridge": "none", "iptables": false}' > /etc/docker/daemon.json
	sh /opt/project/deploy/docker/install.sh --no-module
}

# The image is busybox; the machine's own Python, programs and CUDA come in as folders.
HOST="-v /usr:/usr:ro -v /opt:/opt:ro -e PYTHONPATH=$PROGRAMS:/opt/python:/opt/cuda/site --network none"

# run NAME CONTAINER DEV [OPTION...]: a container that sleeps, with a share
run() {
	name=$1 container=$2 dev=$3
	shift 3
	docker run -d --name "$name" --gpus all $HOST -e ALIYUN_COM_GPU_MEM_CONTAINER="$container" \
		-e ALIYUN_COM_GPU_MEM_DEV="$dev" "$@" busybox sleep 100000 > /dev/null
}

# id_of NAME: the instance of a container
id_of() { docker inspect --format '{{.Id}}' "$1" | cut -c 1-12; }

# memory_of NAME: the line of nvidia-smi with the memory, in a container
memory_of() { docker exec "$1" nvidia-smi | grep -o '[0-9]*MiB / *[0-9]*MiB'; }

# end_all: no container, no instance
end_all() { docker ps -aq | xargs -r docker rm -f > /dev/null; }

# become BRANCH CARDS [MIB]: the host has that driver with those cards from now on, each of MIB; for machines made with `more`
become() {
	end_all
	ended
	rmmod $(awk '/^cgpu_core/ { print $1 }' /proc/modules) cgpu_km nvsim
	space=/opt/nvidia-$1
	[ -d $space ] || space=/opt/nvidia
	find /usr/lib/x86_64-linux-gnu -lname '/opt/nvidia*' -delete
	ln -s $space/lib/*.so* /usr/lib/x86_64-linux-gnu/
	ln -sfn $space/bin/nvidia-smi /usr/bin/nvidia-smi
	ldconfig
	load-driver "branch=$1" "cards=$2" ${3:+"total_mib=$3"}
	rm -f /run/cgpu/cards.json
}
