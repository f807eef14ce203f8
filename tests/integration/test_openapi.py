"""The OpenAPI document against the server: each documented route is asked, and what it answers is checked
against the schema that the document gives for the status and the media type."""

import copy
import json

import jsonschema
import pytest
from penstock_testing import BUILD

MESSAGES = {"model": "model", "max_tokens": 4, "messages": [{"role": "user", "content": "Hello"}]}
COUNT = {key: MESSAGES[key] for key in ("model", "messages")}
OLLAMA = {"model": "model", "messages": MESSAGES["messages"], "options": {"num_predict": 4}}
GENERATE = {"model": "model", "prompt": "Once", "options": {"num_predict": 4}}
INPUTS = {"inputs": "Once upon a time", "parameters": {"max_new_tokens": 4}}
FULL = {"inputs": "Once upon a time", "parameters": {
    "max_new_tokens": 4, "details": True, "decoder_input_details": True, "do_sample": True, "best_of": 2,
    "top_n_tokens": 2, "stop": ["never"]}}
STREAMED = {"inputs": "Once", "stream": True, "parameters": {"max_new_tokens": 3, "details": True, "top_n_tokens": 2}}
CHAT = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4}
LOGPROBS = {**CHAT, "logprobs": True, "top_logprobs": 2}
PROMPT = {"prompt": "Once upon a time", "max_tokens": 4}
WRONG = {"inputs": "", "parameters": {}}
DJL = {"inputs": ["Once", "Twice"], "parameters": {"max_new_tokens": 3, "details": True, "decoder_input_details": True}}
LINES = {"parameters": {"output_formatter": "jsonlines", "max_new_tokens": 3, "details": True}, "stream": True,
         "inputs": "Once"}
RESPONSE = {"input": "Hello", "max_output_tokens": 4}
RERANK = {"query": "Who?", "documents": ["One.", "Two."]}
PAIR = {"text_1": "One.", "text_2": "Two."}
VERTEX = {"instances": [INPUTS, CHAT]}

SGLANG = {"text": "Once upon a time", "sampling_params": {"max_new_tokens": 3}}
SGLANG_LOGPROBS = {**SGLANG, "return_logprob": True, "logprob_start_len": 0, "top_logprobs_num": 2,
                   "return_text_in_logprobs": True}

