"""A very small template language for the text generator.

`[a|b|c]` selects one alternative (they nest), `{key}` inserts a value of the context, `{Key}` the same
value with a capital letter, and `a(n)` becomes "a" or "an" by the letter that follows.
"""

import random
import re

_INNERMOST = re.compile(r"\[([^\[\]]*)\]")
_SLOT = re.compile(r"\{(\w+)\}")
_ARTICLE = re.compile(r"\b([aA])\(n\) (\w)")
_SENTENCE_START = re.compile(r"(^|[.!?] \"?|\n\"?|^\")([a-z])")


def capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]


def _choose_alternatives(text: str, rng: random.Random) -> str:
    while True:
        chosen = _INNERMOST.sub(lambda m: rng.choice(m.group(1).split("|")), text)
        if chosen == text:
            return text
        text = chosen


def _fill_slot(key: str, context: dict) -> str:
    if key in context:
        return context[key]
    return capitalise(context[key[0].lower() + key[1:]])


def expand(template: str, rng: random.Random, context: dict | None = None) -> str:
    """Returns one random sentence (or more) of the template, with articles and capitals set right."""
    text = _choose_alternatives(template, rng)
    if context:
        text = _SLOT.sub(lambda m: _fill_slot(m.group(1), context), text)
    text = _ARTICLE.sub(
        lambda m: f"{m.group(1)}{'n' if m.group(2).lower() in 'aeiou' else ''} {m.group(2)}", text)
    text = re.sub(r" +", " ", text).strip()
    return _SENTENCE_START.sub(lambda m: m.group(1) + m.group(2).upper(), text)
