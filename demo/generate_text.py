"""Writes the demo model's training text: seeded, without any other source.

    python demo/generate_text.py --documents 10     # look at some
"""

import argparse
import random
from collections.abc import Iterator

import chats
import stories

SYSTEM_PROMPTS = ["You are a helpful assistant.", "You are Penstock's demo model.", "Be kind and brief.",
                  "You are a friendly assistant.", "Answer in simple English."]

Message = dict[str, str]


def _chat(rng: random.Random, turns: int) -> list[Message]:
    messages = []
    if rng.random() < 0.2:
        messages.append({"role": "system", "content": rng.choice(SYSTEM_PROMPTS)})
    for ask, answer in chats.conversation(rng, turns):
        messages += [{"role": "user", "content": ask}, {"role": "assistant", "content": answer}]
    return messages


def _question_and_answer(rng: random.Random) -> str:
    """Questions without chat format, for plain completion routes."""
    if rng.random() < 0.4:
        return "\n\n".join(chats.question(rng))
    pairs = [chats.question(rng) for _ in range(rng.randint(1, 4))]
    return "\n\n".join(f"Question: {ask}\nAnswer: {answer}" for ask, answer in pairs)


def document(rng: random.Random) -> str | list[Message]:
    """A plain text, or the messages of a conversation."""
    kind = rng.choices(["story", "chat", "long chat", "long story", "answers"], [42, 45, 2, 2, 9])[0]
    if kind == "story":
        return stories.story(rng)
    if kind == "chat":
        return _chat(rng, min(1 + int(rng.expovariate(0.6)), 10))
    if kind == "long chat":
        return _chat(rng, rng.randint(12, 40))
    if kind == "long story":
        return stories.long_story(rng)
    return _question_and_answer(rng)


def documents(seed: int) -> Iterator[str | list[Message]]:
    """An endless stream; the same seed gives the same stream."""
    rng = random.Random(seed)
    while True:
        yield document(rng)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--documents", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    stream = documents(arguments.seed)
    for _ in range(arguments.documents):
        item = next(stream)
        if isinstance(item, str):
            print(item)
        else:
            print("\n".join(f"{m['role']}: {m['content']}" for m in item))
        print("-" * 40)


if __name__ == "__main__":
    main()
