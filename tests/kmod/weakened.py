# SPDX-License-Identifier: Apache-2.0
"""The module with a defence taken out of its source, so that an attack can be seen to succeed against it.

An attack that fails proves something only if it would have succeeded: these modules are the proof. A defence whose text
is not found any more is an error here, so that no control goes quiet.
"""

from pathlib import Path
from typing import Final

from tests.vm.bench import PROJECT
from tests.vm.cache import cache_root, locked
from tests.vm.errors import BenchError
from tests.vm.kernels import build_modules, fetch, synchronise, unit_sources

PAUSE: Final = "schedule_timeout_killable(1);\n\t"
# arguments are read once more after the check, from the caller's own memory
READ_TWICE: Final = (
    f"{PAUSE}if (copy_from_user(head, arg, a->size) || (a->nested_size &&\n"
    "\t    copy_from_user(a->nested, (void __user *)head->p_alloc_parms, a->nested_size)))\n"
    "\t\treturn -EFAULT;\n\tret = cgpu_call(&call);\n\thead->h_class"
)
HEAP_TWICE: Final = f"{PAUSE}if (copy_from_user(args, users, size))\n\t\treturn -EFAULT;\n\tret = cgpu_call(&call);"
USERS: Final = "static void __user *users;\n\nstatic long run_heap(struct cgpu_file *f"
CHANGES: Final = (
    ("heap.c", "static long run_heap(struct cgpu_file *f", USERS),
    ("heap.c", "ret = run_heap(f, cmd", "users = arg;\n\tret = run_heap(f, cmd"),
    ("heap.c", "ret = cgpu_call(&call);", HEAP_TWICE),
    ("alloc.c", "ret = cgpu_call(&call);\n\thead->h_class", READ_TWICE),
    # the argument page may be written by anybody, and there is time for it
    ("argmap.c", "READ_ONCE(p->owner) != current", "!p"),
    ("argpage.c", "fill(p, call, at);", "fill(p, call, at);\n\t\tschedule_timeout_killable(1);"),
    # answers lie there for a while before they are read
    ("argpage.c", "take_results(p, call);", "schedule_timeout_killable(1);\n\ttake_results(p, call);"),
    # the handle that comes back is believed
    ("alloc.c", "if (cgpu_client_is_ours(f, client))", "if (client)"),
)


def change(source: Path) -> dict[str, str]:
    """The changed files of the module's folder, with their texts."""
    texts: dict[str, str] = {}
    for name, old, new in CHANGES:
        text = texts.get(name) or (source / name).read_text()
        if text.count(old) != 1:
            raise BenchError(
                f"kmod/{name} has {text.count(old)} times {old!r}: tell weakened.py what the defence is now"
            )
        texts[name] = text.replace(old, new)
    return texts


def weakened(kernel: str) -> list[Path]:
    """The files of the weakened module for a kernel, in the order in which they are loaded."""
    source, copy = PROJECT / "kmod", cache_root() / "weakened" / "kmod"
    with locked(copy):
        synchronise([file for file in unit_sources(source) if file.is_relative_to(source)], source, copy)
        for name, text in change(source).items():
            (copy / name).write_text(text)
        built = build_modules(fetch(kernel), copy)
    return sorted(built.glob("*.ko"), key=lambda file: (file.name != "cgpu_km.ko", file.name))
