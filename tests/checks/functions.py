"""Finds functions and their lengths in C++, CUDA, Rust and Python sources, without a compiler.

C++ text is scanned brace by brace. At namespace or class level a brace opens a namespace, a type, an initializer or a
function, told apart by the text since the last ';', '{' or '}'. Everything inside a function, lambdas too, is its own.
"""

import ast
import re
from dataclasses import dataclass

from sources import blank

_PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_NAMESPACE = re.compile(r"\b(namespace\b[^()]*|extern\s*)$")
_TYPE = re.compile(r"\b(class|struct|union|enum)\b[^()]*$")
_TYPE_WITH_ATTRIBUTE = re.compile(r"\b(class|struct|union)\s+(alignas\s*\([^)]*\)|\[\[[^\]]*\]\])")
_NAME = re.compile(r"([A-Za-z_~][\w:~<>]*|operator\s*[^\s\w(]+|operator\s*\(\))\s*\(")
_NOT_A_NAME = ("requires", "sizeof", "noexcept", "decltype", "alignas", "explicit")
_CONTROL_WORD = re.compile(r"\b(else|do|try)$")
_CONTROL_WITH_CONDITION = re.compile(r"\b(if|if constexpr|for|while|switch|catch)$")
_RUST_FUNCTION = re.compile(r"\bfn\s+(\w+)")


@dataclass(frozen=True)
class Function:
    name: str
    line: int  # of its head, from 1
    lines: int  # head to closing brace
    nesting: int  # deepest control block inside
    head: str = ""  # C++ only: the text before the opening brace
    start: int = 0  # C++ only: where the head starts in the source


def _classify(head):
    head = head.strip()
    if _TYPE.search(head) or _TYPE_WITH_ATTRIBUTE.search(head):
        return "enum" if re.search(r"\benum\b", head) else "scope"
    if _NAMESPACE.search(head):
        return "scope"
    if head.endswith("=") or "(" not in head:
        return "initializer"
    if re.search(r"\)\s*(?:noexcept\s*)?:(?!:)", head) and re.search(r"[\w>]$", head):
        return (
            "initializer"
            if not re.search(r"\b(const|noexcept|override|final|try)$", head)
            else "function"
        )
    return "function"


def _opens_control(head):
    """Whether the text before a brace ends in else, do, try or in a control word and its condition."""
    head = head.rstrip()
    if _CONTROL_WORD.search(head):
        return True
    if not head.endswith(")"):
        return False
    depth = 0
    for position in range(len(head) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(head[position], 0)
        if depth == 0:
            return bool(_CONTROL_WITH_CONDITION.search(head[:position].rstrip()))
    return False


def _function_name(head):
    return next((m.group(1) for m in _NAME.finditer(head) if m.group(1) not in _NOT_A_NAME), "?")


def _match_brace(text, start):
    """Position of the brace that closes text[start], and the deepest control nesting on the way."""
    stack, deepest = [], 0
    for match in re.finditer(r"[{}]", text[start:]):
        position = start + match.start()
        if match.group() == "{":
            head = text[max(start + 1, position - 400) : position]
            stack.append(bool(stack) and _opens_control(head))
            deepest = max(deepest, sum(stack))
        else:
            stack.pop()
            if not stack:
                return position, deepest
    return len(text) - 1, deepest


def cpp_functions(source):
    text = _PREPROCESSOR.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), blank(source))
    position, head_start = 0, 0
    while match := re.compile(r"[;{}]").search(text, position):
        here = match.start()
        position = here + 1
        if match.group() != "{":
            head_start = position
            continue
        head = text[head_start:here]
        kind = _classify(re.sub(r"\b(public|private|protected)\s*:(?!:)", " ", head))
        if kind == "scope":
            head_start = position
            continue
        end, nesting = _match_brace(text, here)
        position = end + 1
        if kind == "function":
            first = head_start + len(head) - len(head.lstrip())
            yield Function(
                _function_name(head),
                text.count("\n", 0, first) + 1,
                text.count("\n", first, end) + 1,
                nesting,
                head,
                head_start,
            )
        if kind != "initializer":
            head_start = position


def rust_functions(source):
    text = blank(source)
    for match in _RUST_FUNCTION.finditer(text):
        opening = re.compile(r"[;{]").search(text, match.end())
        if opening and opening.group() == "{":
            end, nesting = _match_brace(text, opening.start())
            yield Function(
                match.group(1),
                text.count("\n", 0, match.start()) + 1,
                text.count("\n", match.start(), end) + 1,
                nesting,
            )


def python_functions(source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield Function(node.name, node.lineno, node.end_lineno - node.lineno + 1, 0)


def functions_of(path, source):
    finder = {".py": python_functions, ".rs": rust_functions}.get(path.suffix, cpp_functions)
    return list(finder(source))
