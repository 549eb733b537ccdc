# SPDX-License-Identifier: Apache-2.0
"""`NamedTuple` without the import of `typing`, for modules that run at every start of a container.

That import costs more time than all that is decided there. Type checkers see the original.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
    from typing import NamedTuple as NamedTuple  # noqa: PLC0414 - what others import from here
else:
    try:
        from _collections import _tuplegetter as _part
    except ImportError:  # CPython's own, which promises nothing

        def _part(index, doc):
            return property(lambda self: self[index], doc=doc)

    class NamedTuple(tuple):
        """A tuple whose annotations name its parts; a class attribute is a part's default."""

        __slots__ = ()
        _fields: tuple[str, ...] = ()
        _field_defaults: dict[str, Any] = {}  # noqa: RUF012 - as in the original

        def __init_subclass__(cls) -> None:
            cls._fields = tuple(cls.__annotations__)
            cls._field_defaults = {name: vars(cls)[name] for name in cls._fields if name in vars(cls)}
            for index, name in enumerate(cls._fields):
                setattr(cls, name, _part(index, None))

        def __new__(cls, *given: Any, **named: Any) -> NamedTuple:
            """Raises TypeError for a part that is missing, unknown or given twice."""
            if len(given) == len(cls._fields) and not named:
                return tuple.__new__(cls, given)
            values = dict(zip(cls._fields, given)) if len(given) <= len(cls._fields) else named | {"": given}  # noqa: B905
            doubled = values.keys() & named.keys()
            values = cls._field_defaults | values | named
            if doubled or values.keys() != set(cls._fields):
                raise TypeError(f"{cls.__name__}({', '.join(cls._fields)}) was given {given} and {named}")
            return tuple.__new__(cls, [values[name] for name in cls._fields])

        def _replace(self, **named: Any) -> NamedTuple:
            return type(self)(**(dict(zip(self._fields, self, strict=True)) | named))

        def __repr__(self) -> str:
            return f"{type(self).__name__}({', '.join(f'{name}={self[i]!r}' for i, name in enumerate(self._fields))})"
