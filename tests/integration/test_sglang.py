"""SGLang's interface of the real server: answers, log-probabilities, streams, warm prefixes, flushes."""

import json
import math
import random

import pytest
from penstock_testing import REPOSITORY, Server

STORY = "Once upon a time, there was a little girl named Lily. She loved to play outside in the park."


@pytest.fixture(scope="module")
def server():
    with Server("--dtype", "float32") as server:
        yield server


def generate(server, text, tokens=8, **more):
    parameters = {"max_new_tokens": tokens, "temperature": 0, **more.pop("parameters", {})}
    key = "input_ids" if isinstance(text, list) and not isinstance(text[0], str) else "text"
    return server.json("POST", "/generate", {key: text, "sampling_params": parameters, **more})


def test_an_answer_is_that_of_the_other_dialects(server):
    answer = generate(server, STORY, 12)
    other = server.json("POST", "/v1/completions", {
        "model": "tgi", "prompt": STORY, "max_tokens": 12, "temperature": 0})
    assert answer["text"] == other["choices"][0]["text"]
    meta = answer["meta_info"]
    assert meta["prompt_tokens"] == other["usage"]["prompt_tokens"]
    assert meta["completion_tokens"] == 12 == len(answer["output_ids"])
    assert meta["finish_reason"] == {"type": "length", "length": 12}
    # TGI's bodies on the same path.
    assert server.generate(STORY, max_new_tokens=12)["generated_text"] == answer["text"]


def test_logprobs_are_those_of_an_echoed_completion(server):
    answer = generate(server, STORY, 3, return_logprob=True, logprob_start_len=0, top_logprobs_num=2,
                      return_text_in_logprobs=True)
    echoed = server.json("POST", "/v1/completions", {
        "model": "tgi", "prompt": STORY, "max_tokens": 3, "temperature": 0, "echo": True, "logprobs": 2})
    meta = answer["meta_info"]
    mine = meta["input_token_logprobs"] + meta["output_token_logprobs"]
    theirs = echoed["choices"][0]["logprobs"]["token_logprobs"]
    assert [entry[0] for entry in mine] == pytest.approx(theirs, abs=1e-5)
    assert mine[0][0] is None
    assert all(isinstance(entry[2], str) and entry[2] for entry in mine)
    assert meta["input_top_logprobs"][0] is None
    assert all(len(top) == 2 for top in meta["input_top_logprobs"][1:] + meta["output_top_logprobs"])
    # A later start gives the same entries from there on, but for the first.
    count = meta["prompt_tokens"]
    late = generate(server, STORY, 0, return_logprob=True, logprob_start_len=count - 4)["meta_info"]
    entries = late["input_token_logprobs"]
    assert [entry[1] for entry in entries] == [entry[1] for entry in mine[count - 4:count]]
    assert [entry[0] for entry in entries[1:]] == pytest.approx([e[0] for e in mine[count - 3:count]], abs=1e-5)
    assert entries[0][0] is None and entries[0][2] is None
    assert late["output_token_logprobs"] == []


def test_a_warm_prefix_is_read_until_it_is_flushed(server):
    text = "A prefix of its own. " * 12
    warmed = generate(server, text, 0)
    assert warmed["text"] == "" and warmed["meta_info"]["completion_tokens"] == 0
    prompt = warmed["meta_info"]["prompt_tokens"]
    warm = generate(server, text + "And more")
    assert warm["meta_info"]["cached_tokens"] >= prompt - 16
    status, _, _ = server.request("POST", "/flush_cache", {})
    assert status == 200
    cold = generate(server, text + "And more")
    assert cold["meta_info"]["cached_tokens"] == 0
    assert cold["text"] == warm["text"]
    assert generate(server, text + "And more")["meta_info"]["cached_tokens"] > 0


def test_events_carry_the_whole_text_so_far(server):
    whole = generate(server, STORY, 10)
    status, _, body = server.request("POST", "/generate", {
        "text": STORY, "stream": True, "sampling_params": {"max_new_tokens": 10, "temperature": 0}})
    assert status == 200
    events = [line.removeprefix("data: ") for line in body.decode().split("\n\n") if line]
    assert events[-1] == "[DONE]"
    texts = [json.loads(event)["text"] for event in events[:-1]]
    assert all(later.startswith(earlier) for earlier, later in zip(texts, texts[1:]))
    assert texts[-1] == whole["text"]
    assert json.loads(events[-2])["output_ids"] == whole["output_ids"]


