"""Skeleton of thought: first the points of an answer, then all of them in full at the same time."""

from program import serve
from sglang import function, gen

POINTS = ["The girl", "The dog", "The park"]


@function
def skeleton_of_thought(s, topic):
    s += "A story about " + topic + ". It has these parts:\n"
    for i, point in enumerate(POINTS):
        s += f"{i + 1}. {point}"
        s += gen(f"point_{i}", max_tokens=8, stop=["\n", "."])
        s += ".\n"
    branches = s.fork(len(POINTS))
    for i, branch in enumerate(branches):
        branch += f"Part {i + 1} in full: {POINTS[i]}"
        branch += gen("part", max_tokens=20, stop="\n")
    branches.join("concate_and_append")
    s += "\nThe end."


def main(backend):
    state = skeleton_of_thought.run("a girl and her dog", backend=backend, temperature=0)
    return {"text": state.text()}


if __name__ == "__main__":
    serve(main)
