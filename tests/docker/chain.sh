# SPDX-License-Identifier: Apache-2.0
# For scripts in the virtual machine: other people's runtimes and daemons on the host, each over cgpu-runtime.
# A container's own nvidia-smi says what it sees; it has nothing of the host but what its runtime gave it.
SHARE="-e ALIYUN_COM_GPU_MEM_CONTAINER=6 -e ALIYUN_COM_GPU_MEM_DEV=15"
ALL="-e NVIDIA_VISIBLE_DEVICES=all"
SEES="nvidia-smi --query-gpu=memory.total --format=csv,noheader"
WRAPPER=/usr/local/bin/cgpu-runtime
export PATH=$PATH:/opt/toolkit

# nvidia_runtime MODE: NVIDIA's runtime in that mode as the command nvidia-MODE, configured as its users do, over ours
nvidia_runtime() {
	mkdir -p /etc/nvidia-container-runtime
	cat > /etc/nvidia-container-runtime/$1.toml <<- END
		[nvidia-container-runtime]
		mode = "$1"
		runtimes = ["$WRAPPER", "runc"]
		[nvidia-ctk]
		path = "/opt/toolkit/nvidia-ctk"
	END
	cat > /usr/local/bin/nvidia-$1 <<- END
		#!/bin/sh
		NVIDIA_CTK_CONFIG_FILE_PATH=/etc/nvidia-container-runtime/$1.toml exec /opt/toolkit/nvidia-container-runtime "\$@"
	END
	chmod 755 /usr/local/bin/nvidia-$1
}

# docker_knows NAME...: commands of /usr/local/bin as runtimes of the running Docker, until docker_forgets
docker_knows() {
	cp /etc/docker/daemon.json /tmp/daemon.json
	for name in "$@"; do
		sed -i "s|\"runtimes\": {|&\"$name\": {\"path\": \"/usr/local/bin/$name\"},|" /etc/docker/daemon.json
	done
	kill -HUP "$(cat /var/run/docker.pid)"
	until docker info 2> /dev/null | grep -q "Runtimes:.* $1"; do sleep 0.1; done
}
docker_forgets() { cp /tmp/daemon.json /etc/docker/daemon.json; kill -HUP "$(cat /var/run/docker.pid)"; }

# below RUNTIME COMMAND...: with that runtime below ours
below() {
	echo "runtime = \"$1\"" > /etc/cgpu/config.toml
	shift
	local code=0
	"$@" || code=$?
	rm /etc/cgpu/config.toml
	return $code
}

# newer_docker start|stop: Docker 26.1 beside the other, with CDI names switched on, our runtime its default
newer_docker() {
	new=/run/newer
	export DOCKER_HOST=unix://$new/docker.sock PATH=/opt/docker:$PATH
	if [ "$1" = stop ]; then kill "$(cat $new/pid)"; tail --pid="$(cat $new/pid)" -f /dev/null; unset DOCKER_HOST; return; fi
	mkdir -p $new /var/lib/docker/newer
	cat > $new/daemon.json <<- END
		{"bridge": "none", "iptables": false, "features": {"cdi": true}, "data-root": "/var/lib/docker/newer",
		 "exec-root": "$new/exec", "pidfile": "$new/pid", "hosts": ["$DOCKER_HOST"], "default-runtime": "cgpu",
		 "containerd": "/run/containerd/containerd.sock", "runtimes": {"cgpu": {"path": "$WRAPPER"}}}
	END
	# no job of this shell, which would say that it was killed
	(/opt/docker/dockerd --config-file $new/daemon.json > /var/log/newer.log 2>&1 < /dev/null & echo $! > $new/started)
	until docker version > /dev/null 2>&1; do
		kill -0 "$(cat $new/started)" || { tail /var/log/newer.log >&2; return 1; }
		sleep 0.2
	done
}
