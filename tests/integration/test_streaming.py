"""What a streaming client sees: pace, whole characters, stop strings."""

import json
import random
import time

from penstock_testing import shared_data

PIECES = ["Hello world", " the quick brown fox", "日本語のテキスト", "汉字测试", "한국어", "مرحبا بالعالم",
          "שלום", "😀", "👩‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "é", "e\u0301", "ß", "ﷺ", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢", "🇩🇪🇫🇷", "\n", " ", "1234",
          "नमस्ते", "ก็", "∑∫√", "—", "…", "🤷‍♀️", "\t", "🧑🏿‍🚀", "ñandú", "Ω"]


def prompts(count=200, seed=20261121):
    draw = random.Random(seed)
    return ["".join(draw.choices(PIECES, k=draw.randint(3, 14))) for _ in range(count)]


def echo_server(simulated, *options):
    model = shared_data("tokenizers", "llama-3")
    return simulated("--tokens", "echo", "--step-time", "0ms", *options, model=model)


def test_one_event_arrives_per_step(simulated):
    """If another process takes the processors, one event is late and the next gap is short, so single gaps
    prove nothing. If events were coalesced, most gaps would be wrong."""
    step = 0.1
    server = simulated("--step-time", f"{step * 1000:.0f}ms")
    asked = time.monotonic()
    stream = server.generate_stream("Once upon a time", max_new_tokens=20)
    assert len(stream.events()) == 20
    gaps = sorted(b - a for a, b in zip(stream.times, stream.times[1:]))
    print("gaps in ms:", [round(1000 * gap) for gap in gaps])
    assert all(came >= asked + (i + 1) * step for i, came in enumerate(stream.times)), "before its step was computed"
    assert abs(gaps[len(gaps) // 2] - step) <= 0.05 * step, gaps
    assert sum(abs(gap - step) <= 0.2 * step for gap in gaps) >= 0.75 * len(gaps), gaps
    assert 0.9 <= (stream.times[-1] - stream.times[0]) / (len(gaps) * step) <= 1.25, stream.times


def test_stream_equals_prompt_and_answer_for_hard_texts(simulated):
    server = echo_server(simulated)
    for prompt in prompts():
        answer = server.generate(prompt, max_new_tokens=400)
        assert answer["details"]["finish_reason"] == "eos_token"
        assert answer["generated_text"] == prompt
        # Stream decodes each event strictly: half a character would raise.
        events = server.generate_stream(prompt, max_new_tokens=400).events()
        text = "".join(e["token"]["text"] for e in events if not e["token"]["special"])
        assert text == prompt
        assert events[-1]["generated_text"] == prompt
        chunks = server.stream("/v1/completions", {
            "model": "tgi", "prompt": prompt, "max_tokens": 400, "stream": True}).events()
        assert chunks[-1] == "[DONE]"
        assert "".join(c["choices"][0]["text"] for c in chunks[:-1] if c["choices"]) == prompt


def test_a_stop_string_over_two_tokens_is_never_partly_shown(simulated):
    server = echo_server(simulated)
    for body, stop, shown in [
        ("The answer is STOPHERE and more", "STOPHERE", "The answer is "),
        ("one two three four", "two three", "one "),
        ("emoji 👩‍👩‍👧‍👦 family", "👩‍👩‍👧‍👦", "emoji "),
        ("almost STOPHER but not", "STOPHERE", "almost STOPHER but not"),
    ]:
        request = {"model": "tgi", "prompt": body, "max_tokens": 100, "stop": [stop]}
        chunks = server.stream("/v1/completions", {**request, "stream": True}).events()
        parts = [c["choices"][0]["text"] for c in chunks[:-1] if c["choices"]]
        assert "".join(parts) == shown
        for length in range(1, len(stop)):
            assert not ("".join(parts)).endswith(stop[:length]) or shown.endswith(stop[:length])
        answer = server.json("POST", "/v1/completions", request)
        assert answer["choices"][0]["text"] == shown
        assert answer["choices"][0]["finish_reason"] == "stop"


def test_tgi_keeps_the_stop_string_as_tgi_does(simulated):
    server = echo_server(simulated)
    answer = server.generate("one two three four", max_new_tokens=50, stop=[" three"])
    assert answer["generated_text"] == "one two three"
    assert answer["details"]["finish_reason"] == "stop_sequence"


def test_answers_are_json_in_utf8(simulated):
    server = echo_server(simulated)
    status, headers, body = server.request("POST", "/generate", json.dumps(
        {"inputs": "日本 \"quoted\" \\ \n end", "parameters": {"max_new_tokens": 40}}))
    assert status == 200 and headers["content-type"].startswith("application/json")
    assert json.loads(body.decode("utf-8"))["generated_text"] == "日本 \"quoted\" \\ \n end"
