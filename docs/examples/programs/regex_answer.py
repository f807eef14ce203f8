"""Forms: an expression decides what an answer may be; `dtype` has some ready."""

from program import serve
from sglang import function, gen, gen_int

ADDRESS = r"((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"


@function
def forms(s):
    s += "The address of the server is "
    s += gen("address", max_tokens=24, regex=ADDRESS)
    s += ". The number of its users is "
    s += gen_int("users", max_tokens=8)
    s += ". It is up: "
    s += gen("up", max_tokens=4, dtype="bool")


def main(backend):
    state = forms.run(backend=backend, temperature=0)
    return {"address": state["address"], "users": state["users"], "up": state["up"]}


if __name__ == "__main__":
    serve(main)
