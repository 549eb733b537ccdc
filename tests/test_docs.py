# SPDX-License-Identifier: Apache-2.0
"""The documents tell of every name there is, of none that is not, and their links lead somewhere."""

import argparse
import dataclasses
import json
import re
import subprocess
from collections.abc import Iterable, Iterator
from enum import EnumType
from pathlib import Path
from typing import Any, cast

import pytest
from prometheus_client.core import Metric

import cgpu.cli.inspect
import cgpu.cli.module
import cgpu.cli.sandbox
import cgpu.cli.smi
from cgpu.cli.main import COMMANDS
from cgpu.core import names
from cgpu.kube.client import KubeClient
from deviceplugin.metrics import UsageCollector
from deviceplugin.options import Options
from extender.__main__ import Settings
from extender.binder import Result
from extender.books import Books
from extender.cache import Cache
from extender.metrics import Metrics
from extender.setbacks import Setbacks
from extender.verbs import Verbs
from extender.waiting import Reason

ROOT = Path(__file__).parents[1]
REFERENCE = (ROOT / "docs" / "reference.md").read_text()
DOCUMENTS = sorted(
    subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()
)  # fmt: skip
LINK = re.compile(r"\[[^\]]*\]\((?!https?://|mailto:)([^)\s]*)\)")


def _constants() -> Iterator[str]:
    for name, value in vars(names).items():
        if isinstance(value, EnumType):
            yield from (str(member) for member in cast("Iterable[Any]", value))
        elif name.isupper():
            yield str(value)


def _fields(settings: type) -> set[str]:
    return {"--" + field.name.replace("_", "-") for field in dataclasses.fields(settings)}


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from _parsers(child)


def _arguments(parser: argparse.ArgumentParser) -> set[str]:
    """Flags and verbs of a command line."""
    flags = {flag for each in _parsers(parser) for action in each._actions for flag in action.option_strings}
    verbs = {
        name
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
        for name in cast("dict[str, Any]", action.choices)
    }
    return (flags | verbs) - {"-h", "--help"}


FLAGS = {
    "cgpu-extender": _fields(Settings),
    "cgpu-device-plugin": _fields(Options),
    "kubectl inspect cgpu": _arguments(cgpu.cli.inspect.parser()),
    "cgpu-smi": _arguments(cgpu.cli.smi.parser()),
    "cgpu": _arguments(cgpu.cli.sandbox._parser()) | _arguments(cgpu.cli.module.parser()) | set(COMMANDS),
}


def _values(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    for name, below in schema["properties"].items():
        if "properties" in below:
            yield from _values(below, f"{path}{name}.")
        elif name != "global":  # Helm's own, for charts that contain this one
            yield path + name


def _samples(families: Iterable[Metric]) -> set[str]:
    """Names as Prometheus shows them."""
    suffix = {"counter": "_total", "info": "_info"}
    return {family.name + suffix.get(family.type, "") for family in families}


def _metrics() -> set[str]:
    books = Books()
    extender = Metrics(Cache(cast("KubeClient", None), books), Verbs(books, Setbacks()), ())
    plugin = UsageCollector("node", lambda: ([], []))
    return _samples(extender.registry.collect()) | _samples(plugin.collect())


CHART = set(_values(json.loads((ROOT / "deploy/helm/ack-ai-installer/values.schema.json").read_text())))
VERBS = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))


def _section(heading: str) -> str:
    """Text below a heading, up to the next of its rank or higher."""
    rank = len(heading) - len(heading.lstrip("#"))
    found = re.search(rf"^{re.escape(heading)}\n(.*?)(?=^#{{1,{rank}}} |\Z)", REFERENCE, re.MULTILINE | re.DOTALL)
    assert found, f"docs/reference.md has no heading {heading!r}"
    return found[1]


def _told(text: str, name: str) -> bool:
    """Whether `name` stands in the text as a whole word."""
    return re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w-]|[./]\w)", text) is not None


