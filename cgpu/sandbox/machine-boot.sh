#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# What a node's init does in a virtual machine: disks, network, the driver, then containerd, the kubelet and kube-proxy,
# each started again when it ends. The test bench's boot has mounted everything else.
export PATH=/opt/kubernetes:/opt/bench/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
. /opt/node/node.env
. /opt/node/kernel.env
modprobe -a ext4 overlay br_netfilter veth

for disk in /sys/block/vd*; do
	read -r name < "$disk/serial"
	[ "$name" = rw-containerd ] || continue
	umount /var/lib/containerd
	mount -t ext4 -o noatime "/dev/${disk##*/}" /var/lib/containerd
done

# the product's module as DKMS would have built it, and headers to build it anew, on a folder that can be written
mkdir -p /run/modules/upper /run/modules/work "$HEADERS"
mount --bind /opt/headers "$HEADERS"
mount -t overlay -o "lowerdir=/lib/modules/$RELEASE,upperdir=/run/modules/upper,workdir=/run/modules/work" \
	overlay "/lib/modules/$RELEASE"
ln -s "$HEADERS/src/linux-headers-$RELEASE" "/lib/modules/$RELEASE/build"
if [ "$PREBUILT" = 1 ]; then
	mkdir -p "/lib/modules/$RELEASE/updates/dkms"
	cp /opt/dkms/cgpu_*.ko "/lib/modules/$RELEASE/updates/dkms/"
fi
mount --make-rshared /

cp -r /opt/node/etc/. /etc/
mkdir -p /var/log/pods /var/log/containers /run/cdi /run/cgpu
echo 1 > /proc/sys/net/ipv4/ip_forward
ip addr add "$ADDRESS/24" dev eth0
ip link set eth0 up
ip route add default via "$GATEWAY"
ip route add unreachable "$NAME_SERVER"

load-driver || echo "node: the driver was not loaded" > /dev/console

service() { # NAME COMMAND...: keeps it running
	name=$1; shift
	while :; do "$@" >> "/var/log/$name.log" 2>&1 < /dev/null; sleep 1; done &
}
service containerd containerd --config=/etc/containerd/config.toml
while [ ! -S /run/containerd/containerd.sock ]; do sleep 0.1; done
service kubelet kubelet --config=/etc/kubernetes/kubelet.yaml --kubeconfig=/etc/kubernetes/kubelet.conf \
	"--hostname-override=$NODE" "--node-ip=$ADDRESS" --v=2
service kube-proxy kube-proxy --config=/etc/kubernetes/proxy.yaml
