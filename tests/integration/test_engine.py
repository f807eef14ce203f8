"""--engine transformers: any model through a Python child (docs/how-to/transformers.md).

TRANSFORMERS_PYTHON names an interpreter with torch and transformers; else python3 in PATH.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest

from penstock_testing import BIN, Process, REPOSITORY, Server, at_once, is_alive, wait_gone
from transformers_models import NEW_TOKENS, PROMPTS

MODELS = REPOSITORY / "tests" / "data" / "models"
HELPER = pathlib.Path(__file__).with_name("transformers_models.py")
TYPES = ("llama", "mistral", "qwen2", "qwen3", "gpt_neox")


@pytest.fixture(scope="module")
def python():
    found = os.environ.get("TRANSFORMERS_PYTHON") or shutil.which("python3")
    lacks = "import importlib.metadata as m; [m.version(p) for p in ('torch', 'transformers', 'safetensors')]"
    if subprocess.run([found, "-c", lacks], capture_output=True).returncode != 0:
        pytest.skip(f"{found} has no torch or transformers (set TRANSFORMERS_PYTHON)")
    return found


@pytest.fixture
def own(python, tmp_path):
    """own(plant): a folder with a model whose code has that fault."""
    def write(plant=""):
        folder = tmp_path / f"own{plant}"
        subprocess.run([python, HELPER, "own", folder, MODELS / "llama", plant], check=True)
        return folder
    return write


def start(python, model, *options, env=None):
    return Server("--engine", "transformers", "--python", python, "--dtype", "float32", *options, model=model, env=env)


def generated(python, folder):
    """Ids of generate() for PROMPTS, as far as the best two logits differ enough."""
    done = subprocess.run([python, HELPER, "ids", folder], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)[0]


def ids(server, prompt, **parameters):
    answer = server.generate(prompt, max_new_tokens=NEW_TOKENS, **parameters)
    return [token["id"] for token in answer["details"]["tokens"]]


def check_greedy(server, expected):
    answers = at_once(len(PROMPTS), lambda i: ids(server, PROMPTS[i]))
    for prompt, mine, sure in zip(PROMPTS, answers, expected):
        assert mine[:len(sure)] == sure, prompt
    assert sum(map(len, expected)) > len(PROMPTS) * NEW_TOKENS / 2


@pytest.mark.parametrize("name", TYPES)
def test_a_known_type_gives_the_ids_of_generate(python, name):
    with start(python, MODELS / name, "--max-batch-prefill-tokens", "24") as server:
        check_greedy(server, generated(python, MODELS / name))
        assert server.json("GET", "/info")["model_backend"] == "transformers"


def test_code_of_a_model_gives_the_ids_of_generate_and_seeds_their_tokens(python, own):
    folder = own()
    with start(python, folder, "--trust-remote-code") as server:
        check_greedy(server, generated(python, folder))

        def sampled(i):
            return ids(server, PROMPTS[i], do_sample=True, temperature=1.3, seed=1000 + i)
        alone = [sampled(i) for i in range(len(PROMPTS))]
        assert at_once(len(PROMPTS), sampled) == alone
        assert len({tuple(one) for one in alone}) > len(PROMPTS) / 2


@pytest.mark.parametrize("plant, ways", [("cache", "no-cache"), ("chunks", "whole-prompts"), ("rows", "single-rows")])
def test_the_self_check_finds_a_planted_fault_and_avoids_it(python, own, plant, ways):
    folder = own(plant)
    with start(python, folder, "--trust-remote-code", "--max-batch-prefill-tokens", "24") as server:
        server.wait_said("self check: .* differ from the whole text")
        assert server.json("GET", "/info")["model_backend"] == "transformers/" + ways
        check_greedy(server, generated(python, folder))


def failure(*options, model, seconds=120):
    """Exit code and output of a start that fails."""
    with Process([BIN / "penstock-launcher", "--model-id", model, "--port", "0", "--engine", "transformers",
                  *options]) as process:
        return process.wait_exit(seconds), process.output()


def test_a_model_that_cannot_be_computed_is_refused(python, own):
    code, output = failure("--python", python, "--trust-remote-code", model=own("nan"))
    assert code != 0 and "a short text cannot be computed: ValueError: the logits of a short text are not" in output


def test_code_of_a_model_runs_only_with_permission(python, own):
    code, output = failure("--python", python, model=own())
    assert code != 0 and "model_type: own: the model has code of its own (auto_map), which runs only with " \
                         "--trust-remote-code" in output


def test_a_checkpoint_that_lacks_a_tensor_is_refused(python, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(MODELS / "qwen2", folder)
    config = json.loads((folder / "config.json").read_text())
    config["num_hidden_layers"] += 1
    (folder / "config.json").write_text(json.dumps(config))
    code, output = failure("--python", python, model=folder)
    assert code != 0 and "the checkpoint does not fit the model: missing keys: model.layers.2." in output


def test_missing_packages_are_named_with_the_command_that_installs_them(tmp_path):
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')  # hides all packages
    bare.chmod(0o700)
    begin = time.monotonic()
    code, output = failure("--python", bare, model=MODELS / "llama")
    assert code == 5 and "torch and transformers and safetensors cannot be found; install with: " in output
    assert f"{sys.executable} -m pip install 'torch>=" in output
    assert time.monotonic() - begin < 20


def test_a_missing_interpreter_is_named():
    code, output = failure("--python", "/nowhere/python3", model=MODELS / "llama")
    assert code == 5 and "--python /nowhere/python3: must be a Python interpreter that can be run" in output


@pytest.mark.parametrize("options, error", [
    (["--num-shard", "2"], "--num-shard 2: must be 1 with --engine transformers"),
    (["--quantize", "int8"], "--quantize int8: must be none with --engine transformers"),
    (["--speculate", "2"], "--speculate 2: must be 0 with --engine transformers"),
])
def test_options_that_the_engine_does_not_have_are_refused(options, error):
    code, output = failure(*options, model=MODELS / "llama")
    assert code == 2 and error in output


def test_the_permission_alone_is_refused():
    with Process([BIN / "penstock-launcher", "--model-id", MODELS / "llama", "--trust-remote-code"]) as process:
        assert process.wait_exit() == 2
        assert "--trust-remote-code true: must come with --engine transformers" in process.output()


def child_of(pid):
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            if int(stat[stat.rindex(")") + 2:].split()[1]) == pid:
                return int(entry.name)
    raise AssertionError(f"process {pid} has no child")


def test_a_killed_child_gives_one_error_per_request_and_service_returns(python):
    with start(python, MODELS / "llama") as server:
        want = ids(server, "Once")
        shard = server.pid_of("penstock-shard")
        streams = [server.stream("/v1/completions", {
            "model": "tgi", "prompt": "x" * (i + 1), "max_tokens": 200, "stream": True, "ignore_eos": True})
            for i in range(3)]
        for stream in streams:
            next(stream)
        os.kill(child_of(shard), signal.SIGKILL)
        for stream in streams:
            errors = [event for event in stream if "error" in json.loads(event)]
            assert len(errors) == 1
            assert "the Python process of --engine transformers was killed by signal 9" in errors[0]
        wait_gone([shard], 20)
        server.wait_said("group 0 is loaded again", 120)
        deadline = time.monotonic() + 60
        while server.request("GET", "/health")[0] != 200 and time.monotonic() < deadline:
            pass  # each request waits for an answer of the server, so this loop does not spin
        assert ids(server, "Once") == want


def test_the_child_ends_with_its_shard(python):
    with start(python, MODELS / "llama") as server:
        child = child_of(server.pid_of("penstock-shard"))
        assert is_alive(child)
    wait_gone([child], 20)
