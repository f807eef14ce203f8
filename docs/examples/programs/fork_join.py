"""Branches: three texts go on from one, at the same time. What they share is computed once."""

from program import serve
from sglang import function, gen

STORY = ("Once upon a time, there was a little girl named Lily. She had a small dog and a big red "
         "ball. Every day they went to the park. One day, the ball was gone. Where could it be? ")


@function
def three_ends(s):
    s += STORY
    branches = s.fork(3)
    for branch, begin in zip(branches, ["Lily", "The dog", "The ball"]):
        branch += begin
        branch += gen("end", max_tokens=16, stop="\n")
    branches.join()


def main(backend):
    state = three_ends.run(backend=backend, temperature=0)
    return {"ends": state["end"], "story": STORY}


if __name__ == "__main__":
    serve(main)
