# SPDX-License-Identifier: Apache-2.0
"""The command itself, with a real runc and real containers on this host; the kernel's side is a folder."""

import json
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cgpu.core.names import ENV_CONTAINER, ENV_DEV, ENV_VISIBLE_DEVICES
from tests.runtime.fakes import Machine, lasting

FRONT = Path(__file__).parents[2] / "cgpu/runtime/front.sh"
ROOT = Path(__file__).parents[2]
ID = "0123456789abcdef" * 4
SHARE = [f"{ENV_CONTAINER}=6", f"{ENV_DEV}=15", f"{ENV_VISIBLE_DEVICES}=all"]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """runc's own folder."""
    return tmp_path / "state"


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A bundle with busybox, whose program looks at the nodes that it was given."""
    place = tmp_path / "bundle"
    (place / "rootfs/bin").mkdir(parents=True)
    shutil.copy2(shutil.which("busybox") or "/bin/busybox", place / "rootfs/bin/busybox")
    subprocess.run(["runc", "spec", "-b", place], check=True)
    change(place, lambda spec: spec["process"].update(terminal=False, args=["/bin/busybox", "cat", "/dev/nvidia0"]))
    change(place, lambda spec: spec["linux"].pop("seccomp", None))
    return place


def change(bundle: Path, how: Callable[[dict], object]) -> dict:  # type: ignore[type-arg]
    """The bundle's document, changed in place."""
    document = json.loads((bundle / "config.json").read_text())
    how(document)
    (bundle / "config.json").write_text(json.dumps(document))
    return dict(document)


@pytest.fixture
def wrapper(tmp_path: Path, state: Path) -> Iterator[Run]:
    """Runs the wrapper's Python part over the real runc; containers that are left are removed."""

    def run(*words: object, runtime: str = "runc") -> subprocess.CompletedProcess[str]:
        given = map(str, (tmp_path, runtime, "--root", state, *words))
        command = [sys.executable, "-m", "tests.runtime.wrapper", *given]
        out = tmp_path / "out"
        with out.open("w") as file:  # a container keeps the descriptors, so a pipe would never end
            done = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, cwd=ROOT)
        return subprocess.CompletedProcess(command, done.returncode, out.read_text(), "")

    yield run
    subprocess.run(["runc", "--root", state, "delete", "--force", ID], capture_output=True)


def test_a_real_container_has_its_nodes_and_its_end_ends_them(wrapper: Run, tmp_path: Path, bundle: Path) -> None:
    change(bundle, lambda spec: spec["process"]["env"].extend(SHARE))
    created = wrapper("create", "--bundle", bundle, ID)
    machine = Machine(tmp_path)

    assert (created.returncode, created.stdout) == (0, "")
    assert machine.left == lasting("0123456789ab")
    started = wrapper("start", ID)
    deleted = wrapper("delete", "--force", ID)
    assert (started.returncode, deleted.returncode) == (0, 0), started.stdout + deleted.stdout
    assert machine.left == []


def test_the_container_sees_what_was_mounted(wrapper: Run, bundle: Path) -> None:
    change(bundle, lambda spec: spec["process"]["env"].extend(SHARE))
    done = wrapper("run", "--bundle", bundle, ID)

    assert (done.returncode, done.stdout) == (0, "0123456789ab")


def test_a_creation_that_the_runtime_refuses_leaves_nothing(wrapper: Run, tmp_path: Path, bundle: Path) -> None:
    change(bundle, lambda spec: spec["process"]["env"].extend(SHARE))
    change(bundle, lambda spec: spec["process"].update(args=["/no/such/program"]))
    done = wrapper("create", "--bundle", bundle, ID)

    assert done.returncode != 0
    assert "/no/such/program" in done.stdout
    assert Machine(tmp_path).left == []


def test_a_refusal_is_one_sentence_where_the_caller_looks(wrapper: Run, tmp_path: Path, bundle: Path) -> None:
    change(bundle, lambda spec: spec["process"]["env"].extend([*SHARE, f"{ENV_CONTAINER}=six"]))
    log = tmp_path / "log.json"
    done = wrapper("--log", log, "--log-format", "json", "create", "--bundle", bundle, ID)

    entry = json.loads(log.read_text())
    assert done.returncode == 1
    assert done.stdout == entry["msg"] + "\n"
    assert (entry["level"], entry["msg"][:42]) == ("error", "cgpu: ALIYUN_COM_GPU_MEM_CONTAINER=six: 's")


