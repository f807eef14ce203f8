"""Tree of thought: propose some next steps, judge each, and go on from the best."""

from program import serve
from sglang import function, gen, select


@function
def tree_of_thought(s, question, depth, width):
    s += question + "\n"
    for level in range(depth):
        branches = s.fork(width)
        for i, branch in enumerate(branches):
            branch += f"Idea {level + 1}:"
            branch += gen("idea", max_tokens=16, stop="\n", temperature=0.8)
        judges = [branch.fork(1)[0] for branch in branches]
        for judge in judges:
            judge += "\nThis idea is"
            judge += select("verdict", [" good", " bad"])
        good = [i for i, judge in enumerate(judges) if judge["verdict"] == " good"]
        best = good[0] if good else 0
        s += f"Idea {level + 1}:" + branches[best]["idea"] + "\n"
    s += "So"
    s += gen("answer", max_tokens=16, stop="\n")


def main(backend):
    state = tree_of_thought.run("How can the little dog find its ball?", depth=2, width=3,
                                backend=backend, temperature=0)
    return {"text": state.text(), "answer": state["answer"]}


if __name__ == "__main__":
    serve(main)
