"""JSON: a schema decides the form of the answer, the model its values."""

import json

from program import serve
from sglang import function, gen

SCHEMA = {"type": "object",
          "properties": {"name": {"type": "string", "maxLength": 12},
                         "age": {"type": "integer", "minimum": 1, "maximum": 99},
                         "kind": {"enum": ["dog", "cat", "girl", "boy"]}},
          "required": ["name", "age", "kind"], "additionalProperties": False}


@function
def character(s, story):
    s += story + "\nThe character as JSON: "
    s += gen("character", max_tokens=80, json_schema=json.dumps(SCHEMA))


def main(backend):
    state = character.run("Tom was a little dog. He was three years old.", backend=backend,
                          temperature=0)
    return {"character": json.loads(state["character"])}


if __name__ == "__main__":
    serve(main)