@pytest.mark.parametrize("value", ["6\n7", "6\x1b[2J", "6\u2028", "\t", "6\r"])
def test_a_value_with_control_characters_is_one_line_all_the_same(wrapper: Run, bundle: Path, value: str) -> None:
    change(bundle, lambda spec: spec["process"]["env"].extend([*SHARE, f"CGPU_DISABLE={value}x"]))
    done = wrapper("create", "--bundle", bundle, ID)

    assert done.returncode == 1
    assert done.stdout.startswith("cgpu: CGPU_DISABLE=")
    assert done.stdout[:-1].isprintable()
    assert done.stdout.endswith("\n")


def test_a_fault_of_ours_is_told_too(wrapper: Run, tmp_path: Path, bundle: Path) -> None:
    (bundle / "config.json").write_text('{"process": {"env": 7}}')
    log = tmp_path / "log.json"
    done = wrapper("--log", log, "--log-format", "json", "create", "--bundle", bundle, ID)

    assert done.returncode == 1
    assert json.loads(log.read_text())["msg"].startswith("cgpu: a fault of cgpu-runtime: TypeError")


def test_what_a_killed_wrapper_left_is_ended_by_the_next(wrapper: Run, tmp_path: Path, bundle: Path) -> None:
    fresh = (bundle / "config.json").read_text()
    change(bundle, lambda spec: spec["process"]["env"].extend(SHARE))
    wrapper("create", "--bundle", bundle, ID)
    subprocess.run(["runc", "--root", tmp_path / "state", "delete", "--force", ID], check=True)
    (bundle / "config.json").write_text(fresh)

    assert wrapper("create", "--bundle", bundle, "f" * 64).returncode == 0
    assert Machine(tmp_path).left == []
    assert wrapper("delete", "--force", "f" * 64).returncode == 0


def test_whoever_kills_the_wrapper_kills_the_runtime(tmp_path: Path, bundle: Path) -> None:
    change(bundle, lambda spec: spec["process"]["env"].extend(SHARE))
    slow = tmp_path / "slow"
    os.mkfifo(tmp_path / "pid")
    slow.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 1000\n")
    slow.chmod(0o755)
    command = [
        sys.executable,
        "-m",
        "tests.runtime.wrapper",
        str(tmp_path),
        str(slow),
        "create",
        "--bundle",
        str(bundle),
        ID,
    ]
    with subprocess.Popen(command, cwd=ROOT) as wrapper:
        runtime = os.pidfd_open(int((tmp_path / "pid").read_text()))
        wrapper.kill()

    assert select.select([runtime], [], [], 60)[0] == [runtime]
    os.close(runtime)


def test_a_runtime_that_is_not_there(wrapper: Run) -> None:
    done = wrapper("state", ID, runtime="no-such-runtime")

    assert (done.returncode, done.stdout) == (
        127, "cgpu-runtime: no-such-runtime: No such file or directory; set runtime in /etc/cgpu/config.toml\n",
    )  # fmt: skip


# ---- the sh front ----


@pytest.fixture
def front(tmp_path: Path) -> Run:
    """The front beside a python3 that only says how it was called; `config` is the file's text."""
    shutil.copy2(FRONT, tmp_path / "cgpu-runtime")
    (tmp_path / "python3").write_text('#!/bin/sh\nwhile [ "$1" != -c ]; do shift; done; shift 3; echo "python3 $*"\n')
    (tmp_path / "told").write_text('#!/bin/sh\necho "told $*"\n')
    for name in ("python3", "told"):
        (tmp_path / name).chmod(0o755)

    def run(*words: str, config: str = f'runtime = "{tmp_path}/told"') -> subprocess.CompletedProcess[str]:
        (tmp_path / "config.toml").write_text(config + "\n")
        env = {**os.environ, "CGPU_CONFIG": str(tmp_path / "config.toml")}
        return subprocess.run([tmp_path / "cgpu-runtime", *words], capture_output=True, text=True, env=env)

    return run


