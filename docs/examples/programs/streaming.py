"""A stream: the text of a variable as it is generated."""

from program import serve
from sglang import function, gen


@function
def story(s, begin):
    s += begin
    s += gen("story", max_tokens=24)


def main(backend):
    state = story.run("Once upon a time", backend=backend, temperature=0, stream=True)
    parts = list(state.text_iter(var_name="story"))
    return {"parts": parts, "story": state["story"]}


if __name__ == "__main__":
    serve(main)
