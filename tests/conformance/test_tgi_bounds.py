"""Every parameter of TGI's routes at its bounds: just inside, just outside, of the wrong type.

The texts are those of TGI (docs/api/http.md names the sheet of facts); the shard is simulated and
echoes, so that an accepted request costs little.
"""

import json
import os
import tempfile

import pytest
from penstock_testing import BIN, DEMO_MODEL, Process
from tgi_recordings import fetch

BEST_OF, STOPS, TOP_N, INPUT, TOTAL, PROMPTS, PAYLOAD = 2, 4, 5, 40, 60, 4, 200_000
INVALID = "Input validation error: "
TOOL = "Tool error: "
SHAPE = "Failed to deserialize the JSON body into the target type: "


@pytest.fixture(scope="module")
def port():
    if not (BIN / "penstock-simshard").exists():
        pytest.skip(f"binaries are not built in {BIN.parent.name}/bin")
    with tempfile.TemporaryDirectory(prefix="bounds-") as folder:
        socket = os.path.join(folder, "shard")
        shard = Process([BIN / "penstock-simshard", "--tokens", "echo", "--model-id", DEMO_MODEL,
                         "--shard-uds-path", socket])
        router = Process([BIN / "penstock-router", "--api-profile", "tgi", "--port", "0",
                          "--model-id", DEMO_MODEL, "--shard-uds-path", socket,
                          "--max-best-of", BEST_OF, "--max-stop-sequences", STOPS,
                          "--max-top-n-tokens", TOP_N, "--max-input-tokens", INPUT,
                          "--max-total-tokens", TOTAL, "--max-client-batch-size", PROMPTS, "--payload-limit", PAYLOAD])
        try:
            yield int(router.wait_line(r"listening on [\d.]+:(\d+)").group(1))
        finally:
            router.stop()
            shard.stop()


def post(port, path, body):
    request = {"method": "POST", "path": path, "body": json.dumps(body),
               "headers": [["content-type", "application/json"]]}
    status, _, text = fetch(port, request)
    return status, text


def positive(name):
    error = f"`{name}` must be strictly positive"
    return [(name, 1e-6, None), (name, 0.0, error), (name, -1, error), (name, "1", TypeError),
            (name, None, None)]


def open_interval(name):
    error = f"`{name}` must be > 0.0 and < 1.0"
    return [(name, 0.000001, None), (name, 0.999, None), (name, 0.0, error), (name, 1.0, error),
            (name, [], TypeError), (name, None, None)]