@pytest.mark.parametrize("name", sorted(set(_constants()) - {names.DOMAIN}))
def test_a_constant_is_told(name: str) -> None:
    assert f"`{name}`" in REFERENCE or (name.isdigit() and _told(REFERENCE, name))


@pytest.mark.parametrize(
    ("command", "flag"), [(command, flag) for command, flags in FLAGS.items() for flag in sorted(flags)]
)
def test_an_argument_is_told_below_its_command(command: str, flag: str) -> None:
    assert _told(_section(f"### {command}"), flag)


@pytest.mark.parametrize("command", FLAGS)
def test_no_flag_is_told_that_does_not_exist(command: str) -> None:
    rows = [line for line in _section(f"### {command}").splitlines() if line.startswith("|")]

    told = {flag for row in rows for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]+", row.split("|")[1])}
    assert told <= FLAGS[command]


@pytest.mark.parametrize("name", sorted(CHART))
def test_a_value_of_the_chart_is_told(name: str) -> None:
    assert f"`{name}`" in _section("## Values of the chart")


def test_no_value_is_told_that_the_chart_refuses() -> None:
    rows = [line.split("|")[1] for line in _section("## Values of the chart").splitlines() if line.startswith("| `")]

    assert {name for row in rows for name in re.findall(r"`([^`]+)`", row)} == CHART


def test_metrics_are_told_exactly() -> None:
    rows = [line.split("|")[1] for line in _section("## Metrics").splitlines() if line.startswith("| `")]

    assert {row.strip(" `") for row in rows} == _metrics()


@pytest.mark.parametrize("label", [*Result, *Reason])
def test_a_label_of_the_counters_is_told(label: str) -> None:
    assert f"`{label}`" in _section("## Metrics")


def test_verbs_of_make_are_told_exactly() -> None:
    assert set(re.findall(r"`make ([a-z-]+)`", _section("### make"))) == VERBS


@pytest.mark.parametrize("variable", sorted(names.__dict__[key] for key in vars(names) if key.startswith("ENV_")))
def test_a_variable_of_containers_is_told_where_they_look(variable: str) -> None:
    assert f"`{variable}`" in _section("## In a container")


def test_parameters_of_the_kernel_module_are_told_exactly() -> None:
    made = {
        name
        for source in (ROOT / "kmod").glob("*.c")
        for name in re.findall(r"^module_param(?:_named)?\((\w+),", source.read_text(), re.MULTILINE)
    }

    assert _first_cells("## Kernel module", "parameter") == made


def test_proc_files_of_the_kernel_module_are_told_exactly() -> None:
    source = "".join(file.read_text() for file in sorted((ROOT / "kmod").glob("proc*.c")))
    made = set(re.findall(r'\{ "(\w+)", show_|proc_create\("(\w+)"', source))

    told = _first_cells("## Kernel module", "file below `/proc/cgpu_km`")
    assert {path.rpartition("/")[2] for path in told} == {a or b for a, b in made}


def _first_cells(heading: str, title: str) -> set[str]:
    """The names in the first column of the table with this title."""
    _, _, table = _section(heading).partition(f"| {title} |")
    rows = table.split("\n\n")[0].splitlines()[2:]
    return {row.split("|")[1].strip(" `") for row in rows}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document: str) -> None:
    text = re.sub(r"```.*?```", "", (ROOT / document).read_text(), flags=re.DOTALL)
    broken = [link for link in LINK.findall(text) if not _leads(ROOT / document, link)]

    assert broken == []


def _leads(document: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = document.parent / path if path else document
    return target.exists() and (not anchor or anchor in _anchors(target.read_text()))


def _anchors(text: str) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_first_screen_of_the_readme_has_what_a_newcomer_needs() -> None:
    screen = "\n".join((ROOT / "README.md").read_text().splitlines()[:40])

    assert [word for word in ("make demo", "make test", "aliyun.com/gpu-mem: 3", "```yaml") if word not in screen] == []


def test_the_pod_of_the_readme_has_six_lines() -> None:
    found = re.search(r"```yaml\n(apiVersion.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)

    assert found
    assert len(found[1].splitlines()) == 6
