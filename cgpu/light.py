# SPDX-License-Identifier: Apache-2.0
"""`Path` and `suppress` as far as the start of a container needs them, without the originals' imports.

Those cost several times what the wrapper itself does, and every container of a host pays. Type checkers see the originals,
and a test holds these beside them.
"""

from __future__ import annotations

import os

from cgpu.core.light import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import suppress as suppress  # noqa: PLC0414 - what others import from here
    from pathlib import Path as Path  # noqa: PLC0414
    from typing import Any
else:

    class Path:
        """A path, with the methods that are used here; each raises OSError as the original does."""

        __slots__ = ("_text",)

        def __init__(self, path: str | os.PathLike[str] = ".") -> None:
            text = os.fspath(path)
            while "//" in text:
                text = text.replace("//", "/")
            self._text = text.rstrip("/") or "/"[: len(text)] or "."

        def __fspath__(self) -> str:
            return self._text

        __str__ = __fspath__

        def __truediv__(self, other: str | os.PathLike[str]) -> Path:
            return Path(os.path.join(self, other))  # noqa: PTH118

        def __lt__(self, other: Path) -> bool:
            return self._text < other._text

        @property
        def name(self) -> str:
            """The last part."""
            return self._text.rpartition("/")[2]

        @property
        def stem(self) -> str:
            """The last part without its suffix."""
            head, dot, _ = self.name.rpartition(".")
            return head if head and dot else self.name

        @property
        def parent(self) -> Path:
            """The folder that it is in."""
            return Path(os.path.dirname(self) or ".")  # noqa: PTH120

        def with_name(self, name: str) -> Path:
            """A neighbour."""
            return self.parent / name

        def open(self, mode: str = "r") -> Any:
            """The file, opened."""
            return open(self, mode)  # noqa: PTH123

        def read_text(self) -> str:
            """All of it."""
            with open(self) as file:  # noqa: PTH123
                return file.read()

        def read_bytes(self) -> bytes:
            """All of it."""
            with open(self, "rb") as file:  # noqa: PTH123
                return file.read()

        def write_text(self, text: str) -> int:
            """Replaces what was there; returns the number of characters."""
            with open(self, "w") as file:  # noqa: PTH123
                return file.write(text)

        def exists(self) -> bool:
            """Whether it leads anywhere."""
            return os.path.exists(self)  # noqa: PTH110

        def is_file(self) -> bool:
            """Whether it leads to a file."""
            return os.path.isfile(self)  # noqa: PTH113

        def is_dir(self) -> bool:
            """Whether it leads to a folder."""
            return os.path.isdir(self)  # noqa: PTH112

        def stat(self) -> os.stat_result:
            """What the kernel says of it."""
            return os.stat(self)  # noqa: PTH116

        def resolve(self) -> Path:
            """Without links."""
            return Path(os.path.realpath(self))

        def iterdir(self) -> Iterator[Path]:
            """What is in the folder."""
            return (self / name for name in os.listdir(self))  # noqa: PTH208

        def mkdir(self, parents: bool = False, exist_ok: bool = False) -> None:
            """Makes the folder."""
            if not (exist_ok and self.is_dir()):
                (os.makedirs if parents else os.mkdir)(self)

        def rmdir(self) -> None:
            """Removes an empty folder."""
            os.rmdir(self)  # noqa: PTH106

        def unlink(self, missing_ok: bool = False) -> None:
            """Removes the file."""
            try:
                os.unlink(self)  # noqa: PTH108
            except FileNotFoundError:
                if not missing_ok:
                    raise

        def replace(self, other: str | os.PathLike[str]) -> None:
            """Puts it in the place of another."""
            os.replace(self, other)  # noqa: PTH105

    class suppress:  # noqa: N801 - the original's name
        """What is raised inside and is one of these is nothing."""

        __slots__ = ("_errors",)

        def __init__(self, *errors: type[BaseException]) -> None:
            self._errors = errors

        def __enter__(self) -> None:
            pass

        def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
            return kind is not None and issubclass(kind, self._errors)