# (parameter, value, None = answered | text of the error | TypeError)
PARAMETERS = [
    *positive("temperature"), *positive("repetition_penalty"),
    *open_interval("top_p"), *open_interval("typical_p"),
    ("frequency_penalty", -2.0, None), ("frequency_penalty", 2.0, None),
    ("frequency_penalty", 2.001, "`frequency_penalty` must be >= -2.0 and <= 2.0"),
    ("frequency_penalty", -2.001, "`frequency_penalty` must be >= -2.0 and <= 2.0"),
    ("frequency_penalty", True, TypeError), ("frequency_penalty", None, None),
    ("top_k", None, None), ("top_k", "1", TypeError), ("top_k", 1, None),
    ("top_k", 0, "`top_k` must be strictly positive"),
    ("top_k", -1, "`top_k` must be strictly positive"), ("top_k", 1.5, TypeError),
    ("do_sample", True, None), ("do_sample", False, None), ("do_sample", 1, TypeError), ("do_sample", None, TypeError),
    ("max_new_tokens", 1, None), ("max_new_tokens", None, None),
    ("max_new_tokens", 0, "`max_new_tokens` must be strictly positive"),
    ("max_new_tokens", TOTAL, f"`inputs` tokens + `max_new_tokens` must be <= {TOTAL}. Given: "),
    ("max_new_tokens", -1, TypeError), ("max_new_tokens", "5", TypeError),
    ("max_new_tokens", 1.5, TypeError),
    ("return_full_text", True, None), ("return_full_text", "x", TypeError),
    ("return_full_text", False, None), ("return_full_text", None, None),
    ("stop", [], None), ("stop", None, TypeError), ("stop", ["a"] * STOPS, None),
    ("stop", ["a"] * (STOPS + 1), f"`stop` supports up to {STOPS} stop sequences. Given: 5"),
    ("stop", "a", TypeError), ("stop", [5], TypeError),
    ("truncate", 1, None), ("truncate", INPUT, None),
    ("truncate", 0, f"`truncate` must be strictly positive and less than {INPUT}. Given: 0"),
    ("truncate", INPUT + 1,
     f"`truncate` must be strictly positive and less than {INPUT}. Given: {INPUT + 1}"),
    ("truncate", -1, TypeError), ("truncate", "1", TypeError), ("truncate", None, None),
    ("watermark", True, None), ("watermark", "x", TypeError), ("watermark", None, TypeError),
    ("watermark", False, None),
    ("details", True, None), ("details", False, None), ("details", 0, TypeError), ("details", None, TypeError),
    ("seed", None, None), ("seed", "1", TypeError), ("seed", 1.5, TypeError),
    ("seed", 0, None), ("seed", 2**64 - 1, None), ("seed", -1, TypeError), ("seed", 2**64, TypeError),
    ("top_n_tokens", 0, None), ("top_n_tokens", TOP_N, None),
    ("top_n_tokens", TOP_N + 1, f"`top_n_tokens` must be >= 0 and <= {TOP_N}. Given: {TOP_N + 1}"),
    ("top_n_tokens", -1, TypeError), ("top_n_tokens", None, None), ("top_n_tokens", "1", TypeError),
    ("grammar", None, None), ("grammar", "json", TypeError), ("grammar", {"type": "json"}, TypeError),
    ("grammar", {"type": "json_object", "value": {"properties": {}}}, None),
    ("grammar", {"type": "json_schema", "value": {"name": "n", "schema": {"properties": {}}}}, None),
    ("grammar", {"type": "json", "value": '{"properties": {}}'}, None),
    ("grammar", {"type": "json", "value": "{"}, "grammar is not valid: "),
    ("grammar", {"type": "regex", "value": 5}, TypeError),
    ("grammar", {"type": "regex", "value": "a+"}, None),
    ("grammar", {"type": "json", "value": {"properties": {}}}, None),
    ("grammar", {"type": "json", "value": 5}, "grammar is not supported"),
    ("grammar", {"type": "json", "value": {}},
     "grammar is not valid: Grammar must have a 'properties' field"),
    ("grammar", {"type": "nope", "value": 5}, TypeError),
    ("adapter_id", "x", None), ("adapter_id", None, None), ("adapter_id", 5, TypeError),
    ("unknown_key", {"any": ["thing"]}, None),
]

# Without streams, which treat best_of and the details of the prompt differently.
PLAIN = [
    ("best_of", 0, None), ("best_of", 1, None),
    ("best_of", BEST_OF, "you must use sampling when `best_of` is > 1"),
    ("best_of", BEST_OF + 1, f"`best_of` must be > 0 and <= {BEST_OF}. Given: {BEST_OF + 1}"),
    ("best_of", -1, TypeError), ("best_of", "1", TypeError), ("best_of", None, None),
    ("decoder_input_details", True, None), ("decoder_input_details", 1, TypeError),
    ("decoder_input_details", False, None), ("decoder_input_details", None, TypeError),
]
STREAM = [
    ("best_of", 1, None), ("best_of", 0, "`best_of` != 1 is not supported when streaming tokens"),
    ("best_of", 2, "`best_of` != 1 is not supported when streaming tokens"),
    ("decoder_input_details", True,
     "`decoder_input_details` == true is not supported when streaming tokens"),
    ("decoder_input_details", False, None), ("decoder_input_details", 1, TypeError),
]

