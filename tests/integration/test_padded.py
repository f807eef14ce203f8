"""--kv-layout padded: the bits of the paged layout however the batch is divided; cells are counted."""


import pytest
from penstock_testing import Server, at_once, read_step_log

# Prompts of very different lengths, answers of different lengths, greedy and sampled.
REQUESTS = [("Once upon a time there was a little dog. " * (1 + i * i % 9), 6 + 7 * i % 31,
             {"do_sample": True, "seed": i, "temperature": 0.9} if i % 3 == 2 else {})
            for i in range(12)]

# By backend. In bfloat16 the cpu backend gives the same bits too.
OPTIONS = {"cpu": ("--dtype", "bfloat16"), "reference": ("--dtype", "float32", "--backend", "reference")}
SPLIT = ("--split", "sparsity", "--max-sparsity", "0.02")


def answer_of(server, i):
    """Ids and logprobs of a request."""
    inputs, tokens, more = REQUESTS[i]
    details = server.generate(inputs, max_new_tokens=tokens, **more)["details"]
    return [(token["id"], token["logprob"]) for token in details["tokens"]]


def answers_of(server):
    """Those of all requests, sent together."""
    return at_once(len(REQUESTS), lambda i: answer_of(server, i))


@pytest.fixture(scope="module", params=list(OPTIONS))
def backend(request):
    return request.param


@pytest.fixture(scope="module")
def paged(backend):
    with Server(*OPTIONS[backend]) as server:
        return answers_of(server)


@pytest.mark.parametrize("splits", [1, 2, 3, 4])
def test_padded_gives_the_bits_of_paged(backend, paged, splits, tmp_path):
    log = tmp_path / "steps.jsonl"
    options = ["--kv-layout", "padded", "--max-splits", str(splits), *SPLIT, "--step-log", str(log)]
    with Server(*OPTIONS[backend], *options) as server:
        assert server.json("GET", "/info")["model_backend"].startswith(backend), "auto is cpu"
        for _ in range(5):  # which requests meet in a step is chance
            assert answers_of(server) == paged
            if splits == 1 or server.metrics()["penstock_decode_resplits_total"] > 0:
                break
        metrics = server.metrics()
        assert metrics["penstock_kv_cells_copied_total"] > 0
        steps = [step for step in read_step_log(log) if step["decode_parts"] > 0]
        assert max(step["decode_parts"] for step in steps) <= splits
        if splits > 1:
            assert metrics["penstock_decode_resplits_total"] > 0
            assert max(step["decode_parts"] for step in steps) > 1
        assert all(step["decode_cells"] >= step["decode_tokens"] for step in steps)
        server.wait_metric("penstock_kv_cells_allocated", lambda cells: cells == 0)


@pytest.mark.parametrize("ranks", [1, 2])
def test_each_request_alone_and_beside_cancelled_ones_has_the_bits_of_paged(ranks):
    more = ("--dtype", "bfloat16", "--num-shard", str(ranks))
    with Server(*more) as server:
        paged = answers_of(server)
    with Server(*more, "--kv-layout", "padded", *SPLIT) as server:
        assert [answer_of(server, i) for i in range(len(REQUESTS))] == paged, "alone"
        streams = [server.generate_stream(REQUESTS[i][0], max_new_tokens=200) for i in range(0, len(REQUESTS), 3)]
        for stream in streams:
            next(stream)  # it decodes

        def ask(i):
            if i < len(streams):
                streams[i].close()
            return answer_of(server, i)

        assert at_once(len(REQUESTS), ask) == paged, "beside requests that are cancelled"
        server.wait_metric("penstock_kv_cells_allocated", lambda cells: cells == 0)


def test_int8_cells_and_weights_work_in_both_layouts():
    more = ("--dtype", "bfloat16", "--kv-cache-dtype", "int8", "--quantize", "int8")
    with Server(*more) as server:
        paged = answers_of(server)
    with Server(*more, "--kv-layout", "padded", *SPLIT) as server:
        assert answers_of(server) == paged
