"""A batch: one function on many inputs. Their common examples are computed once."""

from program import serve
from sglang import function, gen

EXAMPLES = [("dog", "The dog ran in the park."), ("cat", "The cat sat on the mat."),
            ("bird", "The bird sang in the tree."), ("fish", "The fish swam in the sea.")]
WORDS = ["girl", "boy", "tree", "ball", "car", "sun", "mom", "cake"]


@function
def sentence(s, word):
    s += "Write a sentence with the word.\n"
    for example, text in EXAMPLES:
        s += f"Word: {example}\nSentence: {text}\n"
    s += f"Word: {word}\nSentence:"
    s += gen("sentence", max_tokens=16, stop="\n")


def main(backend):
    states = sentence.run_batch([{"word": word} for word in WORDS], backend=backend, temperature=0,
                                num_threads=4)
    return {"sentences": [state["sentence"] for state in states],
            "cached_tokens": [state.get_meta_info("sentence")["cached_tokens"] for state in states]}


if __name__ == "__main__":
    serve(main)