ROUTES = {
    "/generate": (PLAIN, {}),
    "/generate_stream": (STREAM, {}),
    "/": (PLAIN, {}),
    "/ stream": (STREAM, {"stream": True}),
    "/invocations": (PLAIN, {}),
    "/invocations stream": (STREAM, {"stream": True}),
}


def error_of(text):
    """The error in an answer or in the last event of a stream, or None."""
    for line in text.splitlines():
        line = line.removeprefix("data: ")
        if line.startswith('{"error"'):
            error = json.loads(line)["error"]
            return error["message"] if isinstance(error, dict) else error
    return None


def check(status, text, expected, streams):
    if expected is TypeError:
        assert status == 422 and text.startswith(SHAPE), text
    elif expected is None:
        assert status == 200 and error_of(text) is None, text
    elif expected.startswith(TOOL):  # found before a stream starts
        assert status == 422 and error_of(text).startswith(expected), text
    else:
        assert status == (200 if streams else 422), text
        assert error_of(text).startswith(INVALID + expected), text


def check_rows(port, path, rows, body_of, streams=False):
    for name, value, expected in rows:
        status, text = post(port, path, body_of(name, value))
        try:
            check(status, text, expected, streams)
        except AssertionError as error:
            raise AssertionError(f"{name} = {value!r}: {error}") from error


def of_types_only(rows):
    """The rows for a route that ignores a parameter: any value of its type is accepted."""
    return [(name, value, expected if expected is TypeError else None) for name, value, expected in rows]


def generation(name, value):
    return {"inputs": "Hello there", "parameters": {name: value}}


@pytest.mark.parametrize("route", ROUTES)
def test_parameters_of_generations(port, route):
    more, extra = ROUTES[route]
    check_rows(port, route.split()[0], PARAMETERS + more, lambda *row: {**generation(*row), **extra},
               "stream" in route)


def test_parameters_of_tokenize(port):
    check_rows(port, "/tokenize", of_types_only(PARAMETERS + PLAIN), generation)


def test_parameters_of_vertex(port):
    rows = [row for row in PARAMETERS + PLAIN if row[0] != "max_new_tokens"]
    check_rows(port, "/vertex", of_types_only(rows), lambda *row: {"instances": [generation(*row)]})
    for name, value, expected in PARAMETERS:
        if name == "max_new_tokens":
            status, text = post(port, "/vertex", {"instances": [generation(name, value)]})
            assert status == {None: 200, TypeError: 422}.get(expected, 500), (value, text)


# Several parameters together: errors about one of them that depend on another.
TOGETHER = [
    ({"best_of": BEST_OF, "do_sample": True}, None),
    ({"best_of": BEST_OF, "temperature": 0.5}, None),
    ({"best_of": BEST_OF, "do_sample": True, "seed": 1}, "`seed` must not be set when `best_of` > 1"),
    ({"best_of": BEST_OF + 1, "do_sample": True}, f"`best_of` must be > 0 and <= {BEST_OF}. Given: "),
    ({"best_of": 1, "seed": 1}, None),
    ({"temperature": 0.0, "repetition_penalty": 0.0}, "`temperature` must be strictly positive"),
    ({"repetition_penalty": 0.0, "frequency_penalty": 3}, "`repetition_penalty` must be strictly positive"),
    ({"frequency_penalty": 3, "top_p": 0.0}, "`frequency_penalty` must be"),
    ({"top_p": 0.0, "typical_p": 0.0}, "`top_p` must be"),
    ({"typical_p": 0.0, "top_k": 0}, "`typical_p` must be"),
    ({"top_k": 0, "max_new_tokens": 0}, "`top_k` must be"),
    ({"max_new_tokens": 0, "stop": ["a"] * (STOPS + 1)}, "`max_new_tokens` must be strictly positive"),
    ({"stop": ["a"] * (STOPS + 1), "top_n_tokens": TOP_N + 1}, "`stop` supports up to"),
    ({"top_n_tokens": TOP_N + 1, "truncate": 0}, "`top_n_tokens` must be"),
    ({"truncate": 0, "grammar": {"type": "json", "value": 5}}, "`truncate` must be"),
]


