# SPDX-License-Identifier: Apache-2.0
"""Debian packages for the bench: of any suite by a private apt configuration, and those that the machine itself lacks.

The mirror is the one that the machine's own apt uses. Nothing of the suites enters the machine's configuration:
packages are downloaded and unpacked into the cache, never installed.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from tests.vm.cache import cache_root, locked, say
from tests.vm.errors import BenchError

KEYRING: Final = "/usr/share/keyrings/debian-archive-keyring.gpg"
COMPONENTS: Final = "main contrib non-free"


def parse_mirror(text: str, codename: str) -> str | None:
    """The address in one apt source file (either format) that serves the main suite `codename`."""
    for stanza in re.split(r"\n\s*\n", text):
        fields = dict(re.findall(r"^(\w[\w-]*):\s*(.*)$", stanza, re.MULTILINE))
        if codename in fields.get("Suites", "").split() and "deb" in fields.get("Types", "").split():
            return str(fields["URIs"].split()[0])
    line = re.search(rf"^deb\s+(?:\[[^]]*\]\s+)?(\S+)\s+{re.escape(codename)}\s", text, re.MULTILINE)
    return line.group(1) if line else None


def machine_codename(etc: Path) -> str:
    """The Debian release of this machine."""
    found = re.search(r"^VERSION_CODENAME=(\w+)", (etc / "os-release").read_text(), re.MULTILINE)
    if found is None:
        raise BenchError(f"{etc}/os-release names no VERSION_CODENAME; the bench needs Debian 12 or later as its host")
    return found.group(1)


def find_mirror(etc: Path = Path("/etc")) -> str:
    """The mirror of the machine's own apt source line."""
    files = [*sorted((etc / "apt/sources.list.d").glob("*")), etc / "apt/sources.list"]
    codename = machine_codename(etc)
    for file in files:
        found = parse_mirror(file.read_text(), codename) if file.is_file() else None
        if found:
            return found
    raise BenchError(f"no apt source under {etc}/apt serves the suite {codename}; add one (deb MIRROR {codename} main)")


def run(argv: list[str], env: Mapping[str, str] | None = None, cwd: Path | None = None) -> str:
    """Runs a program to its end and returns its output; BenchError with the end of its output when it fails."""
    done = subprocess.run(
        argv,
        env={**os.environ, **(env or {})},
        cwd=cwd,
        text=True,
        errors="replace",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode:
        lines = done.stdout.splitlines()
        # a compiler's errors are what counts, however many warnings follow them
        shown = [line for line in lines if ": error: " in line or ": fatal error: " in line][:10] or lines[-20:]
        raise BenchError(f"`{' '.join(argv)}` ended with {done.returncode}:\n" + "\n".join(shown))
    return done.stdout


class Suite:
    """One Debian suite behind an apt configuration of its own."""

    def __init__(self, name: str, root: Path | None = None) -> None:
        self.name = name
        self.root = (root or cache_root() / "apt") / name
        self.env = {"APT_CONFIG": str(self.root / "apt.conf")}

    def configure(self) -> None:
        """Writes the configuration; the lists are fetched when there are none."""
        for folder in ("lists/partial", "cache/archives/partial", "none"):
            (self.root / folder).mkdir(parents=True, exist_ok=True)
        (self.root / "status").touch()
        rest = f"[signed-by={KEYRING}] {find_mirror()} {self.name} {COMPONENTS}\n"
        (self.root / "sources.list").write_text(f"deb {rest}deb-src {rest}")
        settings = {
            "Dir::Etc::sourcelist": self.root / "sources.list",
            "Dir::Etc::sourceparts": self.root / "none",
            "Dir::Etc::preferencesparts": self.root / "none",
            "Dir::State::lists": self.root / "lists",
            "Dir::State::status": self.root / "status",
            "Dir::Cache": self.root / "cache",
            "APT::Sandbox::User": "root",
            "Acquire::Languages": "none",
            "Acquire::Retries": "3",
        }
        (self.root / "apt.conf").write_text("".join(f'{key} "{value}";\n' for key, value in settings.items()))
        if not any((self.root / "lists").glob("*_Sources*")):
            self.update()

    def update(self) -> None:
        """Fetches the suite's package lists anew."""
        say(f"fetching the package lists of Debian {self.name}")
        run(["apt-get", "update", "-q"], self.env)

    def version(self, package: str) -> str:
        """The version that the suite offers; BenchError when it has no such package."""
        with locked(self.root / "apt"):
            self.configure()
            shown = run(["apt-cache", "policy", package], self.env)
        found = re.search(r"Candidate: (\S+)", shown)
        if found is None or found.group(1) == "(none)":
            raise BenchError(f"Debian {self.name} has no package {package}; look at {self.root / 'sources.list'}")
        return found.group(1)

    def depends(self, package: str) -> list[str]:
        """The names that a package depends on, directly."""
        with locked(self.root / "apt"):
            self.configure()
            return re.findall(r"^\s*\|?Depends: (\S+)", run(["apt-cache", "depends", package], self.env), re.MULTILINE)

    def apt_get(self, arguments: list[str], folder: Path) -> None:
        """Runs apt-get for this suite in `folder`; lists that have grown stale are refreshed once."""
        folder.mkdir(parents=True, exist_ok=True)
        with locked(self.root / "apt"):
            self.configure()
            try:
                run(["apt-get", "-q", *arguments], self.env, folder)
            except BenchError:
                self.update()
                run(["apt-get", "-q", *arguments], self.env, folder)

    def download(self, packages: Iterable[str], folder: Path) -> list[Path]:
        """Downloads binary packages into `folder`."""
        wanted = list(packages)
        say(f"downloading from Debian {self.name}: {' '.join(wanted)}")
        self.apt_get(["download", *wanted], folder)
        return sorted(folder.glob("*.deb"))

    def download_source(self, package: str, folder: Path) -> Path:
        """Downloads the upstream archive of the source package that `package` is made from."""
        say(f"downloading from Debian {self.name}: the source of {package}")
        self.apt_get(["source", "--download-only", "--tar-only", package], folder)
        archives = sorted(folder.glob("*.orig.tar.*"))
        if len(archives) != 1:
            raise BenchError(
                f"the source of {package} in {self.name} has {len(archives)} upstream archives, expected one"
            )
        return archives[0]

    def unpack(self, packages: Iterable[str], root: Path) -> None:
        """Downloads packages and unpacks their files below `root` (nothing is configured or run)."""
        folder = root.with_name(f"{root.name}.debs")
        for package in self.download(packages, folder):
            run(["dpkg-deb", "-x", str(package), str(root)])
        shutil.rmtree(folder)


def need_programs(programs: Mapping[str, str]) -> None:
    """Installs the Debian packages (values) of those programs or files (keys) that the machine lacks, and says so."""
    search = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"

    def there(name: str) -> bool:
        return Path(name).exists() if name.startswith("/") else shutil.which(name, path=search) is not None

    missing = sorted({package for name, package in programs.items() if not there(name)})
    if not missing:
        return
    command = ["apt-get", "install", "-y", "-q", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=600", *missing]
    if os.geteuid() != 0:
        raise BenchError(f"this machine lacks {', '.join(missing)}: run `sudo {' '.join(command)}`")
    say(f"this machine lacks {', '.join(missing)}: installing with apt-get")
    noninteractive = {"DEBIAN_FRONTEND": "noninteractive"}
    with locked(cache_root() / "apt" / "machine"):
        try:
            run(command, noninteractive)
        except BenchError:
            run(["apt-get", "update", "-q"])
            run(command, noninteractive)
