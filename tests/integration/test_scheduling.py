"""Continuous batching and cancellation as seen from outside: step log, metrics, answers."""

import json
import threading

from penstock_testing import BIN, Process, Server, read_step_log

BLOCK_GAUGES = ["free", "used", "cached", "retiring"]


def blocks(server):
    metrics = server.metrics()
    return {state: metrics[f'penstock_kv_blocks{{state="{state}"}}'] for state in BLOCK_GAUGES}


def test_a_short_request_joins_and_leaves_a_long_one(tmp_path):
    log = tmp_path / "steps.jsonl"
    with Server("--dtype", "float32", "--step-log", log) as server:
        body = {"model": "tgi", "prompt": "Once upon a time", "max_tokens": 500, "temperature": 0,
                "ignore_eos": True, "stream": True}
        solo = server.stream("/v1/completions", body).events()
        steps_before = len(read_step_log(log))

        long_stream = server.stream("/v1/completions", body)
        first = [next(long_stream) for _ in range(5)]
        order = []

        def short():
            server.json("POST", "/v1/completions", {
                "model": "tgi", "prompt": "A dog", "max_tokens": 5, "temperature": 0,
                "ignore_eos": True})
            order.append("short")

        thread = threading.Thread(target=short)
        thread.start()
        rest = list(long_stream)
        order.append("long")
        thread.join(60)
        assert order == ["short", "long"]
        assert text_of(first + rest) == text_of(solo)
    sizes = [step["sequences"] for step in read_step_log(log)[steps_before:] if step["sequences"]]
    changes = [a for a, b in zip(sizes, [None] + sizes) if a != b]
    assert changes == [1, 2, 1]


def text_of(events):
    text = ""
    for event in events:
        if isinstance(event, str):
            if event == "[DONE]":
                continue
            event = json.loads(event)
        text += "".join(choice["text"] for choice in event["choices"])
    return text


def test_a_killed_stream_leaves_the_batch_and_frees_its_blocks(simulated, tmp_path):
    log = tmp_path / "steps.jsonl"
    server = simulated("--step-time", "20ms", "--step-log", log)
    # Ready is said while the core may still be taking the group in.
    server.wait_metric('penstock_kv_blocks{state="free"}', lambda value: value > 0)
    baseline = blocks(server)
    stream = server.generate_stream("Once upon a time", max_new_tokens=400)
    for _ in range(10):
        next(stream)
    assert blocks(server)["used"] > baseline["used"]
    stream.close()
    server.wait_metric("penstock_requests_cancelled_total", lambda value: value == 1)
    server.wait_metric('penstock_kv_blocks{state="free"}', lambda v: v == baseline["free"])
    assert blocks(server) == baseline
    steps = read_step_log(log)
    # The cancelled sequence was alone: after the cancel no plan names a sequence, and two results
    # later nothing of it is left.
    assert len([s for s in steps if s["sequences"]]) < 100
    assert server.generate("again", max_new_tokens=3)["details"]["generated_tokens"] == 3


def test_one_execute_message_per_step_and_rank_with_two_in_flight(simulated, tmp_path):
    log = tmp_path / "steps.jsonl"
    server = simulated("--step-time", "5ms", "--step-log", log, ranks=2)
    streams = [server.generate_stream(f"prompt {i}", max_new_tokens=40) for i in range(32)]
    for stream in streams:
        assert len(stream.events()) >= 1
    # A step is logged when the core has its result, and the last one of all frees the slots; so this
    # holds when everything has come to rest.
    def one_message_per_step(in_flight):
        counts = [value for name, value in server.metrics().items()
                  if name.startswith("penstock_execute_messages_total")]
        return in_flight == 0 and len(counts) == 4 and set(counts) == {len(read_step_log(log))}

    server.wait_metric("penstock_plans_in_flight", one_message_per_step)
    metrics = server.metrics()
    assert metrics["penstock_plans_in_flight_max"] == 2


def test_the_target_time_cuts_prompts_while_others_stream(simulated, tmp_path):
    """--max-step-tokens auto: the budget comes from --target-inter-token-ms and the warm-up table."""
    log = tmp_path / "steps.jsonl"
    target = 36  # of steps that last three times as long as the machine's
    server = simulated("--step-time-model", "h100-llama-3-8b-tp1", "--time-scale", 3,
                       "--target-inter-token-ms", target, "--max-sequence-length", 8192,
                       "--tokens", "echo", "--step-log", log)
    # An echo tells the ids of a text.
    token, other = (t["id"] for t in server.generate(" dog cat", max_new_tokens=2)["details"]["tokens"])
    before = len(read_step_log(log))
    running = server.stream("/v1/completions", {
        "model": "tgi", "prompt": [token] * 500, "max_tokens": 490, "ignore_eos": True,
        "temperature": 0, "stream": True})
    next(running)
    answer = server.json("POST", "/v1/completions", {
        "model": "tgi", "prompt": [other] * 2000, "max_tokens": 2, "ignore_eos": True,
        "temperature": 0})
    assert answer["usage"]["prompt_tokens"] == 2000
    running.close()
    steps = read_step_log(log)[before:]
    mixed = [s for s in steps if s["rows"] and s["prefill_tokens"] > 32]
    assert sum(s["prefill_tokens"] for s in steps if s["rows"]) >= 1900
    assert len(mixed) > 2, "one step would have held the whole prompt by tokens alone"
    for step in mixed:
        assert 0 < step["predicted_us"] <= target * 1000, step
    whole = [s for s in steps if s["prefill_tokens"] == 500 and not s["rows"]]
    assert len(whole) == 1, "no request streams yet: no reason to cut"
    assert whole[0]["taken_us"] > 0
    metrics = server.metrics()
    assert metrics["penstock_step_predicted_ratio_count"] > 10


def test_simshard_names_an_unknown_machine():
    process = Process([BIN / "penstock-simshard", "--shard-uds-path", "unused",
                       "--step-time-model", "h100-llama-3-8b-tp3"])
    assert process.wait_exit() == 2
    assert "step-time-model" in process.output() and "h100-llama-3-8b-tp1" in process.output()
