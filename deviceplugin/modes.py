# SPDX-License-Identifier: Apache-2.0
"""Which mode a node is in: its label's, unless pods hold shares of another one. Pure."""

from collections.abc import Mapping

from cgpu.core.errors import LabelError
from cgpu.core.names import LABEL_SCHEDULE, Mode
from cgpu.core.pods import mode_of


def choose_mode(
    labels: Mapping[str, str], default: Mode, current: Mode | None, holding: Mapping[str, Mode]
) -> tuple[Mode, str]:
    """The mode, and why the label was refused ("" when it was not).

    `current`: the mode in force, None at start; `holding`: pods that hold a share here, with the mode it was given
    in: after a restart theirs is the mode in force.
    """
    in_force = current or next(iter(holding.values()), None)
    try:
        wanted = mode_of(labels, default)
    except LabelError as error:
        kept = in_force or Mode.DEFAULT
        return kept, f"{error}; the node stays in mode {kept}"
    if not holding or in_force in (None, wanted):
        return wanted, ""
    names = ", ".join(sorted(holding)[:5]) + (", …" if len(holding) > 5 else "")
    return in_force or wanted, (
        f"label {LABEL_SCHEDULE} asks for mode {wanted}, but {len(holding)} pods hold shares in mode {in_force}"
        f" ({names}): the mode changes when they are gone"
    )
