"""Exchanges recorded from TGI's own router, and a player for them.

Each exchange uses its own connection, in the order in which it was recorded. What is compared:
status, headers (except those for time, transport and server), and the body as text with volatile
parts replaced.
"""

import base64
import contextlib
import gzip
import json
import pathlib
import re
import socket

# Ours beside TGI's, or made by the connection.
OUR_HEADERS = {"date", "connection", "x-request-id", "retry-after", "retry-after-ms",
               "x-should-retry", "www-authenticate", "keep-alive", "<interim status>"}
VARYING = {"content-length",
            "x-compute-time", "x-total-time", "x-validation-time", "x-queue-time",
           "x-inference-time", "x-time-per-token"}


class Recording:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        configurations = json.loads((self.folder / "configurations.json").read_text())
        self.configurations = {c["name"]: c for c in configurations}
        with gzip.open(self.folder / "exchanges.jsonl.gz", "rt", encoding="utf-8") as lines:
            self.exchanges = [json.loads(line) for line in lines]

    def of(self, configuration):
        return [e for e in self.exchanges if e["config"] == configuration]


def raw_request(request):
    if "body_base64" in request:
        body = base64.b64decode(request["body_base64"])
    else:
        body = (request.get("body") or "").encode()
    version = request.get("http", "1.1")
    head = f"{request['method']} {request['path']} HTTP/{version}\r\n"
    names = {name for name, _ in request["headers"]}
    for name, value in request["headers"]:
        head += f"{name}: {value}\r\n"
    if "host" not in names:
        head += "host: 127.0.0.1\r\n"
    if "connection" not in names:
        head += "connection: close\r\n"
    if request.get("chunked"):
        head += "transfer-encoding: chunked\r\n"
        pieces = [body[i:i + 1000] for i in range(0, len(body), 1000)]
        body = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces) + b"0\r\n\r\n"
    elif body and "content-length" not in names:
        head += f"content-length: {len(body)}\r\n"
    return head.encode("latin-1") + b"\r\n" + body


def read_all(connection):
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            data += piece
    return data


def fetch(port, request, timeout=60):
    """(status, [[name, value]], body text) of one exchange."""
    with socket.create_connection(("127.0.0.1", port), timeout) as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(raw_request(request))
        data = read_all(connection)
    headers = []
    while True:
        head, _, data = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        status = int(lines[0].split()[1]) if len(lines[0].split()) > 1 else 0
        if not 100 <= status < 200:
            break
        headers.append(["<interim status>", str(status)])
    for line in lines[1:]:
        name, _, value = line.partition(":")
        headers.append([name.lower(), value.strip()])
    if ["transfer-encoding", "chunked"] in headers:
        data = dechunk(data)
    return status, headers, data.decode("utf-8", "replace")


def dechunk(data):
    body = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        count = int(size.split(b";")[0] or b"0", 16)
        if count == 0:
            break
        body += data[:count]
        data = data[count + 2:]
    return body


UUID = re.compile(r'"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"')
GIVEN_SEED = re.compile(r'"seed"\s*:\s*\d')
PROGRAM = [  # the router's own name and version
    (re.compile(r'"system_fingerprint":"[^"]*"'), '"system_fingerprint":"<program>"'),
    (re.compile(r'"router":"[^"]*","version":"[^"]*","sha":(?:null|"[^"]*")'),
     '"router":"<program>"'),
]


# TGI refuses a grammar of tools and prints it from a hash map, so the order of members varies.
REFUSED_SCHEMA = re.compile(r"(?<=Unsupported JSON Schema structure )\{.*\}(?= \\nMake sure)")


def in_order(match):
    schema = json.loads(json.loads(f'"{match.group()}"'))
    return json.dumps(json.dumps(schema, sort_keys=True))[1:-1]


def normalise_body(body, exchange):
    path = exchange["request"]["path"].partition("?")[0]
    if path == "/metrics":
        return "".join(sorted(f"{line}\n" for line in body.splitlines()
                              if line.startswith("# TYPE tgi_")))
    body = re.sub(r'"created":\d+', '"created":"<varies>"', body)
    if not GIVEN_SEED.search(exchange["request"].get("body") or ""):
        body = re.sub(r'"seed":\d+', '"seed":"<varies>"', body)
    body = UUID.sub('"<varies>"', body)
    for pattern, name in PROGRAM:
        body = pattern.sub(name, body)
    return REFUSED_SCHEMA.sub(in_order, body)


def by_index(body):
    """Choices of several prompts come in the order of their completion."""
    with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):
        answer = json.loads(body)
        answer["choices"].sort(key=lambda choice: choice["index"])
        return json.dumps(answer)
    return body


def same_body(expected, got, exchange):
    if expected == got:
        return True
    if exchange["request"]["path"] == "/metrics":  # what has not happened yet is there, too
        return set(expected.splitlines()) <= set(got.splitlines())
    return '"text_completion"' in expected and by_index(expected) == by_index(got)


def compared_headers(headers):
    kept = []
    for name, value in headers:
        if name in OUR_HEADERS:
            continue
        kept.append((name, "<varies>" if name in VARYING else value))
    return sorted(kept)


def expected_body(exchange):
    response = exchange["response"]
    return normalise_body(response.get("body_normalised", response.get("body", "")), exchange)


def differences(exchange, answer):
    """The differences as text; empty if the answer is TGI's."""
    status, headers, body = answer
    response = exchange["response"]
    found = []
    if status != response["status"]:
        found.append(f"status {status}, not {response['status']}")
    expected, got = compared_headers(response["headers"]), compared_headers(headers)
    for header in sorted(set(expected) ^ set(got)):
        found.append(("no " if header in expected else "has ") + ": ".join(header))
    if "big" in response.get("volatile", ()):  # documents the program itself
        return found
    wanted, given = expected_body(exchange), normalise_body(body, exchange)
    if not same_body(wanted, given, exchange):
        at = next((i for i, (a, b) in enumerate(zip(wanted, given)) if a != b),
                  min(len(wanted), len(given)))
        found.append(f"body from {at}: {given[max(0, at - 40):at + 160]!r}, "
                     f"not {wanted[max(0, at - 40):at + 160]!r}")
    return found