def test_a_list_is_answered_in_order(server):
    texts = [STORY, "The dog", "A cat sat", "Tom and", "One day", "The sun"]
    answers = generate(server, texts, 4)
    assert [answer["text"] for answer in answers] == [generate(server, text, 4)["text"] for text in texts]
    ids = [[1, 50, 60], [1, 70]]
    assert [len(a["output_ids"]) for a in generate(server, ids, 4, parameters={"n": 2})] == [4] * 4


def test_grammars_hold(server):
    answer = generate(server, STORY, 20, parameters={"regex": "[0-9]{3}-[a-f]{2}", "temperature": 1})
    assert len(answer["text"]) == 6 and answer["text"][3] == "-"
    assert answer["meta_info"]["finish_reason"]["type"] == "stop"
    schema = json.dumps({"type": "object", "properties": {"a": {"type": "integer", "maximum": 9}},
                         "required": ["a"], "additionalProperties": False})
    assert set(json.loads(generate(server, STORY, 30, parameters={"json_schema": schema})["text"])) == {"a"}
    answer = generate(server, STORY, 20, parameters={"ebnf": 'root ::= "yes" | "no"'})
    assert answer["text"] in ("yes", "no")


def test_the_server_describes_itself(server):
    info = server.json("GET", "/get_model_info")
    assert info["is_generation"] and info["model_path"]
    assert server.json("GET", "/server_info")["context_length"] > 0
    status, _, _ = server.request("GET", "/health_generate", None)
    assert status == 200


def logprobs_after(server, prefix, tokens):
    """The log-probability of each token after the prefix, as the frontend's `select` asks for them."""
    answers = generate(server, [prefix + [token] for token in tokens], 0, return_logprob=True,
                       logprob_start_len=len(prefix) - 1)
    return [answer["meta_info"]["input_token_logprobs"][-1][0] for answer in answers]


def test_a_choice_is_that_of_the_log_likelihoods_of_transformers(server):
    """The goldens have transformers' logits of whole rows: 120 choices among 6 tokens each."""
    golden = json.loads((REPOSITORY / "tests" / "data" / "goldens" / "demo.json").read_text())
    draw = random.Random(30)
    places = [(case["ids"][:row["position"] + 1], row["values"]) for case in golden["cases"]
              for row in case["logits"]]
    for i in range(120):
        prefix, logits = places[i % len(places)]
        greatest = max(logits)
        total = greatest + math.log(sum(math.exp(value - greatest) for value in logits))
        likely = sorted(range(len(logits)), key=logits.__getitem__)[-40:]
        choices = draw.sample(likely, 4) + draw.sample(range(len(logits)), 2)
        expected = [logits[token] - total for token in choices]
        given = logprobs_after(server, prefix, choices)
        assert given == pytest.approx(expected, abs=1e-3), (i, choices)
        best, second = sorted(expected)[-1:-3:-1]
        if best - second > 2e-3:  # nearer ones say nothing
            assert given.index(max(given)) == expected.index(best)
    for case in golden["cases"]:
        meta = generate(server, case["ids"], 0, return_logprob=True, logprob_start_len=0)["meta_info"]
        assert [entry[0] for entry in meta["input_token_logprobs"]] == pytest.approx(
            case["prompt_logprobs"], abs=1e-3), case["name"]


def fork(server, text, then, others):
    """As the frontend's `fork`: the text that the branches share is sent first. Other requests come
    between it and the branches."""
    generate(server, text, 0)
    before = server.metrics()["penstock_step_prefill_tokens_total"]
    for other in others:
        generate(server, other, 1)
    between = server.metrics()["penstock_step_prefill_tokens_total"]
    branches = [text + rest for rest in then]
    lengths = [generate(server, branch, 1)["meta_info"]["prompt_tokens"] for branch in branches]
    after = server.metrics()["penstock_step_prefill_tokens_total"]
    return between - before, after - between, lengths


def test_the_text_that_branches_share_is_computed_once():
    """Also when other prompts fill the cache before the branches come."""
    text = STORY + " One day, she saw a big red ball in a tree. It was too high for her. "
    others = [f"{i} " * 120 for i in range(8)]
    with Server("--max-total-tokens", "320", "--kv-cache-memory", "1500KiB", "--dtype", "float32") as server:
        tokens = generate(server, text, 0)["meta_info"]["prompt_tokens"]
        server.request("POST", "/flush_cache", {})
        computed_between, computed, lengths = fork(server, text, ["Lily", "The dog", "The ball"], others)
        assert computed_between > 8 * 120, "the others were computed"
        assert computed < sum(length - tokens + 4 for length in lengths), "the branches found the text"
