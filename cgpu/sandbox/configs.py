# SPDX-License-Identifier: Apache-2.0
"""Configuration of every component, as text; nothing here touches the machine.

The flags and fields are those of Kubernetes 1.34 to 1.37 and containerd 2.x (their own reference pages).
"""

import json
from typing import Final

from cgpu.sandbox.record import Record

SERVICES: Final = "10.96.0.0/16"
FIRST_SERVICE: Final = "10.96.0.1"
NAME_SERVER: Final = "10.96.0.10"  # nobody is there: the sandbox has no names, and asking fails at once
PODS: Final = "10.88.0.0/16"
API_PORT: Final = 6443
PAUSE: Final = "localhost/pause:1"
MANIFESTS: Final = "kubernetes/manifests"  # below /etc: where a node's static pods are
_CRI: Final = "io.containerd.cri.v1"


def api_url(record: Record) -> str:
    """Where everybody reaches the API server, the host included."""
    return f"https://{record.address(2)}:{API_PORT}"


def etcd(binary: str, data: str) -> list[str]:
    """etcd for one member; a sandbox that loses power is made anew, so nothing is synced to disk."""
    return [
        binary,
        f"--data-dir={data}",
        "--listen-client-urls=http://127.0.0.1:2379",
        "--advertise-client-urls=http://127.0.0.1:2379",
        "--listen-peer-urls=http://127.0.0.1:2380",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def kube_apiserver(binary: str, record: Record, pki: str) -> list[str]:
    """The request header flags are there because the other components complain for ever without them."""
    return [
        binary,
        "--etcd-servers=http://127.0.0.1:2379",
        f"--secure-port={API_PORT}",
        "--bind-address=0.0.0.0",
        f"--advertise-address={record.address(2)}",
        f"--service-cluster-ip-range={SERVICES}",
        f"--tls-cert-file={pki}/apiserver.crt",
        f"--tls-private-key-file={pki}/apiserver.key",
        f"--client-ca-file={pki}/ca.crt",
        f"--requestheader-client-ca-file={pki}/ca.crt",
        "--requestheader-allowed-names=front-proxy",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--service-account-key-file={pki}/sa.crt",
        f"--service-account-signing-key-file={pki}/sa.key",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction,Priority",
        "--allow-privileged",
        "--kubelet-preferred-address-types=InternalIP",
        f"--kubelet-client-certificate={pki}/admin.crt",
        f"--kubelet-client-key={pki}/admin.key",
        f"--kubelet-certificate-authority={pki}/ca.crt",
    ]


def kube_scheduler(binary: str, config: str, kubeconfig: str) -> list[str]:
    """The cluster's own scheduler, for pods that are not ours."""
    return [
        binary,
        f"--config={config}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
    ]


def scheduler_config(kubeconfig: str) -> str:
    """KubeSchedulerConfiguration of that scheduler."""
    return _json(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": kubeconfig},
        }
    )


def kube_controller_manager(binary: str, kubeconfig: str, pki: str, grace_s: int) -> list[str]:
    """All default controllers; a node loses its not-ready taint within a second of being Ready, not within five.

    `grace_s`: how long a node may be silent before it counts as lost.
    """
    return [
        binary,
        f"--kubeconfig={kubeconfig}",
        f"--service-account-private-key-file={pki}/sa.key",
        f"--root-ca-file={pki}/ca.crt",
        "--use-service-account-credentials",
        "--leader-elect=false",
        f"--cluster-signing-cert-file={pki}/ca.crt",
        f"--cluster-signing-key-file={pki}/ca.key",
        f"--node-monitor-grace-period={grace_s}s",
        "--node-monitor-period=1s",
        "--kube-api-qps=200",
        "--kube-api-burst=300",
    ]


def kwok(binary: str, kubeconfig: str) -> list[str]:
    """Keeps the light nodes, and them alone, alive."""
    return [
        binary,
        f"--kubeconfig={kubeconfig}",
        "--manage-all-nodes=false",
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        "--node-lease-duration-seconds=40",
    ]


