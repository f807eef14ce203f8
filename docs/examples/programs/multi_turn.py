"""A conversation: each answer stands in the prompt of the next one, which is read from the prefix cache."""

from program import serve
from sglang import assistant, function, gen, user


@function
def multi_turn(s, questions):
    for i, question in enumerate(questions):
        s += user(question)
        s += assistant(gen(f"answer_{i}", max_tokens=24, stop="\n"))


def main(backend):
    state = multi_turn.run(["Tell me about a dog.", "What did the dog do then?"],
                           backend=backend, temperature=0)
    return {"answers": [state["answer_0"], state["answer_1"]], "text": state.text(),
            "cached_tokens": state.get_meta_info("answer_1")["cached_tokens"]}


if __name__ == "__main__":
    serve(main)
