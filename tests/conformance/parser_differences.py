"""The known differences between Penstock's scanners and other parsers, with the reason of each.

A rule changes a case in the way that the other parser differs. It explains a difference if both answers are equal
after the change. Rules are tried in order. A rule that explains no difference fails the test.
"""

import ast
import dataclasses
import json
import re
import typing


@dataclasses.dataclass
class Case:
    """A transcript and the answer that the other parser should give. At first that is Penstock's answer."""
    transcript: str
    text: str
    last_text: str  # the part of the text that comes after the calls
    reasoning: str
    calls: list  # [name, arguments], read
    written: list  # the arguments as text
    reread: list = dataclasses.field(default_factory=list)  # changes of the other parser's values

    def expected(self):
        return normal({"text": self.text + self.last_text, "reasoning": self.reasoning, "calls": self.calls})

    def read(self, parser):
        """The other parser's answer, in the form of expected()."""
        answer = parser.read(self.transcript)
        calls = [(name, values(text)) for name, text in answer["calls"]]
        for change in self.reread:
            calls = changed(calls, change)
        return normal({**answer, "calls": calls})


def changed(calls, change):
    """The calls after change(name, value) of each argument."""
    return [[name, {key: change(key, value) for key, value in arguments.items()}] for name, arguments in calls]


def values(arguments):
    """The arguments as values, so that their spacing does not count; text that is not JSON stays text."""
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def normal(answer):
    """The answer without blanks at its ends: Penstock drops those beside markers, others drop some of them."""
    return {"text": answer["text"].strip(), "reasoning": answer["reasoning"].strip(),
            "calls": [list(call) for call in answer["calls"]]}


def make_case(line):
    """The case of a line that penstock_transcripts printed."""
    answer = line["answer"]
    last = line["last_text"] if answer["calls"] else ""
    assert answer["text"].endswith(last)
    return Case(line["transcript"], answer["text"].removesuffix(last), last, answer["reasoning"],
                [[call["name"], values(call["arguments"])] for call in answer["calls"]],
                [call["arguments"] for call in answer["calls"]])


def in_strings(value, change):
    """The value with all of its strings changed."""
    if isinstance(value, dict):
        return {key: in_strings(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [in_strings(item, change) for item in value]
    return change(value) if isinstance(value, str) else value


def neutral(markers):
    def change(text):
        for marker in markers:
            text = text.replace(marker, "(" + marker[1:])
        return text
    return change


def without_mention(*markers):
    """Replaces the markers inside arguments that the transcript has as JSON."""
    change = neutral(markers)

    def rule(case):
        for text in case.written:
            case.transcript = case.transcript.replace(text, change(text))
        case.calls = [[name, in_strings(arguments, change)] for name, arguments in case.calls]
    return rule


def without_end_of_function(case):
    """Replaces </function> where it does not end a call."""
    case.transcript = re.sub(r"<(/function>)(?!\n</tool_call>)", r"(\1", case.transcript)
    case.calls = [[name, in_strings(arguments, neutral(["</function>"]))] for name, arguments in case.calls]


def without_later_think(opening, closing):
    """Replaces the markers of reasoning after the reasoning."""
    change = neutral((opening, closing))

    def rule(case):
        begin = case.transcript.find(closing) + len(closing) if case.reasoning else 0
        case.transcript = case.transcript[:begin] + change(case.transcript[begin:])
        case.calls = [[name, in_strings(arguments, change)] for name, arguments in case.calls]
    return rule


def of_arguments(change):
    """A rule that applies change(name, value) to Penstock's arguments."""
    def rule(case):
        case.calls = changed(case.calls, change)
    return rule


def of_other_arguments(change):
    """A rule that applies change(name, value) to the other parser's arguments."""
    def rule(case):
        case.reread.append(change)
    return rule


def drop_last_text(case):
    if case.calls:
        case.last_text = ""


def join_texts(blanks):
    """Puts these blanks between the text before the calls and the text after them."""
    def rule(case):
        if case.text and case.last_text:
            case.text += blanks
    return rule


def refuse_nothing(case):
    if not case.transcript:
        case.text = "Unexpected EOS while waiting for message header to complete"


def stripped(_, value):
    return value.strip() if isinstance(value, str) else value


def without_line_breaks(_, value):
    return value.strip("\n") if isinstance(value, str) else value


def rounded(name, value):
    return float(value) if name == "ratio" else value


def literal_as_text(_, value):
    if not isinstance(value, str):
        return value
    try:
        return str(ast.literal_eval(value.strip()))
    except (ValueError, SyntaxError):
        return value


def json_of_text(name, value):
    return values(value) if name in ("where", "other") and isinstance(value, str) else value


def null_as_text(name, value):
    return "None" if name == "note" and value is None else value


def text_as_null(name, value):
    return None if name == "note" else value


class Rule(typing.NamedTuple):
    formats: tuple
    why: str
    change: typing.Callable  # of a Case


SGLANG = [
    Rule(("deepseek_v3", "deepseek_v31"), "It ends a call where an argument mentions the end of a call.",
         without_mention("<｜tool▁call▁end｜>")),
    Rule(("hermes", "qwen3_coder", "deepseek_v3", "deepseek_v31", "deepseek_v32", "glm45", "kimi_k2"),
         "It drops text after calls; Penstock keeps all text.", drop_last_text),
    Rule(("mistral_v3", "mistral_v11"), "It puts a blank between the texts before and after calls.", join_texts(" ")),
    Rule(("llama3_json",), "It keeps the line break before a call.", join_texts("\n")),
    Rule(("minimax_m2",), "It keeps the line breaks around calls.", join_texts("\n\n")),
    Rule(("hermes", "llama3_json", "qwen3_coder", "deepseek_v3", "deepseek_v31", "deepseek_v32", "glm45", "kimi_k2",
          "minimax_m2"),
         "It drops every <think>, and takes all before a </think> as reasoning, also where an argument mentions them.",
         without_later_think("<think>", "</think>")),
    Rule(("deepseek_v32", "glm45"), "It strips blanks from texts, which may matter in code.", of_arguments(stripped)),
    Rule(("glm45",), "It gives the text None for null.", of_arguments(null_as_text)),
    Rule(("qwen3_coder", "minimax_m2"), "It rounds long numbers.", of_arguments(rounded)),
    Rule(("glm45",), "It reads a text that is a literal of Python.", of_arguments(literal_as_text)),
    Rule(("qwen3_coder", "minimax_m2"), "It gives text for an object whose type the schema does not name.",
         of_other_arguments(json_of_text)),
    Rule(("qwen3_coder",), "It ends a call where an argument mentions </function>.", without_end_of_function),
    Rule(("minimax_m2",), "It drops all line breaks at the ends of a text.", of_arguments(without_line_breaks)),
    Rule(("minimax_m2",), "It gives null for a text if null is allowed.", of_arguments(text_as_null)),
]
HARMONY = [
    Rule(("gpt_oss",), "It refuses an output without a message.", refuse_nothing),
    Rule(("gpt_oss",), "It reads tokens, and here every <|call|> and <|end|> becomes one. Penstock reads text, in "
         "which a JSON string may mention them.", without_mention("<|call|>", "<|end|>")),
]
