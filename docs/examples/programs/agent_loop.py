"""An agent: the model chooses a tool and its argument, the program runs it and shows the result."""

from program import serve
from sglang import function, gen, select

TOOLS = {"add": lambda a, b: a + b, "multiply": lambda a, b: a * b}


@function
def agent(s, task, steps):
    s += "Task: " + task + "\n"
    for i in range(steps):
        s += "Tool: "
        s += select(f"tool_{i}", list(TOOLS))
        s += "\nNumbers: "
        s += gen(f"numbers_{i}", max_tokens=16, regex=r"[1-9][0-9]?, [1-9][0-9]?")
        a, b = (int(number) for number in s[f"numbers_{i}"].split(", "))
        s += f"\nResult: {TOOLS[s[f'tool_{i}']](a, b)}\n"
    s += "Answer:"
    s += gen("answer", max_tokens=8, stop="\n")


def main(backend):
    state = agent.run("How many toys do two girls with three toys each have?", steps=3,
                      backend=backend, temperature=0)
    return {"text": state.text(), "calls": [[state[f"tool_{i}"], state[f"numbers_{i}"]]
                                            for i in range(3)]}


if __name__ == "__main__":
    serve(main)
