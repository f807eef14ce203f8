"""SGLang's own frontend runs the programs of docs/examples/programs. Its package is not one of the tests' own: name a
Python that has it with PENSTOCK_SGLANG_PYTHON."""

import functools
import json
import os
import re
import subprocess
import sys

import pytest
from penstock_testing import REPOSITORY, Server

PROGRAMS = REPOSITORY / "docs" / "examples" / "programs"
NAMES = sorted(path.stem for path in PROGRAMS.glob("*.py") if path.stem != "program")
PYTHON = os.environ.get("PENSTOCK_SGLANG_PYTHON", sys.executable)
BLOCK = 16


@functools.cache
def why_not():
    """Why no program can run; empty if they can."""
    tried = subprocess.run([PYTHON, "-c", "import sglang"], capture_output=True, text=True, timeout=120)
    return "" if tried.returncode == 0 else tried.stderr.strip().splitlines()[-1]


@pytest.fixture(scope="module")
def server():
    if why_not():
        pytest.skip(f"sglang is absent (set PENSTOCK_SGLANG_PYTHON): {why_not()}")
    with Server("--dtype", "float32") as server:
        yield server


def run(server, name):
    ran = subprocess.run([PYTHON, "-W", "ignore", PROGRAMS / f"{name}.py", server.url], capture_output=True,
                         text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return json.loads(ran.stdout.splitlines()[-1])


def complete(server, prompt, tokens, **more):
    return server.json("POST", "/v1/completions", {
        "model": "tgi", "prompt": prompt, "max_tokens": tokens, "temperature": 0, **more})["choices"][0]


def test_the_page_shows_each_program():
    page = (REPOSITORY / "docs" / "programs.md").read_text()
    assert len(NAMES) == 10
    for name in NAMES:
        source = (PROGRAMS / f"{name}.py").read_text()
        shown = source[source.index("from sglang"):source.index("\n\n\ndef main")]
        assert f"programs/{name}.py" in page and shown in page, name


def test_multi_turn(server):
    result = run(server, "multi_turn")
    first, second = result["answers"]
    prompt = "USER:Tell me about a dog.\nASSISTANT:"
    assert first == complete(server, prompt, 24, stop="\n")["text"]
    prompt += first + "\nUSER:What did the dog do then?\nASSISTANT:"
    assert second == complete(server, prompt, 24, stop="\n")["text"]
    assert result["text"] == prompt + second + "\n"
    assert result["cached_tokens"] >= BLOCK


def score(server, story, choice):
    """The mean log-probability that the frontend compares: of all tokens from the story's last one on."""
    prompt = len(complete(server, story, 0, echo=True, logprobs=0)["logprobs"]["tokens"])
    values = complete(server, story + choice, 0, echo=True, logprobs=0)["logprobs"]["token_logprobs"]
    return sum(values[prompt - 1:]) / len(values[prompt - 1:])


def test_a_choice_is_the_most_probable_text(server):
    result = run(server, "select_choice")
    for (story, choices), choice, logprobs in zip(result["cases"], result["choices"], result["logprobs"]):
        expected = [score(server, story, each) for each in choices]
        assert logprobs == pytest.approx(expected, abs=1e-3)
        assert choice == choices[expected.index(max(expected))]


def test_a_fork_computes_what_its_branches_share_once(server):
    server.request("POST", "/flush_cache", {})
    name = "penstock_step_prefill_tokens_total"
    before = server.metrics()[name]
    result = run(server, "fork_join")
    computed = server.metrics()[name] - before
    assert len(result["ends"]) == 3 and all(result["ends"])
    shared = server.json("POST", "/generate", {"text": result["story"], "sampling_params": {"max_new_tokens": 1}})
    prompt = shared["meta_info"]["prompt_tokens"]
    assert prompt >= 3 * BLOCK
    # Each branch computes its own words and what is left of the last block.
    assert computed <= prompt + 3 * (BLOCK + 4)


def test_json(server):
    character = run(server, "json_answer")["character"]
    assert set(character) == {"name", "age", "kind"}
    assert 1 <= character["age"] <= 99 and character["kind"] in ("dog", "cat", "girl", "boy")


def test_tree_of_thought(server):
    result = run(server, "tree_of_thought")
    assert re.fullmatch(r"How can [^\n]*\nIdea 1:[^\n]*\nIdea 2:[^\n]*\nSo[^\n]*", result["text"])
    assert result["text"].endswith("So" + result["answer"])


def test_skeleton_of_thought(server):
    text = run(server, "skeleton_of_thought")["text"]
    places = [text.index(f"Part {i} in full: {point}") for i, point in
              enumerate(["The girl", "The dog", "The park"], 1)]
    assert places == sorted(places) and text.endswith("\nThe end.")


def test_an_agent_calls_its_tools(server):
    result = run(server, "agent_loop")
    for tool, numbers in result["calls"]:
        a, b = (int(number) for number in numbers.split(", "))
        assert f"Numbers: {numbers}\nResult: {a + b if tool == 'add' else a * b}\n" in result["text"]


def test_a_batch_reads_its_examples_from_the_cache(server):
    result = run(server, "few_shot_batch")
    assert len(result["sentences"]) == 8
    assert min(result["cached_tokens"][1:]) >= 3 * BLOCK


def test_a_stream_gives_the_text_in_parts(server):
    result = run(server, "streaming")
    assert len(result["parts"]) > 5
    assert "".join(result["parts"]) == result["story"] == complete(server, "Once upon a time", 24)["text"]


def test_expressions_hold(server):
    result = run(server, "regex_answer")
    assert all(0 <= int(part) <= 255 for part in result["address"].split("."))
    assert re.fullmatch(r"[-+]?[0-9]+\s*", result["users"])
    assert result["up"] in ("True", "False")
