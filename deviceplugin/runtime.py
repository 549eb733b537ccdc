# SPDX-License-Identifier: Apache-2.0
"""Whether a node's container runtime applies CDI devices, by the version that its kubelet reports. Pure.

Sources: containerd 1.7 reads `enable_cdi` (off unless set), 2.0 and later always or by default; CRI-O since 1.23.
"""

import re
from typing import Final

_VERSION: Final = re.compile(r"([a-z0-9-]+)://v?(\d+)\.(\d+)", re.ASCII)
_SURE: Final = {"containerd": (2, 0), "cri-o": (1, 23)}
_BY_SETTING: Final = {"containerd": (1, 7)}


def is_reported(version: str) -> bool:
    """Whether a kubelet has told the version: while its runtime restarts it says `containerd://Unknown`."""
    return bool(version) and not version.lower().endswith("://unknown")


def runtime_problem(version: str, assume_cdi: bool) -> str:
    """Why shares cannot reach containers here, "" when they can.

    `version`: node.status.nodeInfo.containerRuntimeVersion, such as containerd://2.4.2; `assume_cdi`: the
    administrator says that CDI is switched on where the version leaves it open.
    """
    found = _VERSION.match(version)
    name, number = (found[1], (int(found[2]), int(found[3]))) if found else ("", (0, 0))
    if name in _SURE and number >= _SURE[name]:
        return ""
    open_to_setting = name not in _SURE or number >= _BY_SETTING.get(name, (99, 0))
    if open_to_setting and assume_cdi:
        return ""
    told = f"the container runtime of this node is {version or 'not reported'}"
    if not open_to_setting:
        return (
            f"{told}: it knows no CDI devices; containerd 2.0 or CRI-O {'.'.join(map(str, _SURE['cri-o']))} is needed"
        )
    return (
        f"{told}: whether it applies CDI devices cannot be seen from that; switch CDI on there"
        " (containerd 1.7: enable_cdi = true) and start the plugin with --assume-cdi"
    )
