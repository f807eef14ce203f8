"""The founding document of the sequence scheduler, followed step by step: its serving.properties as
printed (only the model's path is changed), its request, its load."""

import concurrent.futures
import json
import os
import re
import signal
import subprocess

import pytest
from penstock_testing import ADDRESS, BIN, DEMO_MODEL, Process, Server, read_step_log

DOCUMENT = """# serving.properties

engine=MPI
option.model_id=/workspace/llama-2-70b-hf/
option.tensor_parallel_degree=1
option.dtype=fp16
option.trust_remote_code=true

# rolling-batch parameters
option.max_rolling_batch_size=64
option.rolling_batch=scheduler

# seq-scheduler parameters
option.max_sparsity=0.33
option.max_splits=3
option.decoding_strategy=contrastive  # other options: greedy, sample
"""

BODY = ('{"inputs":"The new movie that got Oscar this year","parameters":{"max_new_tokens":50, '
        '"do_sample":true},\n  "cached_prompt":"This is a prompt that will be cached and appended '
        'to the front of the inputs strings."}')
CACHED = json.loads(BODY)["cached_prompt"]


class PropertiesServer(Server):
    """A server started from a folder with serving.properties; port 0 in the place of 8080."""

    def __init__(self, folder, *options, env=None):
        Process.__init__(self, [BIN / "penstock-launcher", "--serving-properties", folder,
                                "--port", "0", *options], env)
        try:
            address = self.wait_line(ADDRESS)
        except AssertionError:
            self.stop()
            raise
        self.host, self.port = "127.0.0.1", int(address.group(2))
        self.bound = address.group(1)
        self.url = f"http://{self.host}:{self.port}"


def write(folder, text):
    (folder / "serving.properties").write_text(
        text.replace("/workspace/llama-2-70b-hf/", f"{DEMO_MODEL}/"))
    return folder


@pytest.fixture(scope="module")
def document_server(tmp_path_factory):
    folder = write(tmp_path_factory.mktemp("model"), DOCUMENT)
    with PropertiesServer(folder) as server:
        yield server


def prefilled(server):
    return server.metrics()["penstock_step_prefill_tokens_total"]


def test_the_documents_file_and_request_work(document_server):
    server = document_server
    assert server.bound == "0.0.0.0"
    assert any("CPUs do not compute in float16" in line for line in server.lines)
    assert any("computes in bfloat16" in line for line in server.lines), server.output()
    costs, requests = [], []
    others = BODY.replace("The new movie that got Oscar this year", " No word of it is the same")
    for name, sent in (("first", BODY), ("second", BODY), ("third", others)):
        before = prefilled(server)
        status, headers, body = server.request("POST", "/invocations", sent,
                                               {"X-Request-Id": f"document-{name}"})
        assert (status, headers["content-type"]) == (200, "application/json")
        answer = json.loads(body)
        assert list(answer) == ["generated_text"] and answer["generated_text"]
        assert CACHED not in answer["generated_text"]
        requests.append(server.json("GET", f"/requests/document-{name}"))
        costs.append(prefilled(server) - before)
    kept, = server.json("GET", "/cached_prompts")["cached_prompts"]
    assert kept["prompt"] == CACHED[:80] + "..." and kept["uses"] == 3
    assert costs[0] - costs[1] == requests[1]["cached_tokens"] >= kept["tokens"]
    # No other inputs are known, so exactly the cached prompt is found.
    assert [requests[i]["cached_tokens"] for i in (0, 2)] == [0, kept["tokens"]]
    for request, cost in zip(requests, costs):
        assert request["prompt_tokens"] - request["cached_tokens"] == cost


def test_the_cached_prompt_changes_no_answer(document_server):
    server = document_server
    for strategy in ("greedy", "sample"):
        for inputs in ("The new movie", " and then", "x", "a much longer text about the river, "
                       "the stone and the house, which goes on for some time"):
            parameters = {"decoding_strategy": strategy, "seed": 7, "max_new_tokens": 20}
            plain = server.json("POST", "/invocations", {
                "inputs": CACHED + inputs, "parameters": parameters})
            cached = server.json("POST", "/invocations", {
                "inputs": inputs, "parameters": parameters, "cached_prompt": CACHED})
            assert plain == cached, (strategy, inputs)


