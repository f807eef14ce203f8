"""Traces: W3C context in, spans out over OTLP, the same trace in the shards' logs; a collector harms nothing."""

import secrets
import ssl
import time

import pytest

from certificates import make_authority, make_certificate, need_openssl
from penstock_testing import BIN, Server

fake_collector = pytest.importorskip("fake_collector", reason="the packages of tests/requirements.txt are absent")
attributes = fake_collector.attributes


def simulated(*options, tls=None):
    return Server("--shard-program", BIN / "penstock-simshard", *options, tls=tls)


@pytest.fixture(scope="module")
def collector():
    made = fake_collector.Collector()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def traced(collector):
    with simulated("--otlp-endpoint", collector.endpoint, "--otlp-service-name", "my-router",
                   "--log-level", "debug") as server:
        yield server


def new_trace(flags="01"):
    trace, parent = secrets.token_hex(16), secrets.token_hex(8)
    return trace, parent, {"traceparent": f"00-{trace}-{parent}-{flags}", "tracestate": "vendor=7"}


def generate(server, headers, path="/generate", expect=200, **parameters):
    body = {"inputs": "Once upon a time", "parameters": {"max_new_tokens": 5, **parameters}}
    status, _, answer = server.request("POST", path, body, headers)
    assert status == expect, answer


def test_a_request_becomes_a_span_with_its_parts(traced, collector):
    trace, parent, headers = new_trace()
    before = time.time_ns()
    generate(traced, headers | {"x-request-id": "my-request"})
    spans = collector.spans_of(trace, 4)
    assert set(spans) == {"generate", "queue", "prefill", "decode"}
    request = spans["generate"][0]
    assert request.parent_span_id.hex() == parent
    assert request.trace_state == "vendor=7"
    assert request.kind == 2 and request.flags == 1 and request.status.code == 0
    shown = attributes(request)
    assert shown["penstock.request_id"] == "my-request"
    assert shown["gen_ai.usage.output_tokens"] == 5
    assert shown["penstock.finish_reason"] == "length"
    assert shown["url.scheme"] == "http"
    for name in ("total_time", "validation_time", "queue_time", "inference_time", "time_per_token"):
        assert float(shown[name].removesuffix("ms")) >= 0
    times = {name: ms for name, ms in shown.items() if name.startswith("penstock.time_ms.")}
    assert times["penstock.time_ms.prefill"] > 0 and times["penstock.time_ms.decode"] > 0
    took = (request.end_time_unix_nano - request.start_time_unix_nano) / 1e6
    assert sum(times.values()) <= took
    assert before <= request.start_time_unix_nano <= request.end_time_unix_nano <= time.time_ns()
    parts = [spans[name][0] for name in ("queue", "prefill", "decode")]
    for part in parts:
        assert "url.scheme" not in attributes(part)
        assert part.parent_span_id == request.span_id
        assert part.start_time_unix_nano <= part.end_time_unix_nano <= request.end_time_unix_nano
    for earlier, later in zip(parts, parts[1:]):
        assert earlier.end_time_unix_nano == later.start_time_unix_nano
    assert collector.resources[-1]["service.name"] == "my-router"


@pytest.mark.parametrize("profile, name", [("penstock", "penstock"),
                                           ("tgi", "text-generation-inference.router")])
def test_the_service_has_our_name_outside_the_tgi_profile(collector, profile, name):
    trace, _, headers = new_trace()
    with simulated("--otlp-endpoint", collector.endpoint, "--api-profile", profile) as server:
        generate(server, headers)
        collector.spans_of(trace, 4)
    assert collector.resources[-1]["service.name"] == name


def test_under_tls_the_scheme_is_https(collector, tmp_path):
    need_openssl()
    make_authority(tmp_path, "ca")
    make_certificate(tmp_path, "server", "ca", ["127.0.0.1"])
    trace, _, headers = new_trace()
    with simulated("--otlp-endpoint", collector.endpoint, "--tls-cert", tmp_path / "server.pem",
                   "--tls-key", tmp_path / "server.key",
                   tls=ssl.create_default_context(cafile=tmp_path / "ca.pem")) as server:
        generate(server, headers)
        refused, _, more = new_trace()
        generate(server, more, expect=422, max_new_tokens=0)
        assert attributes(collector.spans_of(trace, 4)["generate"][0])["url.scheme"] == "https"
        span = collector.spans_of(refused, 1)["POST /generate"][0]
        assert attributes(span)["url.scheme"] == "https"


