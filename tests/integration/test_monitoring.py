"""The rules and dashboards of deploy/monitoring: their metrics exist and their queries return data."""

import json
import re
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request

import pytest
import yaml

from penstock_testing import DEPENDENCIES, REPOSITORY, Process, at_once

MONITORING = REPOSITORY / "deploy/monitoring"
RULES = MONITORING / "penstock.rules.yaml"
DASHBOARDS = sorted((MONITORING / "grafana").glob("*.json"))
PAGE = (REPOSITORY / "docs/api/metrics.md").read_text()
METRIC = re.compile(r"\b(?:penstock|process|tgi|vllm)[_:][a-z0-9_:]+")


def documented():
    """Every name that /metrics can have, those of histograms with their suffixes."""
    names = set()
    for name, kind in re.findall(r"^\| `([\w:]+)` \| (\w+) \|", PAGE, re.M):
        names.add(name)
        if kind == "histogram":
            names |= {name + suffix for suffix in ("_bucket", "_sum", "_count")}
    assert len(names) > 100
    return names


def rules():
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def queries(path):
    """(panel, query) of a dashboard, for every server and with a short range."""
    for panel in json.loads(path.read_text())["panels"]:
        for target in panel["targets"]:
            expr = target["expr"].replace("$__rate_interval", "30s").replace("$instance", ".*")
            assert "$" not in expr, expr
            yield panel["title"], expr


def test_every_metric_of_the_rules_exists():
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    used = {name for rule in rules() for name in METRIC.findall(rule["expr"])}
    assert used and used - recorded - documented() == set()


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_every_metric_of_a_dashboard_exists(path):
    used = {name for _, expr in queries(path) for name in METRIC.findall(expr)}
    assert used and used - documented() == set()


def test_every_alert_says_what_and_what_to_do():
    for rule in rules():
        if "alert" in rule:
            assert set(rule["annotations"]) == {"summary", "action"}, rule["alert"]
            assert rule["labels"]["severity"] in ("critical", "warning"), rule["alert"]


def program(name):
    unpacked = DEPENDENCIES / "prometheus" / name
    found = unpacked if unpacked.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed (deploy/bootstrap --tests fetches Debian's)")
    return found


@pytest.mark.parametrize("arguments", [("check", "rules", "penstock.rules.yaml"),
                                       ("test", "rules", "penstock.rules.test.yaml"),
                                       ("check", "config", "prometheus.yaml")], ids=" ".join)
def test_promtool(arguments):
    ran = subprocess.run([program("promtool"), *arguments], cwd=MONITORING, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.fixture
def prometheus(tmp_path):
    """prometheus(server): an address of a Prometheus that scrapes the server every second."""
    binary = program("prometheus")
    started = []

    def start(server):
        config = tmp_path / "prometheus.yaml"
        config.write_text(json.dumps({
            "global": {"scrape_interval": "1s"},
            "scrape_configs": [{"job_name": "penstock",
                                "static_configs": [{"targets": [f"127.0.0.1:{server.port}"]}]}]}))
        port = free_port()
        process = Process([binary, f"--config.file={config}", f"--storage.tsdb.path={tmp_path}/tsdb",
                           f"--web.listen-address=127.0.0.1:{port}", "--log.level=info"])
        started.append(process)
        process.wait_line("Server is ready to receive web requests", 30)
        return f"http://127.0.0.1:{port}"

    yield start
    for process in started:
        process.stop()


KEY = {"Authorization": "Bearer secret"}  # figures by tenant need a key


def result_of(address, expr):
    url = f"{address}/api/v1/query?" + urllib.parse.urlencode({"query": expr})
    with urllib.request.urlopen(url, timeout=10) as answer:
        return [sample for sample in json.load(answer)["data"]["result"] if sample["value"][1] != "NaN"]


def load(server):
    """Every kind of request that a panel shows: good, refused, cancelled, waiting, with a shared prefix."""
    prefix = "the same long beginning of a prompt " * 20

    def ask(inputs, expect=200, **parameters):
        server.json("POST", "/generate", {"inputs": inputs, "parameters": parameters}, expect, KEY)

    at_once(12, lambda i: ask(f"{prefix}{i}", max_new_tokens=40))
    ask("x", 422, temperature=0.0)
    stream = server.generate_stream("left alone", max_new_tokens=400, headers=KEY)
    next(stream)
    stream.close()


def test_every_query_of_a_dashboard_returns_data(simulated, prometheus):
    server = simulated("--step-time", "20ms", "--max-batch-size", "4", "--api-key", "secret")
    address = prometheus(server)
    missing = dict(expr for path in DASHBOARDS for expr in ((expr, title) for title, expr in queries(path)))
    assert len(missing) > 30
    deadline = time.monotonic() + 60
    while missing:  # rates need two scrapes with different values
        assert time.monotonic() < deadline, f"no data: {json.dumps(missing, indent=1)}"
        load(server)
        missing = {expr: title for expr, title in missing.items() if not result_of(address, expr)}
