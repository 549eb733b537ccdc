# SPDX-License-Identifier: Apache-2.0
"""The kernel module of this version: is it there, can it be, and why not. Builds, loads, unloads and exchanges it.

Everything outside (files below the root, programs) is a parameter, so that tests play machines. What DKMS makes and what
`build` makes lie below `/lib/modules/<release>`, and are loaded alike: first the front
`cgpu_km`, whose addresses live files hold, then `cgpu_core_<version>`, which can be exchanged below them. Cores of several
versions may lie there; the one of the sources' version is meant, or the newest where there are no sources.
"""

import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cgpu.core.errors import SettingError, UnavailableError

FRONT: Final = "cgpu_km"
CORE: Final = "cgpu_core_"
OLDEST_DRIVER, NEWEST_DRIVER = 418, 580
PARAMETERS: Final = ("slice_ms", "debt_ms", "managed", "managed_free_mib", "overcommit", "allow_unknown_driver")
Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]

_SECURE_BOOT: Final = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
_BUILD_PROGRAMS: Final = ("make", "gcc")
_DKMS: Final = ("updates/dkms", "extra", "updates")  # where it puts modules: Debian and Ubuntu, Red Hat's kin, others
_SIGN: Final = "sign it with a key that is enrolled (mokutil --import), or turn Secure Boot off"
_TRY_ANYWAY: Final = "load with allow_unknown_driver=1 to try without a promise of isolation"
# what insmod says about a refusal of the kernel -> what to do
_REFUSALS: Final = {
    "Invalid module format": "it was built for another kernel; run `cgpu module build`",
    "Key was rejected": f"Secure Boot is on and the module has no signature that this machine trusts; {_SIGN}",
    "Operation not permitted": "the kernel takes no modules: root is needed, and no lockdown",
    "Unknown symbol": "the kernel lacks a function that it needs, or the front is another version",
    "Protocol error": "the front that is loaded has other structures; end all containers, then `cgpu module unload` and `load`",
    "File exists": "it is loaded already",
    "No such device": "the driver or the kernel is not one that it knows",
}


