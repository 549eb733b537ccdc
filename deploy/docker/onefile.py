# SPDX-License-Identifier: Apache-2.0
"""onefile.py SITE: the modules of cgpu-runtime in one file, so that a container's start reads one in place of two dozen.

The sh front takes the file where the Python that made it reads it, and imports as usual elsewhere. Form: CPython's magic
number as .pyc files begin with it, then in marshal's form the loader's code and (name, is a package, code) of each module,
each after those that it imports.
"""

import marshal
import sys
from importlib import import_module
from importlib.machinery import FileFinder, SourceFileLoader
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from types import CodeType, ModuleType

ENTRY = "cgpu.runtime.__main__"
NAME = "cgpu/runtime/modules.bin"  # below SITE; front.sh has it too
LOADER = """
for name, package, code in modules:
    module = sys.modules[name] = type(sys)(name)
    above, dot, last = name.rpartition(".")
    module.__package__ = name if package else above
    module.__file__ = code.co_filename
    if package:
        module.__path__ = [code.co_filename.rpartition("/")[0]]
    if dot:
        setattr(sys.modules[above], last, module)
    exec(code, module.__dict__)
"""


def modules(site: str) -> list[tuple[str, bool, CodeType]]:
    """What the entry imports from below `site`, in the order in which the imports end."""
    found: list[tuple[str, bool, CodeType]] = []

    class Noting(SourceFileLoader):
        """Notes what it has brought in."""

        def exec_module(self, module: ModuleType) -> None:
            super().exec_module(module)
            code = compile(self.get_data(self.path), self.path, "exec", dont_inherit=True, optimize=2)
            found.append((module.__name__, hasattr(module, "__path__"), code))

    def ours(folder: str) -> FileFinder:
        if not folder.startswith(site):
            raise ImportError
        return FileFinder(folder, (Noting, [".py"]))

    sys.path_hooks.insert(0, ours)
    sys.path.append(site)
    import_module(ENTRY)
    return found


def main() -> None:
    """Writes the file; a start that reads meanwhile has the old one or the new one, whole."""
    site = sys.argv[1]
    place = Path(site) / NAME
    temporary = place.with_suffix(".new")
    loader = compile(LOADER, "<cgpu>", "exec")
    temporary.write_bytes(MAGIC_NUMBER + marshal.dumps((loader, modules(site))))
    temporary.replace(place)


if __name__ == "__main__":
    main()
