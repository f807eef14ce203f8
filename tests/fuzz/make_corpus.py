#!/usr/bin/env python3
"""Writes the seeds of tests/fuzz/corpus: for each target a few inputs that its reader takes.

usage: PENSTOCK_BUILD_DIR=build .venv/bin/python tests/fuzz/make_corpus.py

Bodies of requests are made from the OpenAPI documents of running servers, so they have every key. The input log is
recorded from one. Inputs that fuzzers found are not made here: they are files named found-*, and stay.
"""

import itertools
import json
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integration"))

import proto_modules  # noqa: E402
from penstock_testing import BIN, Server  # noqa: E402

CORPUS = ROOT / "tests" / "fuzz" / "corpus"
DEEPEST = 6
SEPARATOR = "\n----\n"
MESSAGES = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello"}]
TOOL = {"type": "function", "function": {
    "name": "f", "description": "d", "parameters": {"type": "object", "properties": {"x": {"type": "string"}},
                                                    "required": ["x"]}}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{\"x\": \"y\"}"}}
# Target, path -> bodies beside those of the OpenAPI document.
BODIES = {
    ("json_openai", "/v1/chat/completions"): [
        {"model": "demo", "messages": [*MESSAGES, {"role": "assistant", "tool_calls": [CALL]},
                                       {"role": "tool", "tool_call_id": "call_1", "content": "z"}],
         "tools": [TOOL], "tool_choice": "required", "stream": True, "stream_options": {"include_usage": True}},
        {"model": "demo", "messages": MESSAGES, "n": 2, "logprobs": True, "top_logprobs": 2, "stop": ["a", "b"],
         "response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": {
             "type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"],
             "additionalProperties": False}}}, "logit_bias": {"5": -1.5}, "seed": 3},
        {"model": "demo", "messages": MESSAGES, "structured_outputs": {"grammar": "root ::= \"a\" [0-9]+"}},
    ],
    ("json_openai", "/v1/completions"): [
        {"model": "demo", "prompt": ["a", "b"], "echo": True, "logprobs": 2, "max_tokens": 3, "suffix": None},
        {"model": "demo", "prompt": [1, 2, 3], "use_beam_search": True, "n": 2, "length_penalty": 0.5},
    ],
    ("json_anthropic", "/v1/messages"): [
        {"model": "demo", "max_tokens": 5, "system": [{"type": "text", "text": "s"}], "stream": True, "messages": [
            {"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {"x": "y"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "z"}]}],
         "tools": [{"name": "f", "input_schema": {"type": "object"}}], "tool_choice": {"type": "any"},
         "thinking": {"type": "enabled", "budget_tokens": 1024}},
    ],
    ("json_responses", "/v1/responses"): [
        {"model": "demo", "stream": True, "instructions": "i", "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "o"}],
         "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}], "store": True,
         "text": {"format": {"type": "json_object"}}, "reasoning": {"effort": "low"}},
    ],
    ("json_ollama", "/api/chat"): [
        {"model": "demo", "messages": MESSAGES, "format": "json", "options": {"num_predict": 3, "temperature": 0.5},
         "tools": [TOOL], "think": True},
    ],
    ("json_sglang", "/generate"): [
        {"text": ["a", "b"], "sampling_params": {"max_new_tokens": 3, "regex": "[ab]+", "n": 2},
         "return_logprob": True, "top_logprobs_num": 2, "stream": True},
    ],
    ("json_djl", "/predictions/demo"): [
        {"inputs": "a", "stream": True, "parameters": {"output_formatter": "jsonlines", "max_new_tokens": 3,
                                                       "details": True}},
    ],
    ("json_tgi", "/generate"): [
        {"inputs": "a", "parameters": {"grammar": {"type": "json", "value": {"properties": {"a": {"type": "string"}}}},
                                       "max_new_tokens": 3, "top_n_tokens": 2, "decoder_input_details": True,
                                       "details": True, "stop": ["x"], "seed": 1, "best_of": 2, "do_sample": True}},
    ],
}
HTTP = {
    "get": "GET /info?a=b HTTP/1.1\r\nHost: a\r\n\r\n",
    "post": "POST /generate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n"
            '{"inputs":"a"}',
    "chunked": "POST /generate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked"
               "\r\n\r\n7;x=y\r\n{\"input\r\n7\r\ns\":\"a\"}\r\n0\r\nT: v\r\n\r\n",
    "pipelined": "GET /health HTTP/1.1\r\nHost: a\r\n\r\nHEAD /docs HTTP/1.1\r\nHost: a\r\n\r\n"
                 "OPTIONS /generate HTTP/1.1\r\nHost: a\r\nOrigin: http://b\r\n\r\n",
    "absolute": "GET http://a:3000/metrics HTTP/1.1\r\nHost: a:3000\r\nX-Request-Id: r1\r\n\r\n",
    "expect": "POST / HTTP/1.0\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
    "two_lengths": "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "folded": "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n",
    "unknown": "DELETE /v1/complections/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n",
}
TEMPLATES = {
    "chatml": ["{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m.content | trim }}<|im_end|>\n{% endfor %}"
               "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"],
    "tools": ["{%- macro f(x, y=1) -%}{{ x ~ y }}{%- endmacro -%}{%- set ns = namespace(n=0) -%}{%- for t in tools or "
              "[] -%}{{ t | tojson(indent=2) }}{{ f(loop.index, y=loop.last) }}{%- set ns.n = ns.n + 1 -%}{%- endfor "
              "-%}{{ strftime_now('%d %b %Y') }}{{ bos_token }}", json.dumps(MESSAGES), json.dumps([TOOL]),
              '{"enable_thinking": true}'],
    "methods": ["{{ messages[0]['content'].split('l')[::-1] | join('-') }}{{ 'a%sb' % 3 }}{{ \"%05.2f\" | "
                "format(2.5) }}{{ 'x'.upper().replace('X', 'yy').strip('y') }}{{ {'a': 1}.items() | list }}"
                "{{ [3, 1] | sort | first }}{{ 7 // 2 ** 2 % 3 }}{{ messages | selectattr('role', 'equalto', 'user') | "
                "list | length }}"],
    "raise": ["{% if messages[0].role != 'system' %}{{ raise_exception('no') }}{% endif %}{% filter upper %}a"
              "{% endfilter %}{% call(x) g() %}{{ x }}{% endcall %}"],
}
GRAMMARS = {
    "schema": "json\n" + json.dumps({
        "type": "object", "properties": {"a": {"type": "integer", "minimum": 3}, "b": {"enum": ["x", None, 1]},
                                         "c": {"type": "array", "items": {"$ref": "#/$defs/d"}, "maxItems": 3}},
        "required": ["a"], "additionalProperties": False,
        "$defs": {"d": {"anyOf": [{"type": "string", "pattern": "^[a-c]{2,5}$"}, {"type": "boolean"}]}}}),
    "regex": "regex\n(?i)[a-z]{1,3}(foo|ba[rz])*\\d+(?:\\.\\d{2})?",
    "lark": "lark\nstart: a (\",\" a)*\na: /[a-z]+/ | \"(\" start \")\"\n%ignore / /\n",
    "gbnf": "gbnf\nroot ::= object\nobject ::= \"{\" ws (pair (\",\" pair)*)? \"}\"\npair ::= [a-z]+ \":\" ws "
            "value\nvalue ::= object | [0-9]{1,3} | \"\\\"\" [^\"\\\\]* \"\\\"\"\nws ::= [ \\t\\n]*\n",
    "tgi": "tgi\n" + json.dumps({"type": "object", "required": ["a"], "properties": {
        "a": {"type": "string", "maxLength": 4, "format": "date"}, "b": {"allOf": [{"$ref": "#/definitions/c"}]},
        "d": {"type": "array", "prefixItems": [{"type": "number"}], "minItems": 1}},
        "definitions": {"c": {"oneOf": [{"const": 1}, {"type": "null"}]}}}),
}
YAML = {
    "plain": "# a server\nport: 3000\nhost: 127.0.0.1\nlora:\n  - a=/x\n  - b=/y\njson-output: true\nmodel-id:\n",
    "flow": "{port: 1, cors-allow-origin: [a, \"b\\n\", 'c'], x: &a [1], y: *a}\n",
    "tags": "--- !!map\n? !!str port\n: |2-\n   text\n  more\nfold: >+\n  a\n  b\n\n...\n",
}
PROPERTIES = {
    "usual": "engine=Python\noption.model_id=/opt/ml/model\noption.tensor_parallel_degree=2\n"
             "option.rolling_batch=auto\noption.max_rolling_batch_size: 32\nbatch_size = 4 # a comment\n"
             "job_queue_size 10\n",
    "escapes": "! note\nopti\\\n  on.dtype = fp\\u003116\\n\\q\noption.load_in_8bit=true\noption.entryPoint=x\n=\n\\",
}


def put(target, name, data):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.seed").write_bytes(data if isinstance(data, bytes) else data.encode())


# ---- bodies of requests ----

def example(schema, document, whole, depth=0):
    """A value of a schema; with `whole` an object has all its keys, else those that it must have."""
    if "$ref" in schema:
        return example(document["components"]["schemas"][schema["$ref"].rpartition("/")[2]], document, whole, depth)
    for key in ("oneOf", "anyOf", "allOf"):
        if key in schema:
            choice = schema[key][-1 if depth % 2 else 0]
            return example(choice, document, whole, depth + 1)
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object":
        if depth > DEEPEST:
            return {}
        keys = schema.get("properties", {})
        chosen = keys if whole else schema.get("required", [])
        return {key: example(keys.get(key, {}), document, whole, depth + 1) for key in chosen}
    if kind == "array":
        return [] if depth > DEEPEST else [example(schema.get("items", {}), document, whole, depth + 1)]
    return {"string": "a", "integer": 1, "number": 0.5, "boolean": True}.get(kind)


def put_bodies(target, paths, document):
    for path in paths:
        documented = next((p for p in (path, path.replace("/demo", "/{model}")) if p in document["paths"]), None)
        name = path.strip("/").replace("/", "-") or "root"
        bodies = list(BODIES.get((target, path), []))
        content = document["paths"].get(documented, {}).get("post", {}).get("requestBody", {}).get("content", {})
        if content:
            schema = next(iter(content.values()))["schema"]
            bodies += [example(schema, document, True), example(schema, document, False)]
        for number, body in enumerate(bodies or [{}]):
            put(target, f"{name}-{number}", f"{path}\n{json.dumps(body)}")


TARGETS = {
    "json_anthropic": ["/v1/messages", "/v1/messages/count_tokens"],
    "json_djl": ["/predictions/demo", "/invocations"],
    "json_effective": ["/inference"],
    "json_native": ["/adapters"],
    "json_ollama": ["/api/chat", "/api/generate", "/api/show"],
    "json_openai": ["/v1/chat/completions", "/v1/completions", "/tokenize", "/detokenize"],
    "json_responses": ["/v1/responses"],
    "json_sglang": ["/generate", "/concate_and_append_request"],
}
TGI_TARGETS = {"json_tgi": ["/generate", "/generate_stream", "/", "/vertex", "/tokenize", "/chat_tokenize",
                            "/invocations", "/v1/completions", "/v1/chat/completions"]}
VECTORS = {
    "/v1/embeddings": {"model": "demo", "input": ["a", [1, 2]], "encoding_format": "base64", "dimensions": 2},
    "/embed": {"inputs": ["a", "b"], "truncate": True, "prompt_name": "query", "normalize": False},
    "/rerank": {"query": "a", "texts": ["b", "c"], "documents": ["d"], "top_n": 1, "return_text": True},
    "/v1/score": {"text_1": "a", "text_2": ["b", "c"]},
    "/v1/classify": {"input": ["a"], "model": "demo"},
}


# ---- wire ----

def records(parts):
    return b"".join(len(part).to_bytes(2, "little") + part for part in parts)


def put_plans(v1):
    def plan(step, **fields):
        return v1.StepPlan(epoch=1, step=step, **fields)

    start = v1.SequenceStart(
        slot=1, sequence=5, prompt=[1, 2, 3, 4, 5], prompt_length=5, max_new_tokens=4, stop_token_ids=[259],
        sampling=v1.Sampling(do_sample=True, temperature=0.7, top_k=5, top_p=0.9, typical_p=1, repetition_penalty=1.1,
                             seed=3, bias_tokens=[4], bias_values=[-1]),
        logprobs=v1.Logprobs(kind=2, top_n=2, prompt=True))
    append = [v1.BlockOp(kind=1, slot=1, dst=block) for block in (0, 1)]
    prompt = v1.Segment(prompt=v1.PromptSegment(slot=1, first=0, count=5, logits=2))
    decode = v1.Segment(decode=v1.DecodeSegment(slot=1, max_rows=1))
    messages = [plan(1, starts=[start], block_ops=append, segments=[prompt],
                     groups=[v1.SegmentGroup(segments=[0])]),
                plan(2, segments=[decode], groups=[v1.SegmentGroup(segments=[0])]),
                plan(3, ends=[1])]
    put("plans", "sequence", records(m.SerializeToString() for m in messages))
    grammar = v1.SequenceStart(slot=0, sequence=6, prompt=[7], prompt_length=1, max_new_tokens=2, adapter_id="a",
                               trace_id="00-1-2-01", ignore_eos=True, grammar=v1.Grammar(kind=2, source="[ab]+"),
                               sampling=v1.Sampling(penalty_alpha=0.5, top_k=4, bad_words=[v1.TokenIds(ids=[1, 2])]))
    put("plans", "grammar", records([plan(1, starts=[grammar]).SerializeToString()]))
    result = v1.StepResult(epoch=1, step=2, digest=9, memory_bytes=5, drafted=1, timings=v1.Timings(forward_ns=7),
                           cells=v1.CellUse(allocated=3, filled=2))
    result.sequences.add(slot=1, sequence=5, committed_length=6, finish=2, prompt_logprobs=[-1, -2],
                         prompt_alternatives=[v1.PromptAlternatives(rank=2, tokens=[3], logprobs=[-1])],
                         tokens=[v1.SampledToken(token=3, logprob=-0.5, alternative_tokens=[4],
                                                 alternative_logprobs=[-2])])
    result.sequences.add(slot=2, sequence=6, finish=4, error="not a number")
    put("step_result", "two", result.SerializeToString())


def put_calls(v3):
    def request(number, text, **stopping):
        return v3.Request(id=number, inputs=text, input_chunks=v3.Input(chunks=[v3.InputChunk(text=text)]),
                          truncate=20, top_n_tokens=2, prefill_logprobs=True,
                          parameters=v3.NextTokenChooserParameters(temperature=0.5, top_k=3, seed=4, do_sample=True),
                          stopping_parameters=v3.StoppingCriteriaParameters(**{"max_new_tokens": 3, **stopping}))

    batch = v3.Batch(id=1, size=2, max_tokens=40, requests=[
        request(1, "the hero", stop_sequences=["he"]), request(2, "a", ignore_eos_token=True)])
    other = v3.Batch(id=2, size=1, max_tokens=9, requests=[request(3, "b")])
    decode = v3.DecodeRequest(batches=[v3.CachedBatch(id=1), v3.CachedBatch(id=2)])
    keep = v3.FilterBatchRequest(batch_id=1, request_ids=[2])
    put("generate_v3", "batches", records([
        b"p" + v3.PrefillRequest(batch=batch).SerializeToString(),
        b"p" + v3.PrefillRequest(batch=other).SerializeToString(), b"d" + decode.SerializeToString(),
        b"f" + keep.SerializeToString(),
        b"d" + v3.DecodeRequest(batches=[v3.CachedBatch(id=1)]).SerializeToString(), b"c"]))
    put("generate_v3", "one", records([b"p" + v3.PrefillRequest(batch=other).SerializeToString()]))


def read_varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def put_log(log):
    """The begin of the log, and its records without their checksums."""
    put("input_log", "whole", log[:2000])
    parts, at = [], log.index(b"\n") + 1
    while at < len(log) and sum(map(len, parts)) < 1500:
        size, at = read_varint(log, at)
        _, at = read_varint(log, at)
        parts.append(log[at:at + size])
        at += size
    put("input_log", "records", records(part for part in parts if len(part) < 1000))


# ---- files ----

def put_models():
    checkpoints = BIN.parent / "tests"
    folders = sorted(path.parent for path in checkpoints.glob("*/*/config.json"))
    for folder in folders[::6]:
        config = json.dumps(json.loads((folder / "config.json").read_text()))
        put("config_json", folder.name, config + SEPARATOR + '{"eos_token_id": [1, 2]}')
    header = {"__metadata__": {"format": "pt"}, "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
              "b.weight": {"dtype": "BF16", "shape": [], "data_offsets": [24, 26]},
              "c": {"dtype": "F8_E4M3", "shape": [0, 4], "data_offsets": [26, 26]}}
    put("safetensors", "three", "26\n" + json.dumps(header) + "  ")
    put("safetensors", "empty", "0\n{}")
    tokenizer = {
        "version": "1.0", "added_tokens": [{"id": 4, "content": "<s>", "single_word": False, "lstrip": False,
                                            "rstrip": False, "normalized": False, "special": True}],
        "truncation": None, "padding": None, "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "\\s+|\\w+"}, "behavior": "Isolated", "invert": False},
        "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                                                                    {"Sequence": {"id": "A", "type_id": 0}}],
                           "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                           "special_tokens": {"<s>": {"id": "<s>", "ids": [4], "tokens": ["<s>"]}}},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}}
    models = {
        "bpe": {"type": "BPE", "unk_token": "a", "vocab": {"a": 0, "b": 1, "ab": 2, "h": 3}, "merges": ["a b"],
                "byte_fallback": True},
        "wordpiece": {"type": "WordPiece", "unk_token": "u", "continuing_subword_prefix": "##",
                      "max_input_chars_per_word": 9, "vocab": {"u": 0, "the": 1, "##he": 2, "h": 3}},
        "unigram": {"type": "Unigram", "unk_id": 0, "vocab": [["u", 0], ["h", -1.5], ["he", -2], ["▁t", -3]]},
        "wordlevel": {"type": "WordLevel", "unk_token": "u", "vocab": {"u": 0, "the": 1, "hero": 2, "says": 3}},
    }
    for name, model in models.items():
        put("tokenizer_json", name, json.dumps({**tokenizer, "model": model}) + SEPARATOR + json.dumps(
            {"bos_token": "<s>", "chat_template": "{{ messages }}"}))


def main():
    for path in CORPUS.glob("*/*.seed"):
        if not path.name.startswith("found-"):
            path.unlink()
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "inputs.log"
        simulated = ("--shard-program", BIN / "penstock-simshard")
        with Server(*simulated, "--record", log) as server:
            document = server.json("GET", "/api-doc/openapi.json")
            for _ in range(2):
                server.generate("Once upon a time", max_new_tokens=3)
        put_log(log.read_bytes())
        with Server(*simulated, "--api-profile", "tgi") as server:
            of_tgi = server.json("GET", "/api-doc/openapi.json")
    for target, paths in TARGETS.items():
        put_bodies(target, paths, document)
    for target, paths in TGI_TARGETS.items():
        put_bodies(target, paths, of_tgi)
    for path, body in VECTORS.items():
        put("json_vectors", path.strip("/").replace("/", "-"), f"{path}\n{json.dumps(body)}")
    texts = {"http": HTTP, "grammar": GRAMMARS, "yaml": YAML, "serving_properties": PROPERTIES,
             "chat_template": {name: SEPARATOR.join(parts) for name, parts in TEMPLATES.items()}}
    for target, seeds in texts.items():
        for name, text in seeds.items():
            put(target, name, text)
    put_models()
    put_plans(proto_modules.load("penstock.v1.shard_pb2"))
    put_calls(proto_modules.load("generate.v3.generate_pb2"))
    sizes = [path.stat().st_size for path in CORPUS.glob("*/*.seed")]
    print(f"{len(sizes)} seeds, {sum(sizes)} bytes, of {len(list(itertools.chain(CORPUS.iterdir())))} targets")


if __name__ == "__main__":
    main()