def run_program(argv: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    """Runs a program to its end with its output kept. Raises UnavailableError when it is not installed."""
    try:
        return subprocess.run(list(argv), capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise UnavailableError(f"{argv[0]} is not installed; install it, or run this on the GPU's host") from error


def chrooted(root: Path) -> Run:
    """Runs the host's programs on the host's files, for a container that has them below `root`."""

    def below(word: str) -> str:
        return "/" if word == str(root) else word.replace(f"{root}/", "/")

    return lambda argv: run_program(["chroot", str(root), *map(below, argv)])


@dataclass(frozen=True, slots=True)
class Status:
    """What a machine has: versions are None where there is nothing."""

    kernel: str
    driver: str | None  # of NVIDIA's module, such as 535.261.03
    wanted: str | None  # version of the sources
    built: tuple[str, ...]  # module files for this kernel
    loaded: str | None  # version of the running core
    obstacles: tuple[str, ...]  # why it cannot be built or loaded, each with its remedy

    @property
    def ready(self) -> bool:
        """True when the module runs in the version of the sources, or in any where there are no sources."""
        return self.loaded is not None and self.wanted in {None, self.loaded}


class Loader:
    """The module on one machine."""

    def __init__(
        self, source: Path | None = None, root: Path = Path("/"), release: str = "", run: Run = run_program
    ) -> None:
        """`source`: folder with Kbuild (default: DKMS's, else the checkout's); `root`: stands for /; `release`: uname -r."""
        self.root = root
        self.release = release or platform.release()
        self.run = run
        self.source = source or self._find_source()
        self.installed = root / "lib/modules" / self.release / _DKMS[0]
        self.proc = root / "proc/cgpu_km"

    def _find_source(self) -> Path | None:
        found = sorted((self.root / "usr/src").glob(f"{FRONT}-*/Kbuild"))
        checkout = Path(__file__).resolve().parents[1] / "kmod"
        folders = [file.parent for file in found[-1:]] + [checkout]
        return next((folder for folder in folders if (folder / "Kbuild").is_file()), None)

    # ---- what there is ----

    def status(self) -> Status:
        """What the machine has, and everything that is in the way."""
        unbuilt = [] if self._complete() else self._build_obstacles()
        obstacles = (*self._driver_obstacles(), *unbuilt, *self._load_obstacles())
        return Status(self.release, self.driver(), self.wanted(), self.built(), self.loaded(), obstacles)

    def driver(self) -> str | None:
        """Version of NVIDIA's driver, None while it is not loaded."""
        text = _read(self.root / "proc/driver/nvidia/version") or ""
        found = re.search(r"Module\b.*?\s(\d{3,}\.[\d.]+)", text)
        return found[1] if found else None

    def wanted(self) -> str | None:
        """Version of the sources."""
        headers = sorted(self.source.rglob("*.h")) if self.source else []
        found = (re.search(r'#define CGPU_VERSION\s+"([^"]+)"', file.read_text()) for file in headers)
        return next((match[1] for match in found if match), None)

    def built(self) -> tuple[str, ...]:
        """Names of the module files for this kernel, the front first."""
        return tuple(sorted(self._files(), key=lambda name: (not name.startswith(FRONT), name)))

    def _complete(self) -> bool:
        """Whether the core that is meant is built, and a front of the same version: others would be refused beside it."""
        names = {name.split(".")[0] for name in self.built()}
        return {FRONT, self.core()} <= names and self._front() in {None, self.wanted() or self._front()}

    def _front(self) -> str | None:
        """Version of the front's file, as modinfo reads it; None where it does not say."""
        file = self._file(FRONT)
        return (self.run(["modinfo", "-F", "version", str(file)]).stdout.strip() or None) if file else None

    def _file(self, module: str) -> Path | None:
        return next((file for name, file in self._files().items() if name.split(".")[0] == module), None)

    def _files(self) -> dict[str, Path]:
        """Module files for this kernel by name. DKMS has another folder on each kind of system, ours is the first."""
        folders = [self.root / "lib/modules" / self.release / place for place in reversed(_DKMS)]
        return {file.name: file for folder in folders for file in folder.glob("cgpu_*.ko*")}

    def loaded(self) -> str | None:
        """Version of the running core."""
        version = (_read(self.proc / "version") or "").strip()
        return version if version not in {"", "none"} else None

    def core(self) -> str:
        """Name of the core module that is meant."""
        names = [name.split(".")[0] for name in self.built() if name.startswith(CORE)]
        newest = max(names, key=lambda name: [int(part) for part in re.findall(r"\d+", name)], default=CORE)
        return f"{CORE}{wanted.replace('.', '_')}" if (wanted := self.wanted()) else newest

    def modules(self) -> tuple[str, ...]:
        """Our modules in the kernel, those that lean on others first."""
        rows = (_read(self.root / "proc/modules") or "").split("\n")
        names = [row.split()[0] for row in rows if row.startswith((FRONT + " ", CORE))]
        return tuple(sorted(names, key=lambda name: name == FRONT))

    # ---- what is in the way ----

    def _driver_obstacles(self) -> list[str]:
        version = self.driver()
        if version is None:
            return [
                "the NVIDIA driver is not loaded (no /proc/driver/nvidia/version); install it, then `modprobe nvidia`"
            ]
        branch = int(version.split(".")[0])
        known = f"{OLDEST_DRIVER} to {NEWEST_DRIVER}"
        if branch < OLDEST_DRIVER:
            return [f"NVIDIA driver {version} is not supported: branches {known} are; install a newer driver"]
        if branch >= NEWEST_DRIVER + 10:
            return [f"NVIDIA driver {version} is unknown: branches {known} are known; {_TRY_ANYWAY}"]
        return []

    def _build_obstacles(self) -> list[str]:
        found = []
        if self.source is None:
            found.append("there are no sources: no /usr/src/cgpu_km-* and no checkout; name them with --source")
        if not (self._headers() / "Makefile").exists():
            found.append(
                f"the headers of Linux {self.release} are missing; install linux-headers-{self.release} "
                f"(Debian, Ubuntu) or kernel-devel-{self.release} (RHEL, Alibaba Cloud Linux)"
            )
        return found

    def _headers(self) -> Path:
        """Where the link that every kernel's modules have leads to, as the host itself would follow it."""
        link = self.root / "lib/modules" / self.release / "build"
        target = link.readlink() if link.is_symlink() else Path("build")
        return self.root / target.relative_to("/") if target.is_absolute() else link.parent / target

    def _load_obstacles(self) -> list[str]:
        loaded, wanted = self.loaded(), self.wanted()
        if loaded and wanted and loaded != wanted:
            return [f"version {loaded} is loaded, {wanted} is wanted; run `cgpu module upgrade`"]
        if not loaded and self._secure_boot() and not self._signed():
            return [f"Secure Boot is on and the module is not signed; {_SIGN}"]
        return []

    def _secure_boot(self) -> bool:
        try:
            return (self.root / _SECURE_BOOT).read_bytes()[-1:] == b"\x01"
        except OSError:
            return False

    def _signed(self) -> bool:
        """True unless a built module lacks the mark that the kernel looks for at its end."""
        files = [file for name, file in self._files().items() if name.endswith(".ko")]
        return all(file.read_bytes()[-28:].startswith(b"~Module signature appended~") for file in files)

    # ---- what is done ----

    def build(self) -> tuple[str, ...]:
        """Compiles the modules for the running kernel where DKMS would put them; returns their names.

        Raises UnavailableError with what is missing or with the compiler's last lines; then nothing has changed.
        """
        missing = self._build_obstacles() + [
            f"{name} is missing; install it" for name in _BUILD_PROGRAMS if not self._has(name)
        ]
        if missing or self.source is None:
            raise UnavailableError("; ".join(missing) or "there are no sources; name them with --source")
        work = self.root / "var/tmp/cgpu-build"
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(self.source, work, ignore=shutil.ignore_patterns("nvsim", "tests", "*.ko", "*.o", "*.mod*"))
        try:
            self._compile(work)
            return self._install(work)
        finally:
            shutil.rmtree(work)

    def _has(self, program: str) -> bool:
        """Whether the host has a program, which is another question than whether this container has it."""
        return self.run(["sh", "-c", f"command -v {program}"]).returncode == 0

    def _compile(self, work: Path) -> None:
        done = self.run(["make", "-s", "-C", str(self._headers()), f"M={work}", "modules"])
        if done.returncode:
            raise UnavailableError(f"it does not compile for Linux {self.release}:\n{_tail(done.stdout + done.stderr)}")

    def _install(self, work: Path) -> tuple[str, ...]:
        made = sorted(work.glob("cgpu_*.ko"))
        if not made:
            raise UnavailableError(
                f"{self.source}: its Kbuild makes no cgpu_*.ko; name the folder of the module's sources"
            )
        self.installed.mkdir(parents=True, exist_ok=True)
        for file in made:
            fresh = self.installed / f".{file.name}"
            shutil.copy2(file, fresh)
            fresh.replace(self.installed / file.name)
        self.run(["depmod", "-b", str(self.root), self.release])
        return self.built()

    def load(self, parameters: Mapping[str, str] | None = None) -> str:
        """Loads the front, with its parameters, and the core; returns the running version.

        Raises SettingError for an unknown parameter and UnavailableError with the reason; then nothing is loaded.
        """
        given = dict(parameters or {})
        for name, value in given.items():
            if name not in PARAMETERS:
                raise SettingError(f"{name}={value}: must be one of {', '.join(PARAMETERS)}")
        if self.loaded() and self.loaded() == (self.wanted() or self.loaded()):
            return self.loaded() or ""
        self._require(allow_unknown=given.get("allow_unknown_driver") in {"1", "Y", "y"})
        try:
            if FRONT not in self.modules():
                self._require_front()
                self._insert(FRONT, [f"{key}={value}" for key, value in given.items()])
            if self.loaded() is None:
                self._insert(self.core(), [])
        except UnavailableError:
            self._remove_all()
            raise
        return self.loaded() or ""

    def _require(self, allow_unknown: bool) -> None:
        obstacles = [text for text in self.status().obstacles if not (allow_unknown and _TRY_ANYWAY in text)]
        if obstacles:
            raise UnavailableError("; ".join(obstacles))
        if not self.built():
            raise UnavailableError(f"it is not built for Linux {self.release}; run `cgpu module build`")

    def _require_front(self) -> None:
        front, wanted = self._front(), self.wanted()
        if front and wanted and front != wanted:
            raise UnavailableError(f"{FRONT}.ko is of version {front} and {wanted} is wanted; run `cgpu module build`")

    def _insert(self, module: str, words: Sequence[str]) -> None:
        file = self._file(module)
        if file is None:
            raise UnavailableError(f"{module}.ko is not built for Linux {self.release}; run `cgpu module build`")
        done = self.run(["insmod", str(file), *words])
        if done.returncode:
            remedy = next((text for sign, text in _REFUSALS.items() if sign in done.stderr), "")
            said = self._kernel_words()
            parts = [f"{file.name}: {done.stderr.strip()}", *([remedy] if remedy else []), *said]
            raise UnavailableError("; ".join(parts))

    def _kernel_words(self) -> list[str]:
        """What the module itself wrote last into the kernel's log."""
        lines = self.run(["dmesg"]).stdout.splitlines()
        return [f"the kernel's log: {line.split('] ', 1)[-1]}" for line in lines if f"{FRONT}: " in line][-1:]

    def unload(self) -> None:
        """Takes the module out. Raises UnavailableError while instances are mounted or held, and then it runs on."""
        for name in self.modules():
            done = self.run(["rmmod", name])
            if done.returncode:
                held = [line.split()[0] for line in (_read(self.proc / "inst_ctl") or "").splitlines()]
                why = f"instances are there: {', '.join(sorted(set(held)))}; end their containers first" if held else ""
                raise UnavailableError("; ".join(filter(None, [f"{name}: {done.stderr.strip()}", why])))

    def _remove_all(self) -> None:
        for name in self.modules():
            self.run(["rmmod", name])

    def ensure(self, parameters: Mapping[str, str]) -> str:
        """Builds what is missing and loads it; returns the running version, whichever it is when one runs already.

        Raises SettingError and UnavailableError as `build` and `load` do.
        """
        if running := self.loaded():
            return running
        if not self._complete():
            self.build()
        return self.load(parameters)

    def upgrade(self) -> str:
        """Exchanges the running core for the built one, below running containers; returns the running version.

        Raises UnavailableError with the module's reason; then the old core runs on.
        """
        before, fresh = self.loaded(), self.core()
        if before is None:
            return self.load()
        if fresh == f"{CORE}{before.replace('.', '_')}":
            return before
        try:
            if fresh not in self.modules():
                self._insert(fresh, [])
            self._switch(fresh)
        except UnavailableError as error:
            raise UnavailableError(f"{error}; {before} runs on") from error
        for name in self.modules():
            if name not in {FRONT, fresh}:
                self.run(["rmmod", name])
        return self.loaded() or ""

    def exchange(self, parameters: Mapping[str, str]) -> str:
        """Brings the wanted version to run in place of another, built where need be; returns the running version.

        The core is exchanged below running containers. What cannot be exchanged so, the front above all, is loaded anew as
        soon as no instance is there. Raises UnavailableError with what is in the way; then the old version runs on.
        """
        if not self._complete():
            self.build()
        try:
            return self.upgrade()
        except UnavailableError as error:
            if (_read(self.proc / "inst_ctl") or "").strip():
                raise UnavailableError(
                    f"{error}; it is loaded anew when no pod has a share on this node any more"
                ) from error
        self.unload()
        return self.load(parameters)

    def _switch(self, core: str) -> None:
        try:
            (self.proc / "upgrade").write_text(f"{core}\n")
        except OSError as error:
            said = re.search(r"^error:\s*(.+)$", _read(self.proc / "upgrade") or "", re.MULTILINE)
            self.run(["rmmod", core])
            raise UnavailableError(f"{core} was refused: {said[1] if said else error.strerror}") from error


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:
        return None


def _tail(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-15:])