# (method, documented path, bodies of requests that are asked one after another)
ADAPTER = {"name": "a", "folder": str(BUILD / "tests" / "model_adapters" / "fused")}
BOTH = [
    ("POST", "/generate", [INPUTS, FULL, WRONG, {"inputs": 3}, "{", {**INPUTS, "parameters": {"stop": [1]}}]),
    ("POST", "/generate_stream", [INPUTS, STREAMED, WRONG, "{"]),
    ("POST", "/", [INPUTS, FULL, STREAMED, WRONG]),
    ("POST", "/invocations", [INPUTS, STREAMED, CHAT, PROMPT, WRONG, "{"]),
    ("POST", "/vertex", [VERTEX, {"instances": []}]),
    ("POST", "/tokenize", [INPUTS, "{"]),
    ("POST", "/chat_tokenize", [CHAT, {"messages": 1}]),
    ("POST", "/v1/chat/completions", [CHAT, LOGPROBS, {**LOGPROBS, "stream": True}, {**CHAT, "max_tokens": 0},
                                      {**CHAT, "stream": True, "stream_options": {"include_usage": True}}, "{"]),
    ("POST", "/v1/completions", [PROMPT, {**PROMPT, "stream": True}, {**PROMPT, "max_tokens": 0}, "{"]),
    ("POST", "/predictions/{model}", [DJL, LINES, {**LINES, "parameters": {"output_formatter": "sse"}}, {"inputs": []},
                                      {**DJL, "inputs": "Once", "parameters": {"max_new_tokens": -1}}, "{"]),
    ("POST", "/models/{model}/invoke", [DJL]),
    ("POST", "/inference", [{"prompt": "Once", "num_tokens": 3}, {"prompt": "Once", "num_tokens": 3, "details": True},
                            {"prompt": "", "num_tokens": 3}, "{"]),
    *[("GET", path, [None]) for path in (
        "/info", "/health", "/ping", "/", "/docs", "/docs/", "/api-doc/openapi.json", "/v1/models", "/stats", "/live",
        "/ready", "/metrics", "/requests/{id}", "/cached_prompts", "/adapters")],
    ("POST", "/adapters", [ADAPTER, {**ADAPTER, "name": "a b"}, "{"]),
    ("DELETE", "/adapters/{id}", [None]),
    ("DELETE", "/stats", [None]),
    ("DELETE", "/cached_prompts", [None]),
    ("DELETE", "/cached_prompts/{id}", [None]),
]
OURS = [
    ("POST", "/v1/completions", [{**PROMPT, "logprobs": 2}, {**PROMPT, "logprobs": 2, "stream": True}]),
    ("POST", "/invocations", [DJL, LINES]),
    ("GET", "/v1/models/{id}", [None]),
    ("POST", "/v1/messages", [MESSAGES, {**MESSAGES, "stream": True}, {**MESSAGES, "max_tokens": 0}, COUNT, "{"]),
    ("POST", "/v1/messages/count_tokens", [COUNT, "{"]),
    ("POST", "/api/chat", [OLLAMA, {**OLLAMA, "stream": False}, {**OLLAMA, "messages": []}, {}, "{"]),
    ("POST", "/api/generate", [GENERATE, {**GENERATE, "stream": False, "raw": True}, {**GENERATE, "suffix": "x"}]),
    ("POST", "/api/show", [{"model": "model"}, "{"]),
    ("POST", "/generate", [SGLANG, SGLANG_LOGPROBS, {**SGLANG, "text": ["a", "b"]}, {**SGLANG, "stream": True},
                           {**SGLANG, "sampling_params": {"top_p": 2}}]),
    ("POST", "/flush_cache", ["{}"]),
    ("POST", "/concate_and_append_request", [{"src_rids": ["a"], "dst_rid": "b"}, {}]),
    *[("GET", path, [None]) for path in ("/get_model_info", "/model_info", "/get_server_info", "/server_info",
                                         "/health_generate")],
    ("POST", "/detokenize", [{"tokens": [5, 6]}, "{"]),
    ("POST", "/v1/responses", [RESPONSE, {**RESPONSE, "stream": True}, {**RESPONSE, "input": 3}, "{"]),
    ("GET", "/v1/responses/{id}", [None]),
    ("GET", "/v1/responses/{id}/input_items", [None]),
    ("POST", "/v1/responses/{id}/cancel", [None]),
    ("DELETE", "/v1/responses/{id}", [None]),
    *[("GET", path, [None]) for path in ("/api/tags", "/api/ps", "/api/version", "/version")],
]
# Refused: the model generates text.
VECTORS = [
    ("POST", "/v1/embeddings", [{"input": "Hello"}, "{"]),
    ("POST", "/embed", [INPUTS]),
    *[("POST", path, [RERANK]) for path in ("/rerank", "/v1/rerank", "/v2/rerank")],
    *[("POST", path, [PAIR]) for path in ("/score", "/v1/score")],
    *[("POST", path, [{"input": "Hello"}]) for path in ("/classify", "/v1/classify")],
]
# The page on `/`: tests/conformance/test_console.py uses them.
PAGE = {("GET", "/console/{file}"), ("GET", "/console/events")}


LINES_OF_JSON = ("application/jsonlines", "application/x-ndjson")


def json_schema(document):
    """The document as JSON schema: OpenAPI 3.0 says `nullable` where JSON schema has a type."""
    def walk(node):
        if isinstance(node, list):
            return [walk(item) for item in node]
        if not isinstance(node, dict):
            return node
        node = {key: walk(value) for key, value in node.items()}
        return {"anyOf": [node, {"type": "null"}]} if node.pop("nullable", None) else node
    return walk(copy.deepcopy(document))