@pytest.mark.parametrize("route", ["/generate", "/", "/invocations"])
def test_parameters_together_in_the_order_of_the_checks(port, route):
    for parameters, expected in TOGETHER:
        status, text = post(port, route, {"inputs": "Hello there", "parameters": parameters})
        try:
            check(status, text, expected, False)
        except AssertionError as error:
            raise AssertionError(f"{parameters}: {error}") from error


# (body, None = answered | text of the error | TypeError)
BODIES = [
    ({"inputs": "a"}, None), ({"inputs": "a", "parameters": {}}, None), ({"inputs": "a", "parameters": []}, None),
    ({"inputs": "a", "parameters": None}, TypeError), ({"inputs": "a", "parameters": "x"}, TypeError),
    ({}, TypeError), ({"inputs": 5}, TypeError), ({"inputs": None}, TypeError), ({"inputs": ["a"]}, TypeError),
    ({"inputs": ""}, "`inputs` cannot be empty"), ([], TypeError), ("x", TypeError),
    ({"inputs": "a", "unknown": 1}, None),
]


@pytest.mark.parametrize("route", ["/generate", "/generate_stream", "/"])
def test_bodies_of_generations(port, route):
    for body, expected in BODIES:
        status, text = post(port, route, body)
        try:
            check(status, text, expected, route == "/generate_stream")
        except AssertionError as error:
            raise AssertionError(f"{body}: {error}") from error


@pytest.mark.parametrize("value", ["true", 1, None])
def test_stream_is_a_plain_boolean(port, value):
    status, text = post(port, "/", {"inputs": "a", "stream": value})
    assert status == 422 and text.startswith(SHAPE), text


def tokens_of(port, text):
    status, answer = post(port, "/tokenize", {"inputs": text})
    assert status == 200, answer
    return len(json.loads(answer))


def test_the_exact_bounds_of_lengths(port):
    def generate(text, new):
        return post(port, "/generate", {"inputs": text, "parameters": {"max_new_tokens": new}})

    text = "a"
    while tokens_of(port, text + " a") <= INPUT:
        text += " a"
    count = tokens_of(port, text)
    assert count == INPUT
    assert generate(text, TOTAL - count)[0] == 200
    status, answer = generate(text, TOTAL - count + 1)
    assert (status, error_of(answer)) == (422, INVALID + (
        f"`inputs` tokens + `max_new_tokens` must be <= {TOTAL}. "
        f"Given: {count} `inputs` tokens and {TOTAL - count + 1} `max_new_tokens`"))
    over = text + " a"
    status, answer = generate(over, 1)
    assert (status, error_of(answer)) == (422, INVALID + (
        f"`inputs` must have less than {INPUT} tokens. Given: {tokens_of(port, over)}"))


VERTEX = [
    ({"instances": [{"inputs": "a"}]}, 200),
    ({"instances": [{"inputs": "a", "parameters": {"max_new_tokens": 1}}]}, 200),
    ({"instances": [{"messages": [{"role": "user", "content": "a"}]}]}, 200),
    ({"instances": []}, 422), ({}, 422), ({"instances": {}}, 422), ({"instances": [5]}, 422),
    ({"instances": [{"inputs": "a", "parameters": {"max_new_tokens": 0}}]}, 500),
    # In a chat every parameter is checked.
    ({"instances": [{"messages": [{"role": "user", "content": "a"}], "top_p": 0.5}]}, 200),
    ({"instances": [{"messages": [{"role": "user", "content": "a"}], "top_p": 1.0}]}, 500),
]


def test_bodies_of_vertex(port):
    for body, status in VERTEX:
        answer = post(port, "/vertex", body)
        assert answer[0] == status, (body, answer)
        if status == 200:
            assert len(json.loads(answer[1])["predictions"]) == len(body["instances"])


