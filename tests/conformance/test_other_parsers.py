"""Penstock's scanners against two independent parsers, SGLang's and openai-harmony, on generated transcripts.

parser_differences.py has a rule for each known difference; any other difference fails.
"""

import copy
import importlib.metadata
import json
import subprocess

import pytest

import other_parsers
import parser_differences
from parser_differences import make_case
from penstock_testing import BIN

TRANSCRIPTS = 2000
SEED = 26


def transcripts(format_name):
    """The tools, and each transcript with Penstock's answer."""
    program = BIN / "penstock_transcripts"
    if not program.exists():
        pytest.skip(f"{program.name} is not built")
    done = subprocess.run([program, format_name, str(TRANSCRIPTS), str(SEED)], check=True, capture_output=True)
    tools, *lines = map(json.loads, done.stdout.decode().splitlines())
    return tools, lines


def explained_by(line, parser, rules):
    """The rules that together explain the difference; none if there is no difference."""
    case = make_case(line)
    expected, answer = case.expected(), case.read(parser)
    tried = []
    for rule in [] if answer == expected else rules:
        before = copy.deepcopy(case)
        rule.change(case)
        if case == before:
            continue
        tried.append(rule)
        expected, answer = case.expected(), case.read(parser)
        if answer == expected:
            break
    if answer == expected:
        return tried
    pytest.fail(f"no rule explains this difference:\n{line['transcript']}\nPenstock: {expected}\nother:    {answer}")


def compare(format_name, parser, rules, lines):
    explanations = [explained_by(line, parser, rules) for line in lines]
    unused = [rule.why for rule in rules if not any(rule in needed for needed in explanations)]
    assert not unused, f"nothing differs for these reasons in {format_name}"
    assert explanations.count([]) >= len(lines) / 4  # most transcripts are compared as they are


@pytest.mark.parametrize("format_name", other_parsers.SGLANG)
def test_calls_and_reasoning_are_those_of_sglang(format_name):
    pytest.importorskip("partial_json_parser")
    try:
        importlib.metadata.version("sglang")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("sglang is not installed")
    tools, lines = transcripts(format_name)
    rules = [rule for rule in parser_differences.SGLANG if format_name in rule.formats]
    compare(format_name, other_parsers.SGLang(format_name, tools), rules, lines)


def test_messages_are_those_of_harmony(tmp_path):
    pytest.importorskip("openai_harmony")
    _, lines = transcripts("gpt_oss")
    compare("gpt_oss", other_parsers.Harmony(tmp_path), parser_differences.HARMONY, lines)