def test_cached_prompts_are_listed_and_cleared(document_server):
    server = document_server
    for prompt in ("Once upon a time there was", "The answer is"):
        server.json("POST", "/invocations", {"inputs": " a dog", "cached_prompt": prompt,
                                             "parameters": {"decoding_strategy": "greedy"}})
    prompts = server.json("GET", "/cached_prompts")["cached_prompts"]
    assert [p["prompt"] for p in prompts][:2] == ["The answer is", "Once upon a time there was"]
    server.json("DELETE", f"/cached_prompts/{prompts[0]['id']}")
    assert server.json("DELETE", "/cached_prompts") == {"forgotten": len(prompts) - 1}
    assert server.json("GET", "/cached_prompts") == {"cached_prompts": []}
    status, _, body = server.request("DELETE", "/cached_prompts/12345")
    assert status == 404 and json.loads(body) == {
        "code": 404, "type": "ResourceNotFoundException", "message": "no cached prompt 12345"}


def test_lists_and_streams(document_server):
    server = document_server
    parameters = {"decoding_strategy": "greedy", "max_new_tokens": 5, "details": True}
    alone = [server.json("POST", "/invocations", {"inputs": text, "parameters": parameters})
             for text in ("One", "Two big")]
    assert server.json("POST", "/invocations",
                       {"inputs": ["One", "Two big"], "parameters": parameters}) == alone
    _, headers, body = server.request("POST", "/invocations", {
        "inputs": "One", "stream": True, "parameters": parameters})
    assert headers["content-type"] == "application/jsonlines"
    lines = [json.loads(line) for line in body.decode().splitlines()]
    assert "".join(line["token"]["text"] for line in lines) == alone[0]["generated_text"]
    assert lines[-1]["generated_text"] == alone[0]["generated_text"]


def test_unknown_keys_are_reported(tmp_path):
    folder = write(tmp_path, DOCUMENT + "option.quantize=bitsandbytes8\noption.max_sparcity=1\n")
    process = Process([BIN / "penstock-launcher", "--serving-properties", folder])
    assert process.wait_exit() == 2
    assert re.search(r"serving.properties:17: option.quantize=bitsandbytes8: is not taken",
                     process.output())


def load(server, *arguments, clients=64, repeat=3, tokens=50):
    body = json.loads(BODY)
    body["parameters"]["max_new_tokens"] = tokens
    return subprocess.run(
        [BIN / "penstock-bench", "--preset", "awscurl", "-c", str(clients), "-N", str(repeat), "-X",
         "POST", f"{server.url}/invocations", "--connect-timeout", "60", "-H",
         "Content-type: application/json", "-d", json.dumps(body), "-t", *arguments],
        capture_output=True, text=True, timeout=100)


def in_flight(server):
    metrics = server.metrics()
    return metrics["penstock_queue_size"] + metrics["penstock_requests_running"]


# The document's load: 64 clients, three requests each. The shard computes nothing until each client
# has a request with the router, so that more wait than the batch may hold, however busy the machine.
def test_the_live_batch_fills_and_keeps_its_bound(tmp_path):
    text = DOCUMENT.replace("max_rolling_batch_size=64", "max_rolling_batch_size=48")
    log = tmp_path / "steps.jsonl"
    with PropertiesServer(write(tmp_path, text), "--contrastive-search=false",
                          "--shard-program", BIN / "penstock-simshard", "--step-log", log,
                          "--rank-timeout", "0") as server, \
            concurrent.futures.ThreadPoolExecutor(1) as pool:
        shard = next(pid for pid, command in server.children().items() if "simshard" in command[0])
        os.kill(shard, signal.SIGSTOP)
        try:
            loading = pool.submit(load, server, "-o", str(tmp_path / "output-test.txt"))
            server.wait_metric("penstock_queue_size", lambda _: in_flight(server) == 64, seconds=60)
        finally:
            os.kill(shard, signal.SIGCONT)
        done = loading.result()
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Total requests: 192" in done.stdout
        assert "Non 200 responses: 0, error rate: 0.00" in done.stdout
        for label in ("TPS: ", "P50: ", "P90: ", "P99: ", "word/s: ", "Time to first byte: "):
            assert label in done.stdout
        assert len(list(tmp_path.glob("output-test.txt.*"))) == 64
        steps = read_step_log(log)
    assert max(step["sequences"] for step in steps) == 48


def test_a_full_job_queue_is_answered_at_once(tmp_path):
    text = DOCUMENT.replace("max_rolling_batch_size=64", "max_rolling_batch_size=2")
    with PropertiesServer(write(tmp_path, text + "job_queue_size=6\n"),
                          "--contrastive-search=false", "--shard-program",
                          BIN / "penstock-simshard", "--step-time", "2ms") as server:
        done = load(server, "-P", clients=32, repeat=1, tokens=40)
        result = json.loads(done.stdout)
        assert done.returncode == 1 and result["totalRequests"] == 32
        assert result["failedRequests"] >= 24
        assert result["firstError"].startswith("503 {\"code\":503,\"type\":\"WlmCapacityException\"")
