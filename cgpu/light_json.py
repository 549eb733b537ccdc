# SPDX-License-Identifier: Apache-2.0
"""`loads` and `dumps` of `json` without its import, which reads in regular expressions to start the same C code.

That C code is CPython's own and has no documented interface, so whatever it does not take goes to `json` itself.
"""

from __future__ import annotations

from cgpu.core.light import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

_SPACE = " \t\n\r"


class _Settings:
    """What `json.JSONDecoder` would say to the C code."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, float


def loads(text: bytes | str) -> Any:
    """The document in a text of UTF-8. Raises ValueError."""
    plain = (text.decode() if isinstance(text, bytes) else text).strip(_SPACE)
    try:
        from _json import make_scanner  # noqa: PLC0415

        value, end = make_scanner(_Settings)(plain, 0)  # type: ignore[arg-type]
    except (ImportError, AttributeError, TypeError, StopIteration):
        end = -1
    return value if end == len(plain) else _original().loads(plain)


def dumps(value: Any) -> str:
    """The text of a document. Raises TypeError or ValueError for what JSON cannot say."""
    try:
        from _json import encode_basestring_ascii, make_encoder  # noqa: PLC0415

        return "".join(
            make_encoder({}, _refuse, encode_basestring_ascii, None, ": ", ", ", False, False, True)(value, 0)
        )
    except (ImportError, TypeError):
        return str(_original().dumps(value))


def _refuse(value: Any) -> None:
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _original() -> Any:
    import json  # noqa: PLC0415 - for what the C code does not take, and its words about mistakes

    return json