@pytest.mark.parametrize(
    ("line", "thinks"),
    [
        pytest.param(f"--root /r --log /l --log-format json create --bundle /b {ID}", True, id="create"),
        pytest.param(f"--root=/r create --bundle /b {ID}", True, id="create, joined options"),
        pytest.param(f"run --bundle /b {ID}", True, id="run"),
        pytest.param(f"restore --bundle /b {ID}", True, id="restore"),
        pytest.param("--root /r delete --force web", True, id="delete of a free name"),
        pytest.param(f"--root /r delete --force {ID}", False, id="delete of a container without instance"),
        pytest.param(f"--root /r state {ID}", False, id="state"),
        pytest.param(f"--root create state {ID}", False, id="a root named create"),
        pytest.param(f"--log delete --root run kill {ID} 9", False, id="a log named delete"),
        pytest.param(f"exec --process /p {ID}", False, id="exec"),
        pytest.param("--version", False, id="version"),
        pytest.param("", False, id="nothing"),
    ],
)
def test_only_what_makes_or_ends_an_instance_starts_python(front: Run, tmp_path: Path, line: str, thinks: bool) -> None:
    want = f"python3 {tmp_path}/told {line}" if thinks else f"told {line}"

    assert front(*line.split()).stdout.strip() == want.strip()


def test_python_starts_without_site_where_the_package_lies_beside_it(front: Run, tmp_path: Path) -> None:
    """`bin` and `lib` as a virtual environment has them; elsewhere `site` has to find the package."""
    (tmp_path / "opt/bin").mkdir(parents=True)
    package = tmp_path / "opt/lib/python3.11/site-packages/cgpu/runtime"
    package.mkdir(parents=True)
    shutil.copy2(FRONT, tmp_path / "opt/bin/cgpu-runtime")
    (tmp_path / "opt/bin/python3").write_text('#!/bin/sh\necho "$1 $2"\n')
    (tmp_path / "opt/bin/python3").chmod(0o755)
    (tmp_path / "link").symlink_to(tmp_path / "opt/bin/cgpu-runtime")

    assert subprocess.check_output([tmp_path / "link", "create", "x"], text=True) == "-I -c\n"
    (package / "__main__.py").touch()
    assert subprocess.check_output([tmp_path / "link", "create", "x"], text=True) == "-I -S\n"


@pytest.mark.parametrize("how", ["--bundle {}", "-b {}", "--bundle={}", "--pid-file /p --bundle {}"])
@pytest.mark.parametrize(
    ("text", "thinks"),
    [
        pytest.param('{"process": {"env": ["PATH=/bin"]}}', False, id="a container without GPU"),
        pytest.param('{"process": {"env": ["NVIDIA_VISIBLE_DEVICES=all"]}}', True, id="GPUs by variable"),
        pytest.param('{"process": {"env": ["ALIYUN_COM_GPU_MEM_CONTAINER=6"]}}', True, id="a share"),
        pytest.param('{"process": {"env": ["CGPU_DISABLE=?"]}}', True, id="a switch"),
        pytest.param('{"hooks": {"prestart": [{"path": "/usr/bin/nvidia-container-runtime-hook"}]}}', True, id="a hook"),
        pytest.param('{"linux": {"devices": [{"path": "/dev/nvidia0"}]}}', True, id="a node"),
        pytest.param(None, True, id="no document"),
    ],
)  # fmt: skip
def test_a_document_without_gpus_starts_no_python(
    front: Run, tmp_path: Path, text: str | None, thinks: bool, how: str
) -> None:
    place = tmp_path / "bundle"
    place.mkdir()
    if text is not None:
        (place / "config.json").write_text(text)
    line = f"--root /r create {how.format(place)} {ID}"

    assert front(*line.split()).stdout.split()[0] == ("python3" if thinks else "told")


@pytest.mark.parametrize(
    "form",
    [
        'runtime = "{}"',
        "runtime='{}'",
        'runtime="{}" # ours',
        '# first\nprivileged = "refuse"\n  runtime\t=  "{}"  ',
        'runtime = "{}"\nlog_file = ""',
    ],
)
def test_the_front_reads_the_runtime_as_toml_means_it(front: Run, tmp_path: Path, form: str) -> None:
    assert front("state", "x", config=form.format(tmp_path / "told")).stdout == "told state x\n"


def test_words_arrive_as_they_were_written(front: Run) -> None:
    assert front("exec", "a  b", "", "*").stdout == "told exec a  b  *\n"


def test_the_front_over_the_real_runc() -> None:
    want = subprocess.run(["runc", "--version"], capture_output=True, text=True, check=True)

    assert subprocess.run([FRONT, "--version"], capture_output=True, text=True).stdout == want.stdout
