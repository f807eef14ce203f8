"""Real models through launcher, router, gRPC and libtorch against committed or shared goldens."""

import json

import pytest
from penstock_testing import Server, shared_data


def golden_cases(model):
    golden = json.loads((model / "golden_greedy.json").read_text())
    return [case for case in golden["cases"] if case["prompt"]]


def ids(answer):
    return [token["id"] for token in answer["details"]["tokens"]]


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_stories260k_greedy_ids_equal_the_goldens(ranks):
    model = shared_data("models", "stories260K-hf")
    cases = golden_cases(model)
    assert len(cases) == 3
    with Server("--dtype", "float32", "--num-shard", str(ranks), model=model) as server:
        for case in cases:
            answer = server.generate(case["prompt"], max_new_tokens=len(case["greedy_ids"]))
            assert ids(answer) == case["greedy_ids"][:len(ids(answer))]
            assert len(ids(answer)) == len(case["greedy_ids"])


def test_the_bf16_sharded_copy_gives_fifty_golden_ids_of_a_prompt():
    model = shared_data("models", "stories260K-hf-bf16-sharded")
    cases = golden_cases(shared_data("models", "stories260K-hf"))
    with Server(model=model) as server:
        equal = []
        for case in cases:
            answer = ids(server.generate(case["prompt"], max_new_tokens=len(case["greedy_ids"])))
            same = 0
            while same < len(answer) and answer[same] == case["greedy_ids"][same]:
                same += 1
            equal.append(same)
    assert max(equal) >= 50, equal