TOKENIZE = [
    ("/tokenize", {"inputs": "Hello there"}, 200), ("/tokenize", {}, 422), ("/tokenize", {"inputs": 5}, 422),
    ("/tokenize", {"inputs": "a", "parameters": None}, 422),
    ("/tokenize", {"inputs": "a" * 100, "parameters": {}}, 200),
    ("/chat_tokenize", {"messages": [{"role": "user", "content": "a"}]}, 200), ("/chat_tokenize", {}, 422),
    ("/chat_tokenize", {"messages": "a"}, 422), ("/chat_tokenize", {"messages": [{"role": "user"}]}, 422),
]


def test_bodies_of_tokenize(port):
    for path, body, status in TOKENIZE:
        answer = post(port, path, body)
        assert answer[0] == status, (path, body, answer)
    for token in json.loads(post(port, "/tokenize", {"inputs": "Hello there"})[1]):
        assert set(token) == {"id", "text", "start", "stop"}


METHODS = [
    ("GET", "/", 200), ("GET", "/info", 200), ("GET", "/health", 200), ("GET", "/ping", 200), ("GET", "/metrics", 200),
    ("GET", "/v1/models", 200), ("GET", "/api-doc/openapi.json", 200), ("GET", "/generate", 405),
    ("GET", "/generate_stream", 405), ("GET", "/tokenize", 405), ("GET", "/v1/chat/completions", 405),
    ("GET", "/v1/completions", 405), ("GET", "/invocations", 405), ("GET", "/vertex", 405), ("POST", "/info", 405),
    ("POST", "/health", 405), ("POST", "/metrics", 405), ("POST", "/v1/models", 405), ("PUT", "/generate", 405),
    ("DELETE", "/", 405), ("GET", "/nothing", 404), ("POST", "/generate/", 404), ("OPTIONS", "/generate", 200),
    ("OPTIONS", "/nothing", 200),
]


@pytest.mark.parametrize("method, path, status", METHODS)
def test_methods_of_routes(port, method, path, status):
    assert fetch(port, {"method": method, "path": path, "headers": []})[0] == status


GENERATING = ["/", "/generate", "/generate_stream", "/invocations", "/vertex", "/tokenize", "/chat_tokenize",
              "/v1/chat/completions", "/v1/completions"]


@pytest.mark.parametrize("path", GENERATING)
def test_errors_of_http_itself(port, path):
    def send(body, content_type="application/json"):
        headers = [["content-type", content_type]] if content_type else []
        status, _, text = fetch(port, {"method": "POST", "path": path, "body": body, "headers": headers})
        return status, text

    for content_type in ("", "text/plain", "application/x-www-form-urlencoded"):
        assert send('{"inputs":"a"}', content_type) == (
            415, "Expected request with `Content-Type: application/json`")
    for broken in ("", "{", '{"inputs":', "nonsense"):
        status, text = send(broken)
        assert status == 400 and text.startswith("Failed to parse the request body as JSON: "), (broken, text)
    inside, outside = (json.dumps({"inputs": "a", "pad": "x" * size}) for size in (PAYLOAD - 26, PAYLOAD))
    assert send(inside)[0] != 413
    status, text = send(outside)
    assert (status, text) == (413, "Failed to buffer the request body: length limit exceeded")


