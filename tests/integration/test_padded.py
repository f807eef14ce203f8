"""--kv-layout padded: the bits of the paged layout however the batch is divided; cells are counted."""


import pytest
from penstock_testing import Server, at_once, read_step_log

# Prompts of very different lengths, answers of different lengths, greedy and sampled.
REQUESTS = [("Once upon a time there was a little dog. " * (1 + i * i % 9), 6 + 7 * i % 31,
             {"do_sample": True, "seed": i, "temperature": 0.9} if i % 3 == 2 else {})
            for i in range(12)]


def answers_of(server):
    """Ids and logprobs of all requests, sent together."""
    def ask(i):
        inputs, tokens, more = REQUESTS[i]
        details = server.generate(inputs, max_new_tokens=tokens, **more)["details"]
        return [(token["id"], token["logprob"]) for token in details["tokens"]]

    return at_once(len(REQUESTS), ask)


@pytest.fixture(scope="module")
def paged():
    with Server("--dtype", "float32", "--backend", "reference") as server:
        return answers_of(server)


@pytest.mark.parametrize("splits", [1, 2, 3, 4])
def test_padded_gives_the_bits_of_paged(paged, splits, tmp_path):
    log = tmp_path / "steps.jsonl"
    options = ["--dtype", "float32", "--kv-layout", "padded", "--max-splits", str(splits), "--split", "sparsity",
               "--max-sparsity", "0.02", "--step-log", str(log)]
    with Server(*options) as server:
        for _ in range(5):  # which requests meet in a step is chance
            assert answers_of(server) == paged
            if splits == 1 or server.metrics()["penstock_decode_resplits_total"] > 0:
                break
        assert "`kv-layout` padded needs backend reference" in server.output(), "auto says why it is slower"
        metrics = server.metrics()
        assert metrics["penstock_kv_cells_copied_total"] > 0
        steps = [step for step in read_step_log(log) if step["decode_parts"] > 0]
        assert max(step["decode_parts"] for step in steps) <= splits
        if splits > 1:
            assert metrics["penstock_decode_resplits_total"] > 0
            assert max(step["decode_parts"] for step in steps) > 1
        assert all(step["decode_cells"] >= step["decode_tokens"] for step in steps)
        server.wait_metric("penstock_kv_cells_allocated", lambda cells: cells == 0)


def test_cpu_backend_refuses_by_name():
    with pytest.raises(AssertionError, match="`kv-layout` padded needs backend reference"):
        Server("--kv-layout", "padded", "--backend", "cpu")
