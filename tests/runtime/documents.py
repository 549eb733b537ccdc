# SPDX-License-Identifier: Apache-2.0
"""Documents as Docker 20.10 and 26.1 write them, cut to what the wrapper reads, and cards.

Those of Docker 29 are not recorded: they are written from its change "Use cdi device driver to handle nvidia --gpus
requests" (moby 50228, released with 29.2) and from what Docker 26.1 writes for the name that this asks for.
"""

from typing import Any, Final

from cgpu.runtime.request import HostGpu

T4: Final = (HostGpu(0, 0, "GPU-aaaa", 15109),)
A10: Final = tuple(HostGpu(index, 3 - index, f"GPU-{index}", 23028) for index in range(4))
MAJORS: Final = frozenset({195, 510, 511})
DENY_ALL: Final = {"allow": False, "access": "rwm"}
DOCKER_RULES: Final = [
    DENY_ALL,
    {"allow": True, "type": "c", "major": 1, "minor": 5, "access": "rwm"},
    {"allow": True, "type": "c", "access": "m"},
    {"allow": True, "type": "b", "access": "m"},
]
NULL: Final = {"path": "/dev/fuse", "type": "c", "major": 10, "minor": 229}
HOOK: Final = {
    "path": "/usr/bin/nvidia-container-runtime-hook",
    "args": ["nvidia-container-runtime-hook", "prestart"],
}
# what `ctr run --gpus 1,2` and `nerdctl run --gpus` of containerd 1.6 and 2 write (its contrib/nvidia), the latter by UUID
CLIENTS_HOOK: Final = {
    "path": "/usr/bin/containerd",
    "args": [
        "containerd", "oci-hook", "--", "/usr/bin/nvidia-container-cli", "--load-kmods", "configure", "--device=1,GPU-2",
        "--compute", "--utility", "--pid={{pid}}", "{{rootfs}}",
    ],
}  # fmt: skip


def node(path: str, major: int, minor: int) -> dict[str, Any]:
    """A device entry."""
    return {"path": path, "type": "c", "major": major, "minor": minor, "fileMode": 0o666}


def rule(major: int, minor: int, access: str = "rwm") -> dict[str, Any]:
    """A rule that allows one device."""
    return {"allow": True, "type": "c", "major": major, "minor": minor, "access": access}


def document(
    env: dict[str, str] | None = None,
    devices: list[dict[str, Any]] | None = None,
    rules: list[dict[str, Any]] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A container's config.json."""
    return {
        "ociVersion": "1.0.2",
        "process": {"args": ["sh"], "env": ["PATH=/bin", *(f"{key}={value}" for key, value in (env or {}).items())]},
        "root": {"path": "rootfs"},
        "mounts": [{"destination": "/dev", "type": "tmpfs", "source": "tmpfs"}],
        "linux": {
            "cgroupsPath": "/docker/0123",
            "devices": devices or [],
            "resources": {"devices": DOCKER_RULES + (rules or [])},
        },
    } | more


def docker_cdi() -> dict[str, Any]:
    """What Docker leaves of a CDI name: nodes and files of the spec, no hook of Docker's and no variable with names.

    As Docker 26.1 writes it for `--device nvidia.com/gpu=all` with the spec of nvidia-ctk 1.20.2; the rest is cut away.
    From 29.2, as its change says, `--gpus all` is that name wherever nvidia-cdi-hook is installed, and the hook elsewhere.
    """
    nodes = [("nvidia-uvm", 510, 0), ("nvidia-uvm-tools", 510, 1), ("nvidiactl", 195, 255), ("nvidia0", 195, 0)]
    library = "/usr/lib/x86_64-linux-gnu/libcuda.so.535.261.03"
    cdi_hook = {
        "path": "/usr/bin/nvidia-cdi-hook",
        "args": ["nvidia-cdi-hook", "update-ldcache", "--folder", "/usr/lib"],
    }
    given = document(
        {"NVIDIA_CTK_LIBCUDA_DIR": "/usr/lib/x86_64-linux-gnu", "NVIDIA_VISIBLE_DEVICES": "void"},
        devices=[node(f"/dev/{name}", major, minor) for name, major, minor in nodes],
        rules=[DENY_ALL, *DOCKER_RULES, *(rule(major, minor) for _, major, minor in nodes)],
        hooks={"prestart": [{"path": "/proc/1/exe", "args": ["libnetwork-setkey"]}], "createContainer": [cdi_hook]},
    )
    given["mounts"] += [
        {"destination": library, "source": library, "options": ["ro", "nosuid", "nodev", "rbind", "rprivate"]},
        {"destination": "/var/run/nvidia-container-devices/void", "source": "/dev/null", "options": ["ro", "bind"]},
    ]
    return given
