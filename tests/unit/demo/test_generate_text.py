"""The demo model's training text: every document is complete, well-formed and repeatable."""

import itertools
import pathlib
import random
import re
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "demo"))

import generate_text  # noqa: E402
import stories  # noqa: E402
import template  # noqa: E402

DOCUMENTS = 3000


@pytest.fixture(scope="module")
def documents():
    return list(itertools.islice(generate_text.documents(seed=3), DOCUMENTS))


def texts(documents, roles=("system", "user", "assistant")):
    for document in documents:
        if isinstance(document, str):
            yield document
        else:
            yield from (message["content"] for message in document if message["role"] in roles)


def test_no_template_mark_is_left(documents):
    for text in texts(documents):
        assert not re.search(r"[{}|\[\]]|\(n\)|  | [.,!?]", text), text


def test_articles_fit_their_nouns(documents):
    """Not in questions: some of them are nonsense on purpose."""
    stories_alone = [d for d in documents if not isinstance(d, str) or "?\n" not in d]
    for text in texts(stories_alone, roles=("assistant",)):
        assert not re.search(r"\b[Aa] [aeio]\w|\b[Aa]n (?!hour)[^aeiouAEIOU\W]\w", text), text


def test_sentences_begin_with_a_capital(documents):
    rng = random.Random(4)
    for text in [stories.story(rng) for _ in range(1000)] + list(
            texts([d for d in documents if not isinstance(d, str)], roles=("assistant",))):
        assert re.match(r"[A-Z0-9\"]", text), text
        assert not re.search(r"[.!?] [a-z]", text), text


def test_roles_alternate_and_the_assistant_has_the_last_word(documents):
    for document in documents:
        if isinstance(document, str):
            continue
        roles = [message["role"] for message in document if message["role"] != "system"]
        assert roles == ["user", "assistant"] * (len(roles) // 2)


def test_the_same_seed_gives_the_same_text():
    def first(seed):
        return list(itertools.islice(generate_text.documents(seed), 50))

    assert first(5) == first(5)
    assert first(5) != first(6)


def test_most_stories_differ(documents):
    found = [document for document in documents if isinstance(document, str) and len(document) > 300]
    assert len(set(found)) > 0.99 * len(found)


@pytest.mark.parametrize("given, expected", [
    ("a(n) apple fell.", "An apple fell."),
    ("[x|x] said \"yes.\" then a(n) dog ran.", "X said \"yes.\" then a dog ran."),
    ("{Hero} ran. {he} hid.", "Tom ran. He hid.")])
def test_templates_expand(given, expected):
    assert template.expand(given, random.Random(1), {"hero": "Tom", "he": "he"}) == expected
