# SPDX-License-Identifier: Apache-2.0
"""Grants on disk, one file each, so that a restarted plugin knows what it had given: /run/cgpu/grants/<hash>.json."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cgpu.core.errors import UnavailableError
from cgpu.core.model import Share
from cgpu.core.names import Mode
from deviceplugin.grants import Grant

log = logging.getLogger(__name__)


class Records:
    """Every grant in force, by hash; memory and folder say the same."""

    def __init__(self, folder: Path) -> None:
        """Nothing is read before `load`."""
        self._folder = folder
        self._grants: dict[str, Grant] = {}

    def load(self) -> None:
        """Read the folder; a file that cannot be read is removed, since its container's next start writes it anew."""
        for path in sorted(self._folder.glob("*.json")):
            try:
                grant = _decode(json.loads(path.read_text()))
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                log.warning("%s is no grant and is removed: %r", path, error)
                path.unlink(missing_ok=True)
                continue
            self._grants[grant.hash] = grant

    def __iter__(self) -> Iterator[Grant]:
        return iter(tuple(self._grants.values()))

    def get(self, name: str) -> Grant | None:
        """The grant of one CDI device."""
        return self._grants.get(name)

    def put(self, grant: Grant) -> None:
        """Keep or replace a grant. Raises UnavailableError when the folder cannot be written."""
        temporary = self._folder / f".{grant.hash}.tmp"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps(_encode(grant)))
            temporary.replace(self._folder / f"{grant.hash}.json")
        except OSError as error:
            raise UnavailableError(f"{self._folder} cannot be written: {error.strerror}") from error
        self._grants[grant.hash] = grant

    def remove(self, name: str) -> None:
        """Forget a grant."""
        (self._folder / f"{name}.json").unlink(missing_ok=True)
        self._grants.pop(name, None)

    def pod_uids(self) -> frozenset[str]:
        """Pods that were given something."""
        return frozenset(grant.pod_uid for grant in self._grants.values())


def _encode(grant: Grant) -> dict[str, Any]:
    return {
        "hash": grant.hash,
        "instance": grant.instance,
        "ids": list(grant.ids),
        "podUID": grant.pod_uid,
        "namespace": grant.namespace,
        "pod": grant.pod,
        "container": grant.container,
        "mode": grant.mode.value,
        "shares": {uuid: [share.mem, share.core] for uuid, share in grant.shares.items()},
        "highPrio": grant.high_prio,
    }


def _decode(row: dict[str, Any]) -> Grant:
    return Grant(
        hash=row["hash"],
        instance=row["instance"],
        ids=tuple(row["ids"]),
        pod_uid=row["podUID"],
        namespace=row["namespace"],
        pod=row["pod"],
        container=row["container"],
        mode=Mode(row["mode"]),
        shares={uuid: Share(mem, core) for uuid, (mem, core) in row["shares"].items()},
        high_prio=row["highPrio"],
    )
