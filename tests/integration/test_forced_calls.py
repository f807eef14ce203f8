"""Calls that a request forces or holds to a schema, reasoning before a grammar, and its budget."""

import json
import os
import random

import pytest

from penstock_testing import Server, at_once

SEED = 20261127
SCHEMAS = 1000 if os.environ.get("PENSTOCK_LONG_TESTS") == "1" else 40
MESSAGES = [{"role": "user", "content": "What is the weather in Paris?"}]
WEATHER = {"type": "object",
           "properties": {"city": {"type": "string", "maxLength": 8}, "unit": {"enum": ["C", "F"]}},
           "required": ["city", "unit"], "additionalProperties": False}


@pytest.fixture(scope="module")
def server():
    with Server("--tool-format", "hermes", "--max-total-tokens", "1024") as started:
        yield started


def tool(name="get_weather", schema=WEATHER, **more):
    return {"type": "function", "function": {"name": name, "parameters": schema, **more}}


def chat(server, expect=200, **more):
    return server.json("POST", "/v1/chat/completions",
                       {"messages": MESSAGES, "max_tokens": 200, "seed": 3, **more}, expect=expect)


def calls_of(answer):
    return answer["choices"][0]["message"].get("tool_calls") or []


def test_a_required_call_comes(server):
    for temperature in (0, 1):
        answer = chat(server, tools=[tool(), tool("now", {"type": "object", "properties": {},
                                                          "additionalProperties": False})],
                      tool_choice="required", parallel_tool_calls=False, temperature=temperature)
        [call] = calls_of(answer)
        arguments = json.loads(call["function"]["arguments"])
        if call["function"]["name"] == "get_weather":
            assert set(arguments) == {"city", "unit"} and arguments["unit"] in "CF"
        else:
            assert call["function"]["name"] == "now" and arguments == {}
        assert answer["choices"][0]["finish_reason"] == "tool_calls"
        assert answer["choices"][0]["message"]["content"] is None


def test_the_named_tool_is_called(server):
    answer = chat(server, tools=[tool(), tool("get_time")],
                  tool_choice={"type": "function", "function": {"name": "get_time"}})
    [call] = calls_of(answer)
    assert call["function"]["name"] == "get_time"
    assert answer["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("name", ["hermes", "qwen3_coder", "llama3_json", "llama4_pythonic", "gemma4",
                                  "mistral_v11", "glm45", "deepseek_v31", "kimi_k2", "minimax_m2",
                                  "gpt_oss"])
def test_calls_are_forced_in_each_format(name):
    with Server("--tool-format", name) as server:
        schema = {"type": "object", "properties": {"unit": {"type": "string", "enum": ["C", "F"]},
                                                   "days": {"type": "integer", "minimum": 0, "maximum": 9}},
                  "required": ["unit", "days"], "additionalProperties": False}
        answer = chat(server, tools=[tool(schema=schema)], tool_choice="required", max_tokens=200,
                      parallel_tool_calls=False, chat_template_kwargs={"enable_thinking": False})
        [call] = calls_of(answer)
        arguments = json.loads(call["function"]["arguments"])
        assert arguments["unit"] in ("C", "F") and isinstance(arguments["days"], int)


def test_a_schema_that_cannot_be_enforced_is_named(server):
    answer = chat(server, 400, tools=[tool(), tool("f", {"type": "wrong"}, strict=True)])
    assert answer["error"]["param"] == "tools[1].function.parameters"
    assert "`tools[1].function.parameters` is not valid" in answer["error"]["message"]


@pytest.fixture(scope="module")
def reasoner(tmp_path_factory):
    """A server whose chat template opens the reasoning, if it is not switched off."""
    config = tmp_path_factory.mktemp("reasoner") / "tokenizer_config.json"
    config.write_text(json.dumps({"chat_template": (
        "{% for m in messages %}{{ m['content'] + '\\n' }}{% endfor %}"
        "{% if enable_thinking is not defined or enable_thinking %}<think>\n"
        "{% else %}<think>\n\n</think>\n\n{% endif %}")}))
    with Server("--tokenizer-config-path", config, "--max-total-tokens", "1024") as started:
        yield started


def test_the_budget_of_the_reasoning_is_kept(reasoner):
    marker = len(reasoner.json("POST", "/tokenize", {"inputs": "</think>",
                                                     "add_special_tokens": False}))
    for budget in (0, 9):  # one token may be blank, which is no reasoning
        for key in ({"thinking_budget": budget}, {"chat_template_kwargs": {"thinking_budget": budget}}):
            answer = chat(reasoner, min_tokens=40, **key)
            message = answer["choices"][0]["message"]
            assert message["content"]
            assert bool(message.get("reasoning_content")) == (budget > 0)
            details = answer["usage"]["completion_tokens_details"]
            assert budget <= details["reasoning_tokens"] <= budget + marker


