"""Where our answers differ from TGI's on purpose, as rules over exchanges (no list of names: other
recordings of the same kind fall under the same rules). docs/api/tgi-differences.md has the reasons at
length. A rule allows a difference, it does not ask for one.
"""

import json
import re

ALLOCATION = 1024  # tokens that TGI asks its shards for at once


def _body(exchange):
    with_text = exchange["request"].get("body") or ""
    try:
        body = json.loads(with_text)
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


def _no_shard(exchange):
    answer = exchange["response"].get("body_normalised") or ""
    return bool(exchange.get("shard_down")) and "error trying to connect" in answer


def _ends_in_a_character(exchange):
    """TGI drops the whole text when the last token is a part of a character."""
    body = _body(exchange)
    prompt = body.get("inputs", "")
    for answer in _events(exchange):
        if not isinstance(answer, dict):
            continue
        details = answer.get("details") or {}
        texts = [answer.get("generated_text")]
        tokens = details.get("generated_tokens", 0)
        reasons = [details.get("finish_reason", "length")]
        for choice in answer.get("choices", []):
            texts.append((choice.get("message") or {}).get("content", choice.get("text")))
            reasons.append(choice.get("finish_reason"))
            tokens = max(tokens, (answer.get("usage") or {}).get("completion_tokens", 0))
        dropped = any(text is not None and text in ("", prompt) for text in texts)
        counted = tokens > 1 or int(dict(map(tuple, exchange["response"]["headers"]))
                                    .get("x-generated-tokens", 0)) > 1
        if dropped and counted and "length" in reasons:
            return True
    return False


def _compressed(exchange):
    return any(name == "content-encoding" for name, _ in exchange["request"]["headers"])


def _key_in_other_case(exchange):
    if exchange["request"]["path"] == "/chat_tokenize":  # asks for no key
        return False
    keys = [value for name, value in exchange["request"]["headers"] if name == "authorization"]
    return any("open-sesame" in key.lower() and "open-sesame" not in key for key in keys)


def _tools_as_json(exchange):
    """Templates that print tools with `tojson` (the Qwen one here; Llama's indents)."""
    body = _body(exchange)
    return exchange["config"] == "d" and body.get("tools") is not None and \
        body.get("tool_choice") != "none"


def _comma_in_arguments(exchange):
    """TGI streams the comma behind the name of a call as the first of its arguments, which are no JSON then."""
    calls = [delta["tool_calls"] for answer in _events(exchange) if isinstance(answer, dict)
             for delta in [choice.get("delta") or {} for choice in answer.get("choices", [])]
             if delta.get("tool_calls")]
    pieces = [(call[0] if isinstance(call, list) else call)["function"]["arguments"] for call in calls]
    return "".join(pieces).removeprefix("{").lstrip().startswith(",")


def _empty_call(exchange):
    """The grammar that TGI makes of tools allows {}; only a shard that says what it was sent shows that."""
    body = _body(exchange)
    answer = exchange["response"].get("body_normalised") or ""
    return body.get("tools") is not None and bool(re.search(r'\(\[ \]\?\\+"function', answer))


def _bad_expression(exchange):
    """TGI's router passes expressions on; its shards fail on them, the recorded stand-in did not."""
    body = _body(exchange)
    grammar = _parameters(body).get("grammar") or body.get("response_format")
    if not isinstance(grammar, dict) or grammar.get("type") != "regex":
        return False
    try:
        re.compile(grammar.get("value"))
    except (re.error, TypeError):
        return True
    return False


RULES = [
    ("more than 1,024 tokens",
     "exactly as many tokens as were asked for or fit, from one generation", _long_generation),
    ("no shard",
     "503 `unavailable` with Retry-After and the reason, not the connection's error", _no_shard),
    ("cut in a character",
     "the text in front of the incomplete character is kept", _ends_in_a_character),
    ("compressed body", "415, not read as if it were plain", _compressed),
    ("key in another case", "keys are compared exactly", _key_in_other_case),
    ("comma in arguments", "streamed arguments of a tool call join to JSON", _comma_in_arguments),
    ("empty call", "the grammar of a forced tool call does not allow {}", _empty_call),
    ("bad expression", "422 from the router, not an error of the shard", _bad_expression),
    ("tools through tojson", "with blanks, as transformers renders them", _tools_as_json),
]


def difference_of(exchange):
    """The name of the first rule that covers the exchange, or None."""
    for name, _, covers in RULES:
        if covers(exchange):
            return name
    return None
