"""Sessions of TGI's own router and benchmark, played against penstock-shard and penstock-simshard.

The simulated shard repeats prompts as the recorded stand-in did, so its tokens, texts and reasons
are compared as well. What is left out of a plain run: single-over-1024 on the real model (2,000
steps, and a context that the test model has only when its configuration says so).
PENSTOCK_LONG_TESTS=1 plays it.
"""

import contextlib
import json
import os
import shutil

import grpc
import pytest
from generate_group import GenerateGroup
from penstock_testing import Server, shared_data
from tgi_grpc_recordings import Player, Session

LONG = bool(os.environ.get("PENSTOCK_LONG_TESTS"))
SIMULATED = ("--tokens", "echo", "--max-sequence-length", "8192")
REAL = ("--dtype", "float32", "--kv-cache-memory", "64MB")


@pytest.fixture(scope="module")
def recordings():
    folder = shared_data("tgi_grpc")
    return [Session(path) for path in sorted(folder.glob("*.jsonl.gz"))]


@pytest.fixture(scope="module")
def stories():
    return shared_data("models", "stories260K-hf")


@contextlib.contextmanager
def group(program, model, ranks):
    options = REAL if program == "penstock-shard" else SIMULATED
    with GenerateGroup("--model-id", model, *options, ranks=ranks, program=program) as running:
        yield running


def play_all(sessions, program, model, ranks, echo=False):
    """Requests that ended, with their ids; one group for all sessions, as after a router's restart."""
    finished, failed, compared = [], {}, 0
    with group(program, model, ranks) as running:
        for session in sessions:
            running.clear()
            player = Player(session, running, running.restart, echo)
            try:
                compared += player.play()
            except (AssertionError, KeyError, grpc.RpcError) as error:
                failed[session.name] = repr(error)[:300]
            finished += player.finished
    assert not failed, json.dumps(failed, indent=1)
    assert compared > 0
    return finished


def of(sessions, ranks, long=False):
    return [s for s in sessions
            if s.ranks == ranks and (s.name == "single-over-1024") == long]


def changed(stories, folder, **values):
    """The model with other values in its configuration."""
    model = folder / "stories"
    shutil.copytree(stories, model)
    for name in ("config.json", "generation_config.json"):
        (model / name).chmod(0o644)
        config = json.loads((model / name).read_text())
        config.update({k: v for k, v in values.items() if k in config})
        (model / name).write_text(json.dumps(config))
    return model


@pytest.mark.parametrize("ranks", [1, 2])
def test_simshard_answers_every_recorded_call_as_it_was_answered(recordings, stories, tmp_path,
                                                                 ranks):
    sessions = [session for session in recordings if session.ranks == ranks]
    assert len(sessions) >= (100 if ranks == 1 else 5)
    model = changed(stories, tmp_path, eos_token_id=2)
    play_all(sessions, "penstock-simshard", model, ranks, echo=True)


@pytest.fixture(scope="module")
def played(recordings, stories):
    return play_all(of(recordings, 1), "penstock-shard", stories, 1)


def test_the_shard_answers_every_recorded_call(played):
    assert len(played) > 300


def test_two_ranks_answer_every_recorded_call(recordings, stories):
    play_all(of(recordings, 2), "penstock-shard", stories, 2)


@pytest.mark.skipif(not LONG, reason="PENSTOCK_LONG_TESTS=1 runs it")
def test_the_shard_answers_2000_steps_of_two_recordings(recordings, stories, tmp_path):
    model = changed(stories, tmp_path, max_position_embeddings=8192)
    play_all(of(recordings, 1, long=True), "penstock-shard", model, 1)


def http_parameters(request):
    p = request.parameters
    parameters = {"max_new_tokens": request.stopping_parameters.max_new_tokens, "details": True,
                  "seed": p.seed, "truncate": request.truncate or None, "do_sample": p.do_sample}
    for name, neutral in (("temperature", 1), ("top_k", 0), ("top_p", 1), ("typical_p", 1),
                          ("repetition_penalty", 1), ("frequency_penalty", 0)):
        if getattr(p, name) != neutral:
            parameters[name] = getattr(p, name)
    return {k: v for k, v in parameters.items() if v is not None}


def test_ids_equal_those_over_http(played, stories):
    """Greedy and sampled. HTTP stops at the end token; until then the ids are the same."""
    eos = json.loads((stories / "config.json").read_text())["eos_token_id"]
    eos = set(eos if isinstance(eos, list) else [eos])
    cases = {}
    for request, ids in played:
        # Chat prompts are rendered by the router, which HTTP has no second way to.
        if request.add_special_tokens and not request.parameters.watermark:
            key = (request.inputs, len(ids), request.parameters.SerializeToString())
            cases.setdefault(key, (request, ids))
    sampled = [case for case in cases.values() if Player.samples(case[0].parameters)]
    greedy = [case for case in cases.values() if not Player.samples(case[0].parameters)]
    assert sampled and greedy
    with Server("--dtype", "float32", "--kv-cache-memory", "64MB", "--max-input-tokens", "411",
                model=stories) as server:
        for request, ids in sampled[:20] + greedy[:40]:
            answer = server.json("POST", "/generate", {
                "inputs": request.inputs, "parameters": http_parameters(request)})
            wanted = [t["id"] for t in answer["details"]["tokens"]]
            assert ids[:len(wanted)] == wanted, request
            assert len(wanted) == len(ids) or wanted[-1] in eos
