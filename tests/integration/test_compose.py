"""deploy/compose.yaml: its files exist, its options are options, and Prometheus asks the port that is served."""

import re

import yaml

from penstock_testing import REPOSITORY

DEPLOY = REPOSITORY / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def test_every_file_that_is_mounted_exists():
    mounts = [volume for service in COMPOSE["services"].values() for volume in service["volumes"]]
    files = [mount.split(":")[0] for mount in mounts if mount.startswith(".")]
    assert len(files) >= 5
    assert [file for file in files if not (DEPLOY / file).exists()] == []
    named = {mount.split(":")[0] for mount in mounts if not mount.startswith(".")}
    assert named == set(COMPOSE["volumes"])


def test_grafana_gets_every_dashboard():
    mounted = {volume.split(":")[0] for volume in COMPOSE["services"]["grafana"]["volumes"]}
    for path in (DEPLOY / "monitoring/grafana").glob("*.json"):
        assert f"./{path.relative_to(DEPLOY)}" in mounted


def test_prometheus_asks_the_port_that_is_served():
    environment = COMPOSE["services"]["penstock"]["environment"]
    config = yaml.safe_load((DEPLOY / "monitoring/prometheus.yaml").read_text())
    assert config["scrape_configs"][0]["static_configs"][0]["targets"] == [f"penstock:{environment['PENSTOCK_PORT']}"]
    assert config["scrape_configs"][0]["job_name"] == "penstock"


def test_the_variables_and_flags_are_options():
    options = set(re.findall(r"`--([a-z0-9-]+)`", (REPOSITORY / "docs/api/options.md").read_text()))
    server = COMPOSE["services"]["penstock"]
    names = [name for name in server["environment"] if name.startswith("PENSTOCK_")]
    assert {name.removeprefix("PENSTOCK_").lower().replace("_", "-") for name in names} - options == set()
    assert {flag.removeprefix("--") for flag in server["command"] if flag.startswith("--")} - options == set()


def test_the_image_is_this_version():
    version = re.search(r"project\(penstock VERSION ([\d.]+)", (REPOSITORY / "CMakeLists.txt").read_text())
    assert COMPOSE["services"]["penstock"]["image"] == f"penstock:${{PENSTOCK_VERSION:-{version.group(1)}}}"
