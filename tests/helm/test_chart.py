# SPDX-License-Identifier: Apache-2.0
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from cgpu import __version__
from cgpu.core import names
from cgpu.settings import read_settings
from deviceplugin.options import Options
from extender.__main__ import Settings
from tests.helm.chart import FOLDER, GOLDEN, Manifest, one, refusal, render, template

NAME = "ack-ai-installer"
PLUGIN = ("DaemonSet", f"{NAME}-device-plugin")
SCHEDULER = ("Deployment", f"{NAME}-scheduler")
WHOLE = (["tolerations"], ["resources"])  # values that templates copy with all that is below them


@pytest.fixture(scope="module")
def defaults() -> list[Manifest]:
    return render()


def pod_of(manifest: Manifest) -> dict[str, Any]:
    spec: dict[str, Any] = manifest["spec"]["template"]["spec"]
    return spec


def container(manifests: list[Manifest], which: tuple[str, str], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(row for row in pod_of(one(manifests, *which))["containers"] if row["name"] == name)
    return found


def test_the_defaults_are_the_golden_file() -> None:
    """`python -m tests.helm.chart --refresh` writes it anew."""
    assert GOLDEN.read_text() == template()


def test_chart_and_package_have_one_version() -> None:
    chart = yaml.safe_load((FOLDER / "Chart.yaml").read_text())

    assert (__version__, __version__) == (chart["version"], chart["appVersion"])


def test_scheduler_configuration(defaults: list[Manifest]) -> None:
    config = yaml.safe_load(one(defaults, "ConfigMap", f"{NAME}-scheduler")["data"]["config.yaml"])
    extender = config["extenders"][0]

    assert config["profiles"] == [{"schedulerName": names.SCHEDULER_NAME}]
    assert config["percentageOfNodesToScore"] == 100
    assert config["leaderElection"]["leaderElect"] is True
    assert f"http://127.0.0.1:{names.EXTENDER_VERB_PORT}{names.EXTENDER_PREFIX}" == extender["urlPrefix"]
    assert extender["weight"] >= 200
    assert extender["nodeCacheCapable"] is True
    assert extender["ignorable"] is False
    assert extender["managedResources"] == [{"name": names.RESOURCE_MEM, "ignoredByScheduler": False}]


def test_scheduler_image_is_the_clusters_version_unless_named() -> None:
    def image(*values: str) -> str:
        return str(container(render(*values, kubernetes="1.35.1"), SCHEDULER, "kube-scheduler")["image"])

    assert image() == "registry.k8s.io/kube-scheduler:v1.35.1"
    assert image("scheduler.image.repository=r/k", "scheduler.image.tag=v1.2.3") == "r/k:v1.2.3"


def walk(value: object) -> Iterator[dict[str, Any]]:
    """Every mapping in a manifest."""
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if isinstance(value, dict):
        yield value
    for child in children:
        yield from walk(child)


@pytest.mark.parametrize("kind", ["ClusterRole", "Role"])
def test_roles_hold_no_wildcard_and_no_secret(defaults: list[Manifest], kind: str) -> None:
    rules = [rule for row in defaults if row["kind"] == kind for rule in row["rules"]]

    assert rules
    for rule in rules:
        assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
        assert not {"secrets", "pods/exec"} & set(rule["resources"])
        assert "delete" not in rule["verbs"]


def test_no_container_is_privileged_unless_the_module_is_used(defaults: list[Manifest]) -> None:
    with_module = render("devicePlugin.privileged=true", "defaultMode=cgpu")

    assert [c["privileged"] for c in _contexts(with_module) if c.get("privileged")] == [True]
    for context in _contexts(defaults):
        assert not context.get("privileged")
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}


def test_a_privileged_plugin_loads_the_module_with_its_parameters() -> None:
    values = ("devicePlugin.module.parameters.slice_ms=2", "devicePlugin.module.parameters.overcommit=1")
    plugin = one(render("devicePlugin.privileged=true", *values), "DaemonSet", "ack-ai-installer-device-plugin")
    container = plugin["spec"]["template"]["spec"]["containers"][0]

    wanted = {"--host-root=/host", "--load-module", "--module-parameters=overcommit=1,slice_ms=2"}
    assert wanted <= set(container["args"])
    [host] = [row for row in container["volumeMounts"] if row["mountPath"] == "/host"]
    assert host["mountPropagation"] == "HostToContainer"


def test_a_module_that_somebody_else_loads_is_left_alone() -> None:
    text = template("devicePlugin.privileged=true", "devicePlugin.module.load=false")

    assert "--host-root=/host" in text
    assert "--load-module" not in text


def _contexts(manifests: list[Manifest]) -> list[dict[str, Any]]:
    return [found["securityContext"] for row in manifests for found in walk(row) if "securityContext" in found]


