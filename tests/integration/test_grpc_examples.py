"""The example clients of docs/api/grpc.md, run as a reader would run them."""

import re
import subprocess
import sys

import proto_modules
import pytest
from generate_group import GenerateGroup, generate_v3, pb
from penstock_testing import BIN, DEMO_MODEL, REPOSITORY

DOCUMENT = REPOSITORY / "docs" / "api" / "grpc.md"
PROMPT = "Once upon a time"


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          env=proto_modules.environment(), timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module", params=[1, 2])
def group(request):
    with GenerateGroup("--model-id", DEMO_MODEL, "--dtype", "float32", "--kv-cache-memory", "32MB",
                       ranks=request.param) as running:
        yield running


@pytest.fixture(scope="module")
def known(group):
    """(prompt ids, generated ids, text) of the prompt's first 20 tokens."""
    conversation = generate_v3.Conversation(group)
    request = generate_v3.request(0, PROMPT, 20, prefill_logprobs=True)
    cached, generations = group.step("Prefill", pb.PrefillRequest(
        batch=generate_v3.batch(0, [request])))
    prompt = list(generations[0].prefill_tokens.ids)
    conversation.take(generations)
    conversation.finish(conversation.live(cached))
    return prompt, conversation.ids[0], conversation.texts[0]


def test_generate_v3_in_python(group, known):
    output = run(sys.executable, proto_modules.EXAMPLES / "generate_v3.py", f"{group.prefix}-0",
                 PROMPT, "Hello")
    assert output.splitlines()[0] == f"{PROMPT!r} -> {known[2]!r}"
    assert len(output.splitlines()) == 2


def test_generate_v3_in_cpp(group, known):
    output = run(BIN / "example_generate_v3", f"{group.prefix}-0", PROMPT, 20)
    assert output == known[2] + "\n"


def test_native_v1_in_python(group, known):
    prompt, wanted, _ = known
    output = run(sys.executable, proto_modules.EXAMPLES / "native_v1.py", group.prefix,
                 group.ranks, 20, *prompt)
    assert [int(token) for token in output.split()] == wanted


def test_native_v1_in_cpp(group, known):
    if group.ranks > 1:
        pytest.skip("the C++ example drives one rank")
    prompt, wanted, _ = known
    output = run(BIN / "example_native_v1", f"{group.prefix}-0", 20, *prompt)
    assert [int(token) for token in output.split()] == wanted


EXAMPLES = [
    ([BIN / "example_generate_v3"], ["socket", PROMPT, "many"], "MAX_NEW_TOKENS many: must be an integer from 1"),
    ([BIN / "example_native_v1"], ["socket", "0", "1"], "MAX_NEW_TOKENS 0: must be an integer from 1"),
    ([BIN / "example_native_v1"], ["socket", "20", "1", "2x"], "TOKEN 2x: must be an integer from 0"),
    ([sys.executable, proto_modules.EXAMPLES / "generate_v3.py"], ["socket"], "required: PROMPT"),
    ([sys.executable, proto_modules.EXAMPLES / "native_v1.py"], ["prefix", "two", "20", "1"],
     "argument ranks: invalid int value: 'two'"),
]


@pytest.mark.parametrize("command, arguments, said", EXAMPLES)
def test_a_wrong_argument_is_named_and_ends_with_2(command, arguments, said):
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, env=proto_modules.environment())
    assert done.returncode == 2 and said in done.stderr


@pytest.mark.parametrize("command", [command for command, _, _ in EXAMPLES])
@pytest.mark.parametrize("more", [[], ["socket"]])
def test_help_is_no_error(command, more):
    done = subprocess.run([*command, "--help", *more], capture_output=True, text=True, env=proto_modules.environment())
    assert done.returncode == 0 and "usage: " in done.stdout.lower() and done.stderr == ""


def test_the_document_names_every_example():
    text = DOCUMENT.read_text()
    named = set(re.findall(r"\.\./examples/grpc/([\w.]+)", text))
    files = {path.name for path in proto_modules.EXAMPLES.glob("*_v[0-9].*")}
    assert named == files