@pytest.mark.parametrize("path, name, body", [
    ("/generate_stream", "generate_stream", {"inputs": "Hi", "parameters": {"max_new_tokens": 3}}),
    ("/", "compat_generate", {"inputs": "Hi", "parameters": {"max_new_tokens": 3}}),
    ("/v1/chat/completions", "chat_completions",
     {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 3}),
    ("/v1/completions", "completions", {"prompt": "Hi", "max_tokens": 3}),
    ("/invocations", "invocations", {"inputs": "Hi", "parameters": {"max_new_tokens": 3}})])
def test_every_generating_route_has_its_name(traced, collector, path, name, body):
    trace, parent, headers = new_trace()
    assert traced.request("POST", path, body, headers)[0] == 200
    spans = collector.spans_of(trace, 4)
    assert spans[name][0].parent_span_id.hex() == parent


def test_the_shards_log_the_trace(traced, collector):
    trace, _, headers = new_trace()
    generate(traced, headers)
    request = collector.spans_of(trace, 4)["generate"][0]
    traced.wait_said(f"starts sequence .* 00-{trace}-{request.span_id.hex()}-01")


def test_an_unsampled_trace_is_passed_on_but_not_sent(traced, collector):
    unsampled, _, headers = new_trace(flags="00")
    generate(traced, headers)
    traced.wait_said(f"starts sequence .* 00-{unsampled}-[0-9a-f]{{16}}-00")
    sampled, _, headers = new_trace()
    generate(traced, headers)
    collector.spans_of(sampled, 4)  # came later, so the other would be here
    collector.spans_of(unsampled, 0, seconds=0)


@pytest.mark.parametrize("header", ["", "00-xyz", "00-" + "0" * 32 + "-b7ad6b7169203331-01"])
def test_a_request_without_a_usable_header_starts_a_trace(traced, collector, header):
    mark = "root-" + secrets.token_hex(4)
    generate(traced, {"traceparent": header, "x-request-id": mark})
    _, _, headers = new_trace()
    trace = headers["traceparent"].split("-")[1]
    generate(traced, headers)
    collector.spans_of(trace, 4)
    mine = [s for s in collector.spans() if attributes(s).get("penstock.request_id") == mark]
    assert len(mine) == 1
    assert mine[0].parent_span_id == b"" and any(mine[0].trace_id)


def test_an_error_marks_the_span(traced, collector):
    trace, _, headers = new_trace()
    long = {"inputs": "Once upon a time " * 20000, "parameters": {"max_new_tokens": 5}}
    assert traced.request("POST", "/generate", long, headers)[0] == 422
    request = collector.spans_of(trace, 1)["generate"][0]
    assert request.status.code == 2
    assert "`inputs`" in request.status.message


REFUSED = [
    ("POST /generate", "/generate", {"inputs": "", "parameters": {}}, 422, "`inputs` cannot be empty"),
    ("POST /generate", "/generate", {"inputs": 7}, 422, "invalid type"),
    ("POST /v1/completions", "/v1/completions", "{", 400, ""),
    ("POST unmatched", "/nowhere", {}, 404, "no such route"),
]


@pytest.mark.parametrize("name, path, body, status, told", REFUSED)
def test_a_request_that_is_refused_early_has_one_span_too(traced, collector, name, path, body, status, told):
    trace, parent, headers = new_trace()
    assert traced.request("POST", path, body, headers)[0] == status
    spans = collector.spans_of(trace, 1)
    if name not in spans:  # refused by the run itself, which then names the span
        assert set(spans) == {"generate"}
        return
    (span,) = spans[name]
    assert span.parent_span_id.hex() == parent and span.kind == 2 and span.status.code == 2
    assert told in span.status.message
    assert attributes(span)["http.response.status_code"] == status


def test_traces_are_counted(traced, collector):
    trace, _, headers = new_trace()
    generate(traced, headers)
    collector.spans_of(trace, 4)
    assert traced.wait_metric('penstock_otlp_spans_total{outcome="sent"}', lambda count: count >= 4)


@pytest.mark.parametrize("reachable", [True, False])
def test_requests_succeed_while_the_collector_hangs_or_is_absent(reachable):
    collector = fake_collector.Collector()
    collector.hold()
    if not reachable:
        collector.stop()
    try:
        with simulated("--otlp-endpoint", collector.endpoint) as server:
            for _ in range(20):
                generate(server, {})
            if reachable:
                collector.wait_call()
            before = time.monotonic()
            assert server.stop() == 0
            assert time.monotonic() - before < 10
    finally:
        collector.stop()


def test_the_last_traces_are_sent_at_the_end():
    collector = fake_collector.Collector()
    try:
        with simulated("--otlp-endpoint", collector.endpoint) as server:
            trace, _, headers = new_trace()
            generate(server, headers)
            assert server.stop() == 0
        collector.spans_of(trace, 4, seconds=0)
    finally:
        collector.stop()
