"""An agent's session over /v1/messages in Claude Code's form, on a checkpoint of penstock-make-model: from the second
turn on, the prompt that is sent again comes from the cache.

PENSTOCK_LONG_TESTS=1 has 60 turns with tool results of up to 4,000 tokens instead of 12 short ones."""

import json
import os
import random
import subprocess

import anthropic
import pytest

from penstock_testing import BIN, Server

LONG = bool(os.environ.get("PENSTOCK_LONG_TESTS"))
TURNS = 60 if LONG else 12
MOST_TOKENS = 4000 if LONG else 600  # of a result; the tokenizer has one for each byte
CONTEXT = 262144 if LONG else 16384

# Calls and results are written as Qwen's template does.
TEMPLATE = (
    "{%- if tools %}{{ 'tools: ' }}{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}{% endif %}"
    "{%- for message in messages %}{{ '<|' + message.role + '|>' }}{{ message.content or '' }}"
    "{%- for call in message.tool_calls or [] %}{{ '<tool_call>' + (call.function | tojson) + '</tool_call>' }}"
    "{%- endfor %}{{ '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}")

MARK = {"cache_control": {"type": "ephemeral"}}
SYSTEM = [
    {"type": "text", "text": "You are an agent for the command line. " * 4},
    {"type": "text", "text": "# Rules\n" + "Read files before you edit them. " * 40, **MARK},
]
TOOLS = [{"name": name, "description": f"{name} does its work. " * 6, "input_schema": {
    "type": "object", "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}}, "required": ["path"]}}
    for name in ("Bash", "Edit", "Glob", "Grep", "Read", "Task", "TodoWrite", "Write")]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("agent")
    subprocess.run([BIN / "penstock-make-model", "--output", folder / "model", "--max-position", str(CONTEXT)],
                   check=True, capture_output=True)
    config = json.loads((folder / "model" / "tokenizer_config.json").read_text())
    template = folder / "tokenizer_config.json"
    template.write_text(json.dumps({**config, "chat_template": TEMPLATE}))
    with Server("--tokenizer-config-path", template, "--max-total-tokens", str(CONTEXT), "--kv-cache-memory", "512MB",
                "--max-batch-prefill-tokens", "1024", "--step-timeout", "300s", model=folder / "model") as server:
        with anthropic.Anthropic(base_url=server.url, api_key="unused", max_retries=0, timeout=600) as made:
            yield made


class Session:
    """The client's side: the history grows by an answer, a call and its result in each turn."""

    def __init__(self, client):
        self.client = client
        self.random = random.Random(26)
        self.messages = [{"role": "user", "content": [
            {"type": "text", "text": "<system-reminder>\nThe folder is empty.\n</system-reminder>"},
            {"type": "text", "text": "Find out why the tests fail."}]}]

    def marked(self):
        """The messages with marks on the last blocks of the last two turns, as the client moves them."""
        messages = [dict(message) for message in self.messages]
        for message in messages[-3::2]:
            *blocks, last = message["content"]
            message["content"] = [*blocks, {**last, **MARK}]
        return messages

    def ask(self):
        with self.client.beta.messages.stream(
                model="tgi", max_tokens=24, system=SYSTEM, tools=TOOLS, messages=self.marked(),
                metadata={"user_id": "user_1"}, thinking={"type": "adaptive"},
                betas=["claude-code-20250219"]) as stream:
            return stream.get_final_message()

    def go_on(self, turn, answer):
        """The model's weights are random, so the call is the script's."""
        call = {"type": "tool_use", "id": f"toolu_{turn}", "name": self.random.choice(TOOLS)["name"],
                "input": {"path": f"src/file_{turn}.cc", "limit": turn}}
        said = [block.model_dump(include={"type", "text"}) for block in answer.content if block.type == "text"]
        self.messages.append({"role": "assistant", "content": [*said, call]})
        size = 50 + int((MOST_TOKENS - 50) * self.random.random() ** 2)  # most results are short
        lines = "\n".join(f"{n}: {self.random.getrandbits(64):x}" for n in range(size // 20 + 1))[:size]
        self.messages.append({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": call["id"], "content": [{"type": "text", "text": lines}]}]})


def test_what_is_sent_again_comes_from_the_cache(client):
    session = Session(client)
    sent_before = resent = cached = 0
    for turn in range(TURNS):
        answer = session.ask()
        usage = answer.usage
        prompt = usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens
        assert prompt > sent_before
        if turn > 0:
            assert usage.cache_read_input_tokens >= 0.98 * sent_before, (turn, usage)
            resent += sent_before
            cached += min(usage.cache_read_input_tokens, sent_before)
        sent_before = prompt
        session.go_on(turn, answer)
    print(f"{cached / resent:.2%} of {resent} re-sent tokens came from the cache")
    assert cached >= 0.98 * resent
    counted = client.messages.count_tokens(model="tgi", system=SYSTEM, tools=TOOLS, messages=session.messages)
    assert counted.input_tokens > sent_before


def test_a_volatile_line_is_named(client):
    def ask(header):
        """The first block of the system is another one in each request, as the client writes it."""
        system = [{"type": "text", "text": f"x-anthropic-billing-header: cch={header};"}, *SYSTEM]
        return client.messages.create(model="tgi", max_tokens=4, system=system, tools=TOOLS,
                                      messages=[{"role": "user", "content": "Find out why the tests fail."}])

    ask("11aa")
    miss = client.get(f"/requests/{ask('22bb').id}", cast_to=object)["prefix_miss"]
    assert miss["why"] == "different"
    assert miss["before"].endswith("header: cch=")
    assert miss["here"].startswith("22bb") and miss["there"].startswith("11aa")