def test_the_plugin_runs_where_a_label_says_so_or_everywhere_by_the_default_mode(defaults: list[Manifest]) -> None:
    terms = pod_of(one(defaults, *PLUGIN))["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]

    assert {
        names.LABEL_SCHEDULE,
        names.LABEL_SERVING,
        names.LABEL_LEGACY_GPUSHARE,
        names.LABEL_LEGACY_CGPU,
        names.LABEL_LEGACY_NO_ISOLATION,
    } == {term["matchExpressions"][0]["key"] for term in terms}
    assert "affinity" not in pod_of(one(render("defaultMode=share"), *PLUGIN))


def test_one_plugin_a_node_goes_before_the_next_comes(defaults: list[Manifest]) -> None:
    """Two plugins on a node would take the kubelet's socket from each other."""
    assert one(defaults, *PLUGIN)["spec"]["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": 1, "maxSurge": 0}


@pytest.mark.parametrize(
    ("values", "which", "name", "want"),
    [
        pytest.param(["defaultMode=share"], PLUGIN, "device-plugin", "--default-mode=share", id="default mode"),
        pytest.param(
            ["devicePlugin.corePolicy=2"], PLUGIN, "device-plugin", "--core-policy=2", id="policy of core_mem"
        ),
        pytest.param(["devicePlugin.maxInstances=7"], PLUGIN, "device-plugin", "--max-instances=7", id="shares a card"),
        pytest.param(["devicePlugin.reserveMiB=256"], PLUGIN, "device-plugin", "--reserve-mib=256", id="reserve"),
        pytest.param(["devicePlugin.ignoredXids={13,31}"], PLUGIN, "device-plugin", "--ignored-xids=13,31", id="xids"),
        pytest.param(["devicePlugin.assumeCDI=true"], PLUGIN, "device-plugin", "--assume-cdi", id="assume CDI"),
        pytest.param(
            ["highPriorityClasses={gold,silver}"],
            PLUGIN,
            "device-plugin",
            "--high-priority-classes=gold,silver",
            id="priority classes",
        ),
        pytest.param(
            ["devicePlugin.simulate.enabled=true"],
            PLUGIN,
            "device-plugin",
            "--simulate=/etc/cgpu/cards.yaml",
            id="simulated cards",
        ),
        pytest.param(["logLevel=debug"], PLUGIN, "device-plugin", "--log-level=debug", id="plugin's log level"),
        pytest.param(["logFormat=json"], SCHEDULER, "extender", "--log-format=json", id="extender's log format"),
        pytest.param(["scheduler.name=other"], SCHEDULER, "extender", "--scheduler-names=other", id="scheduler's name"),
        pytest.param(["extender.compareSeconds=9"], SCHEDULER, "extender", "--compare-seconds=9", id="comparison"),
    ],
)
def test_a_value_becomes_a_flag(values: list[str], which: tuple[str, str], name: str, want: str) -> None:
    assert want in container(render(*values), which, name)["args"]


def test_flags_exist_in_the_programs(defaults: list[Manifest]) -> None:
    """A flag that a service does not know would keep its pod from starting."""
    switched = render("highPriorityClasses={gold}", "devicePlugin.assumeCDI=true", "devicePlugin.simulate.enabled=true")
    read_settings(Settings, "cgpu-extender", container(switched, SCHEDULER, "extender")["args"], {})
    options = read_settings(Options, "cgpu-device-plugin", container(switched, PLUGIN, "device-plugin")["args"], {})

    assert options.assume_cdi is True
    assert options.high_priority_classes == ("gold",)


def test_simulated_cards_mount_their_folder_and_no_driver() -> None:
    plugin = one(render("devicePlugin.simulate.enabled=true", "devicePlugin.simulate.file=/srv/sim/c.yaml"), *PLUGIN)
    spec = pod_of(plugin)

    assert {"path": "/srv/sim", "type": "Directory"} in [row["hostPath"] for row in spec["volumes"]]
    assert [row["name"] for row in spec["containers"][0]["env"]] == ["NODE_NAME"]


def test_service_monitors_only_on_request(defaults: list[Manifest]) -> None:
    asked = render("metrics.serviceMonitor.enabled=true", "metrics.serviceMonitor.interval=5s")

    assert not [row for row in defaults if row["kind"] == "ServiceMonitor"]
    found = [row["spec"]["endpoints"][0] for row in asked if row["kind"] == "ServiceMonitor"]
    assert sorted(row["path"] for row in found) == ["/gpushare-scheduler/metrics", "/metrics"]
    assert {"5s"} == {row["interval"] for row in found}


def test_an_older_cluster_gets_no_mutating_policy_and_is_told() -> None:
    older = render(kubernetes="1.34.4", served=())

    assert not [row for row in older if row["kind"].startswith("MutatingAdmissionPolicy")]
    assert [row for row in older if row["kind"] == "ValidatingAdmissionPolicy"]
    refusing = one(older, "ValidatingAdmissionPolicy", f"{NAME}-scheduler-name")
    assert "schedulerName: cgpu-scheduler" in refusing["spec"]["validations"][0]["messageExpression"]


def test_admission_can_be_left_out() -> None:
    assert not [row for row in render("admission.enabled=false") if "Admission" in row["kind"]]


def test_every_policy_is_bound_and_fails_closed(defaults: list[Manifest]) -> None:
    for kind in ("MutatingAdmissionPolicy", "ValidatingAdmissionPolicy"):
        policies = {row["metadata"]["name"]: row for row in defaults if row["kind"] == kind}
        bound = {row["spec"]["policyName"] for row in defaults if row["kind"] == f"{kind}Binding"}

        assert policies
        assert set(policies) == bound
        assert {"Fail"} == {row["spec"]["failurePolicy"] for row in policies.values()}


def test_only_what_does_no_harm_is_merely_warned_of(defaults: list[Manifest]) -> None:
    bindings = [row["spec"] for row in defaults if row["kind"] == "ValidatingAdmissionPolicyBinding"]
    actions = {row["policyName"]: row["validationActions"] for row in bindings}

    assert actions.pop(f"{NAME}-gpu-count") == ["Warn"]
    assert [*actions.values()] == [["Deny"]] * 5


def test_the_policies_name_every_annotation_that_only_our_services_write(defaults: list[Manifest]) -> None:
    written = {
        value
        for name, value in vars(names).items()
        if name.startswith("ANNOTATION_")
        and value not in {names.ANNOTATION_DEVICES, names.ANNOTATION_CORDON, names.ANNOTATION_RESIZE_REQUEST}
    }
    for policy, want in (("pod-annotations", written), ("bindings", written | {names.ANNOTATION_RESIZE_REQUEST})):
        text = json.dumps(one(defaults, "ValidatingAdmissionPolicy", f"{NAME}-{policy}")["spec"]["variables"])
        assert want == set(re.findall(r"'((?:cgpu\.|scheduler\.|ALIYUN)[^']+)'", text))


@pytest.mark.parametrize(
    ("values", "want"),
    [
        pytest.param(["devicePlugin.maxInstance=3"], "maxInstance", id="a typo"),
        pytest.param(["deviceplugin.maxInstances=3"], "deviceplugin", id="a typo at the top"),
        pytest.param(["devicePlugin.maxInstances=26"], "26", id="more shares than the kernel module has"),
        pytest.param(["devicePlugin.maxInstances=many"], "maxInstances", id="no number"),
        pytest.param(["defaultMode=mps"], "defaultMode", id="no such mode"),
        pytest.param(["scheduler.extenderWeight=100"], "200", id="a weight that would not decide"),
        pytest.param(["scheduler.name=Our_Scheduler"], "scheduler/name", id="no scheduler's name"),
        pytest.param(["metrics.serviceMonitor.interval=soon"], "interval", id="no interval"),
        pytest.param(
            ["devicePlugin.simulate.enabled=true", "devicePlugin.privileged=true"],
            "set devicePlugin.privileged=false",
            id="simulated cards have no module",
        ),
        pytest.param(
            ["defaultMode=cgpu", "devicePlugin.simulate.enabled=true"], "set defaultMode=share", id="nothing isolates"
        ),
        pytest.param(["defaultMode=core_mem"], "set devicePlugin.privileged=true", id="cannot mount for the host"),
        pytest.param(
            ["devicePlugin.privileged=true", "devicePlugin.module.parameters.speed=9"], "speed", id="no such parameter"
        ),
    ],
)
def test_refused_values_say_which_and_why(values: list[str], want: str) -> None:
    assert want in refusal(*values)


def test_the_schema_is_closed_and_lists_what_values_yaml_has() -> None:
    def pairs(value: object, schema: dict[str, Any], path: str) -> Iterator[tuple[str, set[str], set[str]]]:
        if isinstance(value, dict) and "properties" in schema:
            assert schema["additionalProperties"] is False, path
            yield path, set(value), set(schema["properties"]) - {"global"}
            for key, child in value.items():
                yield from pairs(child, schema["properties"][key], f"{path}.{key}")

    values = yaml.safe_load((FOLDER / "values.yaml").read_text())
    schema = json.loads((FOLDER / "values.schema.json").read_text())
    for path, have, listed in pairs(values, schema, "values"):
        assert have == listed, path


def test_every_value_has_a_comment_above_it_and_a_reader() -> None:
    lines = (FOLDER / "values.yaml").read_text().splitlines()
    templates = "\n".join(file.read_text() for file in sorted(FOLDER.glob("templates/**/*.*")))
    for path, line in _leaves(lines):
        assert f".Values.{path}" in templates, f"no template reads {path}"
        assert lines[line - 1].lstrip().startswith("#"), f"{path} has no comment"


def _leaves(lines: list[str]) -> Iterator[tuple[str, int]]:
    """Keys of values.yaml that a template reads as a whole, with their line."""
    trail: list[str] = []
    for number, line in enumerate(lines):
        found = re.match(r"^( *)([a-zA-Z]+):(.*)$", line)
        if found is None or (trail[-1:] in WHOLE and len(found[1]) // 2 >= len(trail)):
            continue
        trail = [*trail[: len(found[1]) // 2], found[2]]
        if found[3].strip() or [found[2]] in WHOLE:
            yield ".".join(trail), number
