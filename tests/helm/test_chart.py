"""The Helm chart: every values file gives valid manifests, and wrong values are refused."""

import functools
import json
import os
import pathlib
import re
import shutil
import subprocess

import jsonschema
import pytest
import yaml

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
DEPENDENCIES = pathlib.Path(os.environ.get("PENSTOCK_DEPS_DIR", REPOSITORY / ".deps"))
CHART = REPOSITORY / "deploy/helm/penstock"
VALUES = sorted((HERE / "values").glob("*.yaml"))
KUBERNETES = ["1.30", "1.34"]
SCHEMAS = {path.stem: json.loads(path.read_text()) for path in (HERE / "schemas").glob("*.json")}
DEFAULTS = yaml.safe_load((CHART / "values.yaml").read_text())


@functools.cache
def find_helm():
    """(program, None), or (None, the reason why there is none)."""
    if found := shutil.which("helm"):
        return found, None
    build = subprocess.run([HERE / "build_helm"], capture_output=True, text=True)
    if build.returncode != 0:
        return None, (build.stderr.strip() or "helm is not built").splitlines()[-1]
    return DEPENDENCIES / "helm/bin/helm", None


def helm(*arguments):
    program, reason = find_helm()
    if program is None:
        pytest.skip(reason)
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)


@functools.cache
def render(*arguments, version=KUBERNETES[-1]):
    ran = helm("template", "test", CHART, "--namespace", "llm", "--kube-version", version, *arguments)
    assert ran.returncode == 0, ran.stderr
    return [manifest for manifest in yaml.safe_load_all(ran.stdout) if manifest]


def one(manifests, kind):
    return next(manifest for manifest in manifests if manifest["kind"] == kind)


def options():
    """Every name of an option, from docs/api/options.md."""
    page = (REPOSITORY / "docs/api/options.md").read_text()
    return set(re.findall(r"`--([a-z0-9-]+)`", page))


def test_there_are_twenty_values_files():
    assert len(VALUES) >= 20


def test_the_default_image_is_this_version():
    version = re.search(r"project\(penstock VERSION ([\d.]+)", (REPOSITORY / "CMakeLists.txt").read_text())
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == version.group(1)


def test_the_schema_has_every_default():
    schema = json.loads((CHART / "values.schema.json").read_text())

    def compare(values, described, path):
        if not isinstance(values, dict) or described.get("additionalProperties") is not False:
            return
        for key, value in values.items():
            assert key in described["properties"], f"{path}.{key} is not in values.schema.json"
            compare(value, described["properties"][key], f"{path}.{key}")

    compare(DEFAULTS, schema, "")


@pytest.mark.parametrize("path", VALUES, ids=lambda path: path.stem)
def test_values_are_within_the_schema_and_name_real_options(path):
    values = yaml.safe_load(path.read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    merged = {**DEFAULTS, **values}
    for key, value in values.items():
        if isinstance(value, dict) and isinstance(DEFAULTS.get(key), dict):
            merged[key] = {**DEFAULTS[key], **value}
    jsonschema.validate(merged, schema)
    assert set(values["config"]) - options() == set()


@pytest.mark.parametrize("path", VALUES, ids=lambda path: path.stem)
def test_helm_lint(path):
    ran = helm("lint", "--strict", CHART, "-f", path)
    assert ran.returncode == 0, ran.stdout


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("path", VALUES, ids=lambda path: path.stem)
def test_manifests_are_valid(path, version):
    validator = pytest.importorskip("kubernetes_validate")
    for manifest in render("-f", path, version=version):
        if manifest["kind"] in SCHEMAS:
            jsonschema.validate(manifest, SCHEMAS[manifest["kind"]])
        else:
            validator.validate(manifest, version, strict=True)


@pytest.mark.parametrize("path", VALUES, ids=lambda path: path.stem)
def test_pods_are_locked_down_and_drain_in_time(path):
    pod = one(render("-f", path), "Deployment")["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                            "capabilities": {"drop": ["ALL"]}}
    config = yaml.safe_load(one(render("-f", path), "ConfigMap")["data"]["penstock.yaml"])
    pause = container.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
    assert pod["terminationGracePeriodSeconds"] > pause + config["graceful-termination-timeout"]
    assert set(config) - options() == set()
    mounts = {mount["name"] for mount in container["volumeMounts"]}
    assert mounts == {volume["name"] for volume in pod["volumes"]}


def test_the_service_selects_the_pods_and_the_policy_opens_their_port():
    manifests = render("--set", "config.model-id=m")
    labels = one(manifests, "Deployment")["spec"]["template"]["metadata"]["labels"]
    for kind, selector in [("Service", ("spec", "selector")),
                           ("NetworkPolicy", ("spec", "podSelector", "matchLabels")),
                           ("PodDisruptionBudget", ("spec", "selector", "matchLabels"))]:
        found = one(manifests, kind)
        for key in selector:
            found = found[key]
        assert found.items() <= labels.items(), kind


@pytest.mark.parametrize("wrong", [
    "config.model-id=", "replica=2", "image.tagg=x", "config.port=1", "config.hostname=x", "config.Model=x",
    "probes.readiness.path=/x", "port=80", "persistence.size=big", "persistence.kind=disk",
    "keda.enabled=true,autoscaling.enabled=true"])
def test_wrong_values_are_refused(wrong):
    ran = helm("template", "test", CHART, "--kube-version", KUBERNETES[-1], "--set", "config.model-id=m",
               "--set", wrong)
    assert ran.returncode != 0 and "values don't meet the specifications of the schema" in ran.stderr, ran
