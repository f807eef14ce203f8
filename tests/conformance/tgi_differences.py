"""Where our answers differ from TGI's on purpose, as rules over exchanges (no list of names: other
recordings of the same kind fall under the same rules). docs/api/tgi-differences.md has the reasons at
length. A rule allows a difference, it does not ask for one.
"""

import base64
import json
import re

ALLOCATION = 1024  # tokens that TGI asks its shards for at once


def _body(exchange):
    with_text = exchange["request"].get("body") or ""
    try:
        body, _ = json.JSONDecoder().raw_decode(with_text.lstrip())  # what follows is not read
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _parameters(body):
    parameters = body.get("parameters")
    return parameters if isinstance(parameters, dict) else {}


def _asked_tokens(body):
    for place, name in ((_parameters(body), "max_new_tokens"), (body, "max_tokens"),
                        (body, "max_completion_tokens")):
        if place.get(name) is not None:
            return place[name]
    return None


def _events(exchange):
    """The JSON objects of the recorded answer."""
    text = exchange["response"].get("body_normalised") or ""
    lines = [line[6:] for line in text.splitlines() if line.startswith("data: {")] or [text]
    for line in lines:
        try:
            value = json.loads(line)
        except ValueError:
            continue
        yield value[0] if isinstance(value, list) and value else value


def _long_generation(exchange):
    asked = _asked_tokens(_body(exchange))
    endless = "[[loop]]" in (exchange["request"].get("body") or "")
    return endless and exchange["response"]["status"] == 200 and (asked is None or
                                                                  asked > ALLOCATION)


def _ends_in_a_character(exchange):
    """TGI drops the whole text when the last token is a part of a character, or decodes to U+FFFD itself."""
    body = _body(exchange)
    prompts = ("", body.get("inputs", ""))
    pieces = [token for token in map(_token_text, _events(exchange)) if token is not None]
    headers = dict(map(tuple, exchange["response"]["headers"]))
    for answer in filter(lambda event: isinstance(event, dict), _events(exchange)):
        details = answer.get("details") or {}
        usage = answer.get("usage") or {}
        texts = [answer.get("generated_text"), *(answer.get("predictions") or [])]
        reasons = [details.get("finish_reason", "length")]
        for choice in answer.get("choices", []):
            texts.append((choice.get("message") or {}).get("content", choice.get("text")))
            reasons.append(choice.get("finish_reason"))
        counts = (details.get("generated_tokens", 0), usage.get("completion_tokens", 0), len(pieces),
                  int(headers.get("x-generated-tokens", 0)), len(answer.get("predictions") or []))
        cut = "length" in reasons or "\ufffd" in (exchange["request"].get("body") or "")
        if cut and max(counts) > 0 and any(text in prompts for text in texts if text is not None):
            return True
    return False


def _token_text(event):
    token = event.get("token") if isinstance(event, dict) else None
    return token.get("text") if isinstance(token, dict) else None


def _compressed(exchange):
    return any(name == "content-encoding" for name, _ in exchange["request"]["headers"])


def _malformed_head(exchange):
    """Ambiguous HTTP or an invalid host gets 400 with the reason; TGI accepts it or gives no reason."""
    headers = [(name.lower(), value) for name, value in exchange["request"]["headers"]]
    framing = [value for name, value in headers if name in ("content-length", "transfer-encoding")]
    if len(framing) > 1 or any(name == "content-length" and not value.isdecimal() for name, value in headers):
        return True
    return any(name == "host" and re.search(r"[^\w.:\[\]-]", value) for name, value in headers) or \
        "#" in exchange["request"]["path"]


def _key_in_other_case(exchange):
    if exchange["request"]["path"] == "/chat_tokenize":  # needs no key
        return False
    keys = [value for name, value in exchange["request"]["headers"] if name == "authorization"]
    return any("open-sesame" in key.lower() and "open-sesame" not in key for key in keys)


def _tools_as_json(exchange):
    """Templates that print with `tojson`: tools (the Qwen one here; Llama's indents), results of tools (Llama's)."""
    body = _body(exchange)
    messages = body.get("messages")
    roles = [m.get("role") for m in messages if isinstance(m, dict)] if isinstance(messages, list) else []
    if exchange["config"] == "b" and {"tool", "ipython"} & set(map(str, roles)):
        return True
    if exchange["config"] == "b" and re.search("[<>&']", json.dumps(body.get("tools") or "")):
        return True
    return exchange["config"] == "d" and body.get("tools") is not None and \
        body.get("tool_choice") != "none"


