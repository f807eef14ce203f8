"""penstock-plan chooses a fleet and writes a configuration that the launcher takes."""

import json
import re
import subprocess

import pytest

from penstock_testing import BIN, DEMO_MODEL

MACHINES = """\
h100: {model: h100, count: 4, price: 3, watts: 700}
a100: {model: a100, count: 4, price: 1.5, watts: 400}
"""


@pytest.fixture
def machines(tmp_path):
    path = tmp_path / "machines.yaml"
    path.write_text(MACHINES)
    return path


def plan(machines, *options, program=(BIN / "penstock-plan",)):
    return subprocess.run([*program, "--machines", machines, "--requests", "80",
                           "--slo-ttft", "500ms", "--slo-inter-token", "40ms",
                           "--tensor-parallel", "1,2", "--budgets", "512",
                           "--admissions", "guaranteed", *options],
                          capture_output=True, text=True, timeout=300)


def test_the_launcher_takes_the_written_plan(machines, tmp_path):
    written = tmp_path / "server.yaml"
    done = plan(machines, "--model", DEMO_MODEL, "--objective", "cost", "--rate", "20",
                "--write", written, "--json", tmp_path / "plan.json")
    assert done.returncode == 0, done.stderr
    choice = json.loads((tmp_path / "plan.json").read_text())["plans"][0]
    assert choice["machine"] == "a100" and choice["attainment"] >= 0.9
    assert "what would change the choice:" in done.stdout
    shown = subprocess.run([BIN / "penstock-launcher", "--config", written, "--print-config"],
                           capture_output=True, text=True, timeout=60)
    assert shown.returncode == 0, shown.stderr
    for name, value in (("num-shard", choice["tensor_parallel"]),
                        ("num-replicas", choice["groups"]),
                        ("max-step-tokens", choice["max_step_tokens"]),
                        ("order", "fcfs"), ("admission", "guaranteed")):
        assert re.search(rf"^ *(--)?{name}[ =]+{value}\b", shown.stdout, re.M), shown.stdout


def test_the_same_seed_gives_the_same_plan(machines):
    words = ("--model", "llama-3-8b", "--seed", "5", "--json", "-", "--no-changes")
    first = plan(machines, *words)
    again = plan(machines, *words, "--threads", "1")
    assert first.returncode == 0 and first.stdout == again.stdout, first.stderr
    assert "seed 5" in first.stdout


def test_a_rate_that_no_plan_serves_is_said_with_the_highest(machines):
    done = plan(machines, "--model", "llama-3-8b", "--objective", "power", "--rate", "100000")
    assert done.returncode == 1
    assert "no setting meets the objective" in done.stderr
    assert "the highest rate is" in done.stderr


def test_the_command_calls_itself_as_it_was_started():
    shown = subprocess.run([BIN / "penstock", "plan", "--help"], capture_output=True, text=True)
    assert shown.stdout.startswith("Usage: penstock plan "), shown.stdout + shown.stderr
