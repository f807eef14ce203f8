"""--quantize int8 and int4: text stays sane, and as repeatable as without."""

import pytest
from penstock_testing import Server, at_once

PROMPTS = ["Once upon a time", "One day, a little dog", "The old mill", "Tom and his mother " * 20]


def answer_of(server, i):
    details = server.generate(PROMPTS[i], max_new_tokens=24)["details"]
    return [(token["id"], token["logprob"]) for token in details["tokens"]]


@pytest.mark.parametrize("weights", ["int8", "int4"])
def test_answers_do_not_depend_on_the_batch_and_info_says_so(weights):
    with Server("--quantize", weights, "--max-step-tokens", "32") as server:
        info = server.json("GET", "/info")
        assert info["quantize"] == weights and info["model_backend"].endswith("/" + weights)
        alone = [answer_of(server, i) for i in range(len(PROMPTS))]
        assert at_once(len(PROMPTS), lambda i: answer_of(server, i)) == alone
    with Server() as server:
        assert server.json("GET", "/info")["quantize"] is None
        plain = [answer_of(server, i) for i in range(len(PROMPTS))]
    same = sum(a[0][0] == b[0][0] for a, b in zip(alone, plain, strict=True))
    assert same >= len(PROMPTS) - 1, (alone, plain)
    assert alone != plain, "nothing was quantised"