CHAT = [
    ("messages", [], None), ("messages", "a", TypeError), ("messages", [{"content": "a"}], TypeError),
    ("messages", [{"role": "user", "content": None}], TypeError), ("messages", None, TypeError),
    ("model", "any", None), ("model", None, None), ("model", 5, TypeError),
    ("max_tokens", None, None), ("top_p", "x", TypeError), ("frequency_penalty", "x", TypeError),
    ("presence_penalty", "x", TypeError), ("presence_penalty", None, None), ("stop", None, None),
    ("top_logprobs", -1, TypeError), ("tool_choice", "auto", None), ("tool_choice", "none", None),
    ("tool_choice", None, None), ("response_format", None, None), ("response_format", 5, TypeError),
    ("stream_options", {"include_usage": True}, None), ("stream_options", {"include_usage": 1}, TypeError),
    ("max_tokens", 1, None), ("max_tokens", 0, "`max_new_tokens` must be strictly positive"),
    ("max_tokens", "1", TypeError), ("max_completion_tokens", 1, None),
    ("temperature", 0, None), ("temperature", 2.0, None),
    ("temperature", -1, "`temperature` must be strictly positive"), ("temperature", "x", TypeError),
    ("top_p", 0.999, None), ("top_p", 1.0, "`top_p` must be > 0.0 and < 1.0"),
    ("frequency_penalty", 2, None),
    ("frequency_penalty", 2.1, "`frequency_penalty` must be >= -2.0 and <= 2.0"),
    ("presence_penalty", -1.9, None),
    ("presence_penalty", -2, "`repetition_penalty` must be strictly positive"),
    ("stop", ["a"], None), ("stop", "a", TypeError),
    ("stop", ["a"] * (STOPS + 1), f"`stop` supports up to {STOPS} stop sequences. Given: 5"),
    ("seed", 0, None), ("seed", -1, TypeError),
    ("top_logprobs", TOP_N, None),
    ("top_logprobs", TOP_N + 1,
     f"`top_n_tokens` must be >= 0 and <= {TOP_N}. Given: {TOP_N + 1}"),
    ("logprobs", True, None), ("logprobs", 1, TypeError), ("logprobs", None, None),
    ("n", 5, None), ("n", -1, TypeError), ("logit_bias", [0.5], None), ("logit_bias", {}, TypeError),
    ("user", 5, None), ("stream_options", {}, None), ("stream_options", True, TypeError),
    ("stream_options", None, TypeError), ("stream_options", {"include_usage": None}, TypeError),
    ("tool_choice", 5, TypeError), ("tools", "x", TypeError), ("tool_prompt", 5, TypeError),
    ("response_format", {"type": "regex", "value": "a"}, None),
    ("response_format", {"type": "json_object"}, TypeError),
    ("max_completion_tokens", "1", TypeError), ("max_completion_tokens", -1, TypeError),
    ("max_completion_tokens", 0, "`max_new_tokens` must be strictly positive"),
    ("tool_prompt", "Use one:", None), ("tool_prompt", None, None), ("tools", None, None),
    ("tools", [{"type": "function"}], TypeError),
    ("response_format", {"type": "json", "value": {}},
     "grammar is not valid: Grammar must have a 'properties' field"),
    ("response_format", {"type": "json", "value": 5}, "grammar is not supported"),
    ("response_format", {"type": "nope", "value": "a"}, TypeError),
]
FUNCTION = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
TOOLS = [
    ("tool_choice", "none", None), ("tool_choice", "g", f"{TOOL}Tool with name g not found"),
    ("tool_choice", {"type": "function", "function": {"name": "g"}}, f"{TOOL}Tool with name g not found"),
    ("response_format", {"type": "regex", "value": "a"},
     f"{TOOL}Grammar and tools are mutually exclusive"),
]


def chat(name, value):
    body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2, name: value}
    if name == "max_completion_tokens":
        del body["max_tokens"]
    return body


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/invocations"])
def test_parameters_of_chats(port, path, streams):
    check_rows(port, path, CHAT, lambda *row: {**chat(*row), "stream": streams}, streams)
    check_rows(port, path, TOOLS, lambda *row: {**chat(*row), "stream": streams, "tools": [FUNCTION]},
               streams)


def test_parameters_of_chat_tokenize(port):
    check_rows(port, "/chat_tokenize", of_types_only(CHAT), chat)
    check_rows(port, "/chat_tokenize", TOOLS, lambda *row: {**chat(*row), "tools": [FUNCTION]})