def _comma_in_arguments(exchange):
    """TGI streams the comma after the name of a call as the first of its arguments, which are no JSON then."""
    calls = [delta["tool_calls"] for answer in _events(exchange) if isinstance(answer, dict)
             for delta in [choice.get("delta") or {} for choice in answer.get("choices", [])]
             if delta.get("tool_calls")]
    pieces = [(call[0] if isinstance(call, list) else call)["function"]["arguments"] for call in calls]
    return "".join(pieces).removeprefix("{").lstrip().startswith(",")


def _grammar(exchange):
    body = _body(exchange)
    grammar = _parameters(body).get("grammar") or body.get("response_format")
    return grammar if isinstance(grammar, dict) else {}


def _schemas(value):
    """Every object inside the grammar; a schema may be JSON in a string."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return
    if isinstance(value, dict):
        yield value
        for member in value.values():
            yield from _schemas(member)
    elif isinstance(value, list):
        for element in value:
            yield from _schemas(element)


# What automata do not know: look-around, back-references, the borders of words.
BEYOND_AUTOMATA = re.compile(r"\(\?(=|!|<=|<!|P=)|\\[bB1-9]")


def _is_bad(expression):
    if not isinstance(expression, str):
        return False
    try:
        re.compile(expression)
    except re.error:
        return True
    inner = expression[1:-1] if expression[:1] == "^" and expression[-1:] == "$" else expression
    # An inner ^ or $ never matches between the quotes of a JSON string.
    return bool(BEYOND_AUTOMATA.search(expression)) or inner.startswith("^") or inner.endswith("$")


def _bad_expression(exchange):
    """TGI's router forwards expressions unchecked. Its shards fail on them; the recorded fake shard did not."""
    grammar = _grammar(exchange)
    if grammar.get("type") == "regex":
        return _is_bad(grammar.get("value"))
    return any(_is_bad(schema.get("pattern")) for schema in _schemas(grammar.get("value")))


def _counted_members(exchange):
    """TGI's expressions of objects do not count their members."""
    return any(schema.get("type") == "object" and {"minProperties", "maxProperties"} & set(schema)
               for schema in _schemas(_grammar(exchange).get("value")))


def _array_for_an_object(exchange):
    """serde reads an array as the fields of a struct in their order; we read an empty one as an empty object."""
    text = (exchange["request"].get("body") or "").lstrip()
    body = _body(exchange)
    return text.startswith("[") or body.get("tools") == [] or \
        [] in (body.get("response_format"), _parameters(body).get("grammar"))


def _unread_value(exchange):
    """serde skips the values of unknown keys without limits; we read them like all others."""
    text = exchange["request"].get("body")
    if text is None:
        encoded = exchange["request"].get("body_base64")
        return encoded is not None and b"\xff" in base64.b64decode(encoded)
    return "[" * 128 in text or "NaN" in text or re.search(r"\d{310}", text) is not None


RULES = [
    ("more than 1,024 tokens",
     "exactly as many tokens as were asked for or fit, from one generation", _long_generation),
    ("cut in a character",
     "the text in front of the incomplete character is kept", _ends_in_a_character),
    ("malformed head", "400 that says what was wrong", _malformed_head),
    ("compressed body", "415, not read as if it were plain", _compressed),
    ("key in another case", "keys are compared exactly", _key_in_other_case),
    ("comma in arguments", "streamed arguments of a tool call join to JSON", _comma_in_arguments),
    ("bad expression", "422 from the router, not an error of the shard", _bad_expression),
    ("counted members", "`minProperties` and `maxProperties` hold", _counted_members),
    ("array for an object", "wrong type, or a missing field if it is empty", _array_for_an_object),
    ("unread value", "400 in an unknown key as in a known one", _unread_value),
    ("tools through tojson", "with blanks, as transformers renders them", _tools_as_json),
]


def difference_of(exchange):
    """The name of the first rule that covers the exchange, or None."""
    for name, _, covers in RULES:
        if covers(exchange):
            return name
    return None