def test_a_grammar_begins_after_the_reasoning(reasoner):
    format = {"type": "json_schema", "json_schema": {"name": "n", "schema": WEATHER}}
    answer = chat(reasoner, response_format=format, thinking_budget=5, temperature=1)
    message = answer["choices"][0]["message"]
    assert message["reasoning_content"]
    assert set(json.loads(message["content"])) == {"city", "unit"}
    answer = chat(reasoner, response_format=format, temperature=1,
                  chat_template_kwargs={"enable_thinking": False})
    message = answer["choices"][0]["message"]
    assert not message.get("reasoning_content")
    assert set(json.loads(message["content"])) == {"city", "unit"}


def test_a_budget_that_is_no_number_of_tokens_is_refused(reasoner):
    for key in ({"thinking_budget": -1}, {"chat_template_kwargs": {"thinking_budget": -1}}):
        wrong = chat(reasoner, 400, **key)
        assert wrong["error"]["param"].endswith("thinking_budget")
        assert "must be an integer from 0 to 1000000. Given: -1" in wrong["error"]["message"]


def random_schema(draw, depth=2):
    kind = draw.choice(["integer", "number", "boolean", "null", "enum", "string", "array", "object"])
    if depth == 0 and kind in ("array", "object"):
        kind = "boolean"
    if kind == "enum":
        return {"enum": draw.sample(["red", "green", "blue", 1, 2.5, True, None], draw.randint(1, 4))}
    if kind == "string":
        return {"type": "string", "minLength": draw.randint(0, 3), "maxLength": draw.randint(3, 8)}
    if kind in ("integer", "number"):
        low = draw.randint(-50, 50)
        return {"type": "integer", "minimum": low, "maximum": low + draw.randint(0, 100)}
    if kind == "array":
        return {"type": "array", "items": random_schema(draw, depth - 1), "minItems": 1,
                "maxItems": draw.randint(1, 3)}
    if kind == "object":
        return random_object(draw, depth - 1)
    return {"type": kind}


def random_object(draw, depth=2):
    names = draw.sample(["name", "age", "tags", "ok", "x", "größe"], draw.randint(1, 4))
    required = [name for name in names if draw.random() < 0.8] or names[:1]
    return {"type": "object", "properties": {name: random_schema(draw, depth) for name in names},
            "required": required, "additionalProperties": False}


def shortest(schema):
    """The value of the shortest text that the schema allows, nearly."""
    if "enum" in schema:
        return min(schema["enum"], key=lambda value: len(json.dumps(value)))
    kind = schema["type"]
    if kind == "string":
        return "a" * schema["minLength"]
    if kind == "integer":
        return min(range(schema["minimum"], schema["maximum"] + 1), key=lambda n: len(str(n)))
    if kind == "array":
        return [shortest(schema["items"])]
    if kind == "object":
        return {name: shortest(schema["properties"][name]) for name in schema["required"]}
    return {"boolean": True, "null": None}[kind]


def test_complete_calls_of_random_strict_tools_are_valid(server):
    jsonschema = pytest.importorskip("jsonschema")
    draw = random.Random(SEED)
    schemas = [random_object(draw) for _ in range(SCHEMAS)]

    def ask(i):
        call = {"name": "f", "arguments": shortest(schemas[i])}
        text = f"<tool_call>\n{json.dumps(call, ensure_ascii=False)}\n</tool_call>"
        tokens = server.json("POST", "/tokenize", {"inputs": text, "add_special_tokens": False})
        return server.json("POST", "/v1/chat/completions", {
            "messages": MESSAGES, "max_tokens": 4 * len(tokens), "temperature": 1, "seed": i,
            "tools": [tool("f", schemas[i], strict=True)], "tool_choice": "required",
            "parallel_tool_calls": False})

    complete = 0
    for i in range(0, SCHEMAS, 8):
        batch = range(i, min(i + 8, SCHEMAS))
        for k, answer in zip(batch, at_once(len(batch), lambda n, i=i: ask(i + n))):
            [call] = calls_of(answer)
            if answer["choices"][0]["finish_reason"] == "length":
                continue
            complete += 1
            jsonschema.validate(json.loads(call["function"]["arguments"]), schemas[k])
    print(f"{complete} of {SCHEMAS} calls are complete")
    assert complete >= 0.9 * SCHEMAS