COMPLETIONS = [
    ("max_tokens", 1, None), ("max_tokens", "1", TypeError), ("max_tokens", None, None),
    ("temperature", "x", TypeError), ("temperature", 1.0, None), ("top_p", 0.5, None), ("top_p", "x", TypeError),
    ("seed", 1, None), ("seed", -1, TypeError),
    ("frequency_penalty", 2, None), ("frequency_penalty", 2.1, "`frequency_penalty` must be >= -2.0 and <= 2.0"),
    ("repetition_penalty", "x", TypeError), ("model", "any", None), ("model", 5, TypeError),
    ("stop", ["a"] * STOPS, None),
    ("stop", ["a"] * (STOPS + 1), f"`stop` supports up to {STOPS} stop sequences. Given: 5"),
    ("prompt", "a", None), ("prompt", ["a"] * PROMPTS, None), ("prompt", [], TypeError),
    ("prompt", 5, TypeError), ("prompt", [1], TypeError),
    ("max_tokens", 0, "`max_new_tokens` must be strictly positive"),
    ("temperature", 0, None), ("temperature", -1, "`temperature` must be strictly positive"),
    ("repetition_penalty", 0.1, None),
    ("repetition_penalty", 0, "`repetition_penalty` must be strictly positive"),
    ("top_p", 1.0, "`top_p` must be > 0.0 and < 1.0"), ("seed", 1.5, TypeError),
    ("stop", ["a"], None), ("stop", "a", TypeError), ("echo", True, None),
    ("frequency_penalty", "x", TypeError), ("frequency_penalty", None, None),
    ("suffix", 5, TypeError), ("suffix", None, None),
]


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("path", ["/v1/completions", "/invocations"])
def test_parameters_of_completions(port, path, streams):
    def body_of(name, value):
        return {"prompt": "Hi", "max_tokens": 2, "stream": streams, name: value}

    check_rows(port, path, COMPLETIONS, body_of, streams)
    for body, kind in (({"prompt": "a", "suffix": "b"}, "suffix not supported"),
                       ({"prompt": ["a"] * (PROMPTS + 1)}, "batch size exceeded")):
        status, text = post(port, path, body)
        assert (status, json.loads(text)["error_type"]) == (422, kind)


def test_lengths_of_inputs(port):
    status, text = post(port, "/generate", {"inputs": ""})
    assert (status, error_of(text)) == (422, INVALID + "`inputs` cannot be empty")
    many = "Hello there " * INPUT
    status, text = post(port, "/generate", {"inputs": many, "parameters": {"max_new_tokens": 1}})
    assert status == 422 and error_of(text).startswith(INVALID), text
    status, text = post(port, "/generate", {"inputs": many, "parameters": {"truncate": 5,
                                                                           "max_new_tokens": 1}})
    assert status == 200, text


def test_the_document_names_every_route_and_parameter(port):
    get = {"method": "GET", "path": "/api-doc/openapi.json", "headers": []}
    document = json.loads(fetch(port, get)[2])
    assert {"/", "/generate", "/generate_stream", "/invocations", "/v1/chat/completions",
            "/v1/completions", "/tokenize", "/chat_tokenize", "/info", "/health",
            "/metrics"} <= set(document["paths"])
    named = document["components"]["schemas"]["GenerateParameters"]["properties"]
    assert {name for name, _, _ in PARAMETERS + PLAIN} - {"unknown_key"} <= set(named)
    assert {name for name, _, _ in CHAT} - {"max_completion_tokens", "user"} <= \
        set(document["components"]["schemas"]["ChatRequest"]["properties"])


def test_a_costly_schema_is_refused_at_once(port):
    schema = {"properties": {f"k{i}": {"type": "string"} for i in range(3000)}}
    status, text = post(port, "/generate", {"inputs": "a", "parameters": {
        "grammar": {"type": "json", "value": schema}}})
    assert status == 422 and "must have at most 262144 bytes" in error_of(text), text[:300]
