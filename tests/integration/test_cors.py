"""What a page of another origin may do, and what answers tell about a request that is not right."""

import socket

ORIGIN = {"Origin": "http://page.example"}


def preflight(server, path, method, *headers):
    return server.request("OPTIONS", path, None, {
        **ORIGIN, "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": ",".join(headers)})


def listed(headers, name):
    values = {key.lower(): value for key, value in dict(headers).items()}
    return [part.strip() for part in values[name].split(",")]


def test_a_page_may_call_with_a_key_and_the_headers_of_an_sdk(simulated):
    server = simulated("--api-key", "secret", "--cors-allow-origin", ORIGIN["Origin"],
                       "--cors-allow-headers", "x-own")
    asked = ("authorization", "content-type", "x-own", "x-stainless-lang")
    status, headers, _ = preflight(server, "/v1/chat/completions", "POST", *asked)
    assert status == 200
    assert set(asked) <= set(listed(headers, "access-control-allow-headers"))
    status, headers, _ = preflight(server, "/cached_prompts", "DELETE", "authorization")
    assert status == 200
    assert "DELETE" in listed(headers, "access-control-allow-methods")

    body = {"prompt": "a", "max_tokens": 2, "temprature": 1}
    status, headers, payload = server.request(
        "POST", "/v1/completions", body, {**ORIGIN, "Authorization": "Bearer secret"})
    assert status == 200, payload
    assert listed(headers, "access-control-allow-origin") == [ORIGIN["Origin"]]
    assert listed(headers, "x-penstock-ignored") == ["temprature"]
    exposed = listed(headers, "access-control-expose-headers")
    assert {"x-request-id", "x-penstock-ignored"} <= set(exposed)


def test_strict_json_refuses_a_misspelt_key(simulated):
    server = simulated("--strict-json")
    status, _, payload = server.request(
        "POST", "/v1/completions", {"prompt": "a", "max_tokens": 2, "temprature": 1})
    assert status == 400
    assert b"`temperature`" in payload


def test_an_absolute_target_is_served_if_its_host_is_that_of_the_head(simulated):
    server = simulated()
    for host, status in (("a.example", b"200"), ("b.example", b"400")):
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
            client.sendall(b"GET http://a.example/live HTTP/1.1\r\nHost: " + host.encode() +
                           b"\r\nConnection: close\r\n\r\n")
            assert client.makefile("rb").readline().split()[1] == status