def events(media, body):
    text = body.decode()
    if media in LINES_OF_JSON:
        return [json.loads(line) for line in text.splitlines()]
    data = [line[5:].strip() for line in text.splitlines() if line.startswith("data:")]
    return [json.loads(item) for item in data if item != "[DONE]"]


class Document:
    def __init__(self, server):
        self.server = server
        self.root = json_schema(server.json("GET", "/api-doc/openapi.json"))

    def check(self, value, schema, what):
        validator = jsonschema.Draft202012Validator({**schema, "components": self.root["components"]})
        errors = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]
        assert not errors, (what, errors, value)

    def ask(self, method, path, body):
        """Asks and checks; the status."""
        operation = self.root["paths"][path][method.lower()]
        at = path.replace("{model}", "model").replace("{id}", "model" if path.startswith("/v1") else "7")
        status, headers, payload = self.server.request(method, at, body)
        what = (method, path, body, status)
        assert str(status) in operation["responses"], (what, payload)
        if status < 300 and isinstance(body, dict):
            self.check(body, operation["requestBody"]["content"]["application/json"]["schema"], (what, "request"))
        content = operation["responses"][str(status)].get("content")
        media = {k.lower(): v for k, v in headers.items()}.get("content-type", "").split(";")[0]
        if content is None:
            assert payload == b"", (what, payload)
            return status
        assert media in content, (what, media, payload)
        schema = content[media]["schema"]
        if media in ("text/event-stream", *LINES_OF_JSON):
            got = events(media, payload)
            assert got, what
            for event in got:
                if set(event) != {"error", "error_type"} and not isinstance(event.get("error"), dict):
                    self.check(event, schema, what)
        else:
            self.check(json.loads(payload) if media == "application/json" else payload.decode(), schema, what)
        return status


def references(node):
    if isinstance(node, dict):
        return {node["$ref"]} if "$ref" in node else set().union(*map(references, node.values()))
    return set().union(*map(references, node)) if isinstance(node, list) else set()


@pytest.mark.parametrize("profile", ["penstock", "tgi"])
def test_every_answer_is_as_documented(simulated, profile):
    server = simulated("--api-profile", profile, "--served-model-name", "model")
    document = Document(server)
    rows = BOTH + (OURS + VECTORS if profile == "penstock" else [])
    documented = {(method.upper(), path) for path, methods in document.root["paths"].items() for method in methods}
    page = PAGE if profile == "penstock" else set()
    assert documented - page == {(method, path) for method, path, _ in rows}
    assert page <= documented
    for method, path, bodies in rows:
        statuses = [document.ask(method, path, body) for body in bodies]
        assert (statuses[0] < 400) != ((method, path, bodies) in VECTORS) or "{id}" in path, (path, statuses)
    record = server.request("POST", "/generate", {"inputs": "x"}, headers={"x-request-id": "7"})
    assert record[0] == 200 and document.ask("GET", "/requests/{id}", None) == 200


def test_references_resolve_and_arrays_have_an_item_type(simulated):
    document = simulated().json("GET", "/api-doc/openapi.json")
    names = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert references(document) <= names
    schemas = document["components"]["schemas"]
    strings = {"type": "array", "items": {"type": "string"}}
    assert schemas["GenerateParameters"]["properties"]["stop"] == strings
    assert schemas["ChatRequest"]["properties"]["messages"]["items"] == {"$ref": "#/components/schemas/Message"}
    for path, operations in document["paths"].items():
        for operation in operations.values():
            for status, answer in operation["responses"].items():
                for content in answer.get("content", {}).values():
                    assert content["schema"], (path, status)


def test_the_document_has_the_answer_to_a_wrong_key(simulated):
    server = simulated("--api-key", "secret")
    document = Document(server)
    for method, path in [("POST", "/generate"), ("POST", "/v1/chat/completions"), ("POST", "/predictions/{model}"),
                         ("GET", "/stats")]:
        assert document.ask(method, path, {} if method == "POST" else None) == 401