def kubelet(binary: str, node: str, address: str) -> list[str]:
    """Paths are those inside the node's mount namespace."""
    return [
        binary,
        "--config=/etc/kubernetes/kubelet.yaml",
        "--kubeconfig=/etc/kubernetes/kubelet.conf",
        f"--hostname-override={node}",
        f"--node-ip={address}",
        "--v=2",
    ]


def kubelet_config(record: Record, node: str) -> str:
    """KubeletConfiguration. Pods get cgroups below the node's, so that the sandbox can end them; eviction and limits
    of the node stay off: nodes share one machine's disk and memory."""
    own = {
        "cgroupRoot": f"/{record.cgroup}/{node}",
        "nodeStatusUpdateFrequency": "1s",
        "staticPodPath": f"/etc/{MANIFESTS}",
    }
    return _json({**_kubelet(), **own})


def machine_kubelet_config() -> str:
    """KubeletConfiguration of a virtual machine: the cgroups are its own, and emulation makes each status dear."""
    return _json({**_kubelet(), "nodeStatusUpdateFrequency": "5s"})


def _kubelet() -> dict[str, object]:
    """What every node's kubelet is told."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": True,
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        "oomScoreAdj": 0,
        "makeIPTablesUtilChains": False,
        "localStorageCapacityIsolation": False,
        "serializeImagePulls": False,
        "registryPullQPS": 0,
        "evictionHard": {"imagefs.available": "0%", "nodefs.available": "0%", "memory.available": "0%"},
        "imageGCHighThresholdPercent": 100,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": "/etc/kubernetes/pki/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": "/etc/kubernetes/pki/kubelet.crt",
        "tlsPrivateKeyFile": "/etc/kubernetes/pki/kubelet.key",
        "clusterDNS": [NAME_SERVER],
        "clusterDomain": "cluster.local",
        "resolvConf": "/etc/kubernetes/resolv.conf",
    }


def kube_proxy_config(node: str) -> str:
    """KubeProxyConfiguration; the conntrack table belongs to the machine and is left as it is."""
    return _json(
        {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "iptables",
            "clientConnection": {"kubeconfig": "/etc/kubernetes/proxy.conf"},
            "clusterCIDR": PODS,
            "hostnameOverride": node,
            "conntrack": {"maxPerCore": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        }
    )


def containerd_config() -> str:
    """containerd as a node's administrator would have it; CDI folders are its defaults."""
    return f"""\
version = 3
[plugins.'{_CRI}.images']
  snapshotter = "overlayfs"
  [plugins.'{_CRI}.images'.pinned_images]
    sandbox = "{PAUSE}"
[plugins.'{_CRI}.runtime']
  restrict_oom_score_adj = true
  [plugins.'{_CRI}.runtime'.cni]
    bin_dirs = ["/usr/lib/cni"]
    conf_dir = "/etc/cni/net.d"
  [plugins.'{_CRI}.runtime'.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins.'{_CRI}.runtime'.containerd.runtimes.runc.options]
      SystemdCgroup = false
[plugins.'io.containerd.nri.v1.nri']
  disable = true
"""


def cni_config(record: Record, node: str) -> str:
    """Each pod on a link of its own: traffic between pods of a node passes the node's tables, as kube-proxy needs."""
    ipam = {
        "type": "host-local",
        "ranges": [[{"subnet": record.pods_of(node)}]],
        "routes": [{"dst": "0.0.0.0/0"}],
        "dataDir": "/run/cni",
    }
    plugins = [
        {"type": "ptp", "ipMasq": False, "ipam": ipam},
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ]
    return _json({"cniVersion": "1.0.0", "name": "pods", "plugins": plugins})


def _json(value: object) -> str:
    return json.dumps(value, indent=1) + "\n"
