"""A choice: the answer is the one of a few texts that the model finds the most probable."""

from program import serve
from sglang import function, select


@function
def which(s, story, choices):
    s += story
    s += select("choice", choices)


CASES = [("Once upon a time, there was a little", [" girl", " parliament", " zebra"]),
         ("The dog was very", [" happy", " quarterly"]),
         ("She loved to play with her", [" toys", " mortgage", " friends"])]


def main(backend):
    states = [which.run(story, choices, backend=backend) for story, choices in CASES]
    return {"cases": CASES, "choices": [state["choice"] for state in states],
            "logprobs": [state.get_meta_info("choice")["normalized_prompt_logprobs"]
                         for state in states]}


if __name__ == "__main__":
    serve(main)
