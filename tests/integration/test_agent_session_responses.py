"""An agent's session over /v1/responses in Codex's form, on a checkpoint of penstock-make-model: from the second turn
on, the prompt that is sent again comes from the cache.

PENSTOCK_LONG_TESTS=1 has 60 turns with tool results of up to 4,000 tokens instead of 12 short ones."""

import json
import os
import random
import subprocess

import pytest

from penstock_testing import BIN, Server

LONG = bool(os.environ.get("PENSTOCK_LONG_TESTS"))
TURNS = 60 if LONG else 12
RESULT_TOKENS = (200, 4000) if LONG else (50, 600)
CONTEXT = 262144 if LONG else 32768
INSTRUCTIONS = "You are Codex, an agent for the command line. Read files before you edit them. " * (250 if LONG else 50)

# Calls and reasoning are written as Qwen's template does.
TEMPLATE = (
    "{%- if tools %}{{ 'tools: ' }}{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}{% endif %}"
    "{%- for message in messages %}{{ '<|' + message.role + '|>' }}"
    "{%- if message.reasoning_content %}{{ '<think>' + message.reasoning_content + '</think>' }}{% endif %}"
    "{{ message.content or '' }}"
    "{%- for call in message.tool_calls or [] %}{{ '<tool_call>' + (call.function | tojson) + '</tool_call>' }}"
    "{%- endfor %}{{ '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}")

TOOLS = [
    {"type": "function", "name": "shell", "description": "Runs a command and returns its output.", "strict": False,
     "parameters": {"type": "object", "properties": {
         "command": {"type": "array", "items": {"type": "string"}}, "workdir": {"type": "string"},
         "timeout_ms": {"type": "number"}}, "required": ["command"], "additionalProperties": False}},
    {"type": "function", "name": "update_plan", "description": "Updates the plan of the task.", "strict": False,
     "parameters": {"type": "object", "properties": {"plan": {"type": "array", "items": {"type": "object"}}}}},
    {"type": "custom", "name": "apply_patch", "description": "Edits files.",
     "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}},
    {"type": "web_search", "external_web_access": False},
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("agent")
    subprocess.run([BIN / "penstock-make-model", "--output", folder / "model", "--max-position", str(CONTEXT)],
                   check=True, capture_output=True)
    config = json.loads((folder / "model" / "tokenizer_config.json").read_text())
    template = folder / "tokenizer_config.json"
    template.write_text(json.dumps({**config, "chat_template": TEMPLATE}))
    with Server("--tokenizer-config-path", template, "--max-total-tokens", str(CONTEXT), "--kv-cache-memory", "512MB",
                "--dtype", "bfloat16", model=folder / "model") as running:
        yield running


class Session:
    """The client's side. It sends the whole input in every turn; nothing is stored on the server."""

    def __init__(self, server):
        self.server = server
        self.random = random.Random(26)
        self.input = [
            {"type": "message", "role": "developer",
             "content": [{"type": "input_text", "text": "<permissions>The sandbox is read-only.</permissions>"}]},
            {"type": "message", "role": "user",
             "content": [{"type": "input_text", "text": "<environment_context><cwd>/src</cwd></environment_context>"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Why do the tests fail?"}]}]

    def ask(self):
        """The completed response, as the events before it built it."""
        stream = self.server.stream("/v1/responses", {
            "model": "tgi", "instructions": INSTRUCTIONS, "input": self.input, "tools": TOOLS, "tool_choice": "auto",
            "parallel_tool_calls": False, "reasoning": {"effort": "medium", "summary": "auto"}, "store": False,
            "stream": True, "include": ["reasoning.encrypted_content"], "prompt_cache_key": "session-1",
            "client_metadata": {"originator": "codex_cli_rs"}, "max_output_tokens": 24})
        events = stream.events()
        assert events[-1]["type"] in ("response.completed", "response.incomplete"), events[-1]
        done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
        assert done == events[-1]["response"]["output"]
        return events[-1]["response"]

    def go_on(self, turn, response):
        """The model's weights are random, so the call is the script's. Items go back without id and status."""
        for item in response["output"]:
            if item["type"] == "message":
                parts = [{"type": "output_text", "text": part["text"]} for part in item["content"]]
                self.input.append({"type": "message", "role": "assistant", "content": parts})
        arguments = json.dumps({"command": ["cat", f"file_{turn}.cc"], "timeout_ms": 1000 + turn})
        self.input.append({"type": "function_call", "call_id": f"call_{turn}", "name": "shell", "arguments": arguments})
        size = self.random.randint(*RESULT_TOKENS)
        lines = "\n".join(f"{n}: {self.random.getrandbits(64):x}" for n in range(size // 20 + 1))[:size]
        self.input.append({"type": "function_call_output", "call_id": f"call_{turn}", "output": lines})


def test_what_is_sent_again_comes_from_the_cache(server):
    session = Session(server)
    sent_before = resent = cached = 0
    for turn in range(TURNS):
        response = session.ask()
        usage = response["usage"]
        assert usage["input_tokens"] > sent_before
        if turn > 0:
            from_cache = usage["input_tokens_details"]["cached_tokens"]
            assert from_cache >= 0.98 * sent_before, (turn, usage)
            resent += sent_before
            cached += min(from_cache, sent_before)
        sent_before = usage["input_tokens"]
        session.go_on(turn, response)
    print(f"{cached / resent:.2%} of {resent} re-sent tokens came from the cache")
    assert cached >= 0.98 * resent


def test_a_volatile_line_is_named(server):
    def ask(minute):
        """The instructions begin with the time, as those of some agents do."""
        return server.json("POST", "/v1/responses", {
            "instructions": f"It is 12:{minute} now. {INSTRUCTIONS}", "input": "Why do the tests fail?",
            "tools": TOOLS, "max_output_tokens": 4})

    ask(34)
    miss = server.json("GET", "/requests/" + ask(56)["id"])["prefix_miss"]
    assert miss["why"] == "different"
    assert miss["before"].endswith("It is 12:")
    assert miss["here"].startswith("56 now") and miss["there"].startswith("34 now")
