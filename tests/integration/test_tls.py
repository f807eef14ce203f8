"""HTTPS: the listener with --tls-cert, --tls-key and --tls-client-ca, over real clients."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time

import openai
import pytest

from certificates import make_authority, make_certificate, need_openssl
from penstock_testing import BIN, DEMO_MODEL, Process, at_once

RSA = ("-newkey", "rsa:2048", "-nodes")
LONG = {"max_new_tokens": 400, "ignore_eos_token": True}


@pytest.fixture(scope="module")
def pki():
    need_openssl()
    with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
        for authority in ("ca", "other"):
            make_authority(folder, authority)
        for name, authority in (("server", "ca"), ("next", "ca"), ("client", "ca"),
                                ("stranger", "other")):
            make_certificate(folder, name, authority, ["127.0.0.1"])
        make_certificate(folder, "rsa", "ca", ["127.0.0.1"], key=RSA)
        os.mkfifo(f"{folder}/pipe.key")
        yield folder


def options(pki, name="server"):
    return ("--tls-cert", f"{pki}/{name}.pem", "--tls-key", f"{pki}/{name}.key")


def client(pki, authority="ca", certificate=None):
    context = ssl.create_default_context(cafile=f"{pki}/{authority}.pem")
    if certificate:
        context.load_cert_chain(f"{pki}/{certificate}.pem", f"{pki}/{certificate}.key")
    return context


def serial_of(server, pki):
    """The serial number of the certificate that a new connection is shown."""
    with socket.create_connection((server.host, server.port), 10) as plain, \
            client(pki).wrap_socket(plain, server_hostname=server.host) as tls:
        return tls.getpeercert()["serialNumber"]


def test_answers_and_streams_are_those_of_plain_http(simulated, pki):
    secure = simulated(*options(pki), "--log-format", "json", tls=client(pki))
    plain = simulated()
    body = {"inputs": "a b", "parameters": {"max_new_tokens": 20, "seed": 5, "details": True}}
    assert secure.url.startswith("https://")
    for path in ("/generate", "/generate_stream"):
        got = [server.request("POST", path, body) for server in (secure, plain)]
        assert got[0][0] == got[1][0] == 200
        assert got[0][2] == got[1][2]
    secure.wait_said('"route":"/generate","scheme":"https"')


def test_a_second_server_on_the_port_is_told_who_has_it(simulated, pki):
    server = simulated(*options(pki), tls=client(pki))
    done = subprocess.run([BIN / "penstock-launcher", "--model-id", DEMO_MODEL, "--port",
                           str(server.port)], capture_output=True, text=True, timeout=60)
    assert f"in use by a Penstock server, which answers on {server.url};" in done.stderr


def test_a_connection_is_kept_for_the_next_request(simulated, pki):
    server = simulated(*options(pki), tls=client(pki))
    connection = server.connect()
    connection.connect()
    used = connection.sock
    for _ in range(3):
        connection.request("GET", "/health")
        response = connection.getresponse()
        assert response.status == 200 and response.read() == b""
        assert connection.sock is used
    # The connection ends with close_notify, so the client knows that nothing is missing.
    connection.sock.sendall(b"GET /info HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    connection.sock.suppress_ragged_eofs = False
    received = b""
    while piece := connection.sock.recv(65536):
        received += piece
    assert received.startswith(b"HTTP/1.1 200") and received.endswith(b"}")


def test_curl_and_the_openai_client(simulated, pki):
    server = simulated(*options(pki), "--api-key", "secret", tls=client(pki))
    if shutil.which("curl"):
        answer = subprocess.run(
            ["curl", "-sS", "--cacert", f"{pki}/ca.pem", "-H", "Authorization: Bearer secret", "-d",
             '{"inputs":"x","parameters":{"max_new_tokens":3}}', "-H", "Content-Type: application/json",
             f"{server.url}/generate"], capture_output=True, check=True, timeout=30)
        assert "generated_text" in json.loads(answer.stdout)
    import httpx
    with httpx.Client(verify=client(pki)) as transport:
        api = openai.OpenAI(base_url=f"{server.url}/v1", api_key="secret", http_client=transport)
        stream = api.completions.create(model="tgi", prompt="x", max_tokens=5, stream=True)
        chunks = [chunk.choices[0] for chunk in stream if chunk.choices]
        # An incomplete character waits for its next token, so there may be fewer chunks than tokens.
        assert len(chunks) >= 2 and chunks[-1].finish_reason == "length"
        with pytest.raises(openai.AuthenticationError):
            api.with_options(api_key="wrong").completions.create(model="tgi", prompt="x")


def test_clients_without_trust_or_with_old_tls_are_refused(simulated, pki):
    server = simulated(*options(pki), tls=client(pki))
    with pytest.raises(ssl.SSLCertVerificationError):
        client(pki, "other").wrap_socket(socket.create_connection((server.host, server.port), 10),
                                         server_hostname=server.host)
    old = client(pki)
    old.set_ciphers("ALL:@SECLEVEL=0")
    old.minimum_version = ssl.TLSVersion.TLSv1
    old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(ssl.SSLError):
        old.wrap_socket(socket.create_connection((server.host, server.port), 10),
                        server_hostname=server.host)
    only_h2 = client(pki)
    only_h2.set_alpn_protocols(["h2"])
    with pytest.raises(ssl.SSLError):
        only_h2.wrap_socket(socket.create_connection((server.host, server.port), 10),
                            server_hostname=server.host)
    assert server.request("GET", "/health")[0] == 200


def test_plain_http_gets_an_error_that_names_https(simulated, pki):
    server = simulated(*options(pki), tls=client(pki))
    for method in ("GET", "DELETE"):
        connection = http.client.HTTPConnection(server.host, server.port, timeout=10)
        connection.request(method, "/health")
        response = connection.getresponse()
        assert response.status == 400 and b"https://" in response.read()
    server.wait_said("speaks plain HTTP")


def test_clients_must_show_a_certificate_of_the_authority(simulated, pki):
    server = simulated(*options(pki), "--tls-client-ca", f"{pki}/ca.pem",
                       tls=client(pki, certificate="client"))
    assert server.generate("x", max_new_tokens=2)["generated_text"] is not None
    # In TLS 1.3 the client has finished its side and sent its request when it is refused. It still
    # gets the alert, not the reset that closing with unread bytes causes.
    request = b"POST /generate HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n" + b" " * 60000
    for _ in range(5):
        for certificate, reason in ((None, "CERTIFICATE_REQUIRED"), ("stranger", "UNKNOWN_CA")):
            with socket.create_connection((server.host, server.port), 10) as plain, \
                    client(pki, certificate=certificate).wrap_socket(
                        plain, server_hostname=server.host) as tls:
                tls.sendall(request)
                with pytest.raises(ssl.SSLError, match=f"ALERT_{reason}"):
                    tls.recv(1000)
    server.wait_said("TLS handshake with 127.0.0.1 failed: .*did not return a certificate")
    server.wait_said("[1-9] more TLS handshakes? failed, the last with 127.0.0.1: .*certificate")
    assert server.metrics()["penstock_tls_handshakes_failed_total"] == 10


def test_a_server_with_neither_keys_nor_client_certificates_is_warned_of(simulated, pki):
    everywhere = ("--hostname", "0.0.0.0", *options(pki))
    assert "without an API key" in simulated(*everywhere, tls=client(pki)).output()
    closed = simulated(*everywhere, "--tls-client-ca", f"{pki}/ca.pem", tls=client(pki))
    assert "without an API key" not in closed.output()


def test_https_from_yaml_and_from_the_environment(simulated, pki, tmp_path):
    config = tmp_path / "server.yaml"
    config.write_text(f"tls-cert: {pki}/server.pem\ntls-key: {pki}/server.key\n")
    names = {"PENSTOCK_TLS_CERT": f"{pki}/next.pem", "PENSTOCK_TLS_KEY": f"{pki}/next.key"}
    shown = [serial_of(simulated("--config", config, tls=client(pki)), pki),
             serial_of(simulated(tls=client(pki), env=names), pki),
             serial_of(simulated("--config", config, tls=client(pki), env=names), pki)]
    assert shown[0] != shown[1]
    assert shown[2] == shown[1]  # the environment counts before the file


def test_a_client_that_leaves_cancels(simulated, pki):
    server = simulated(*options(pki), "--step-time", "5ms", tls=client(pki))
    for leave in ("cut", "close_notify"):
        before = server.metrics()["penstock_requests_cancelled_total"]
        stream = server.generate_stream("x", **LONG)
        next(stream)
        sock = stream.connection.sock or stream.response.fp.raw._sock
        if leave == "cut":
            stream.close()
        else:
            sock.settimeout(10)
            threading.Thread(target=lambda s=sock: _unwrap(s), daemon=True).start()
        server.wait_metric("penstock_requests_cancelled_total", lambda n: n == before + 1)


def _unwrap(sock):
    try:
        sock.unwrap()
    except (OSError, ValueError):
        pass  # events were on their way


def test_too_many_requests_and_a_drain(simulated, pki):
    server = simulated(*options(pki), "--step-time", "5ms", "--max-concurrent-requests", "2",
                       tls=client(pki))
    streams = [server.generate_stream("x", max_new_tokens=200, ignore_eos_token=True) for _ in range(2)]
    for stream in streams:
        next(stream)
    status, headers, _ = server.request("POST", "/generate", {"inputs": "x"})
    assert status == 429 and int({k.lower(): v for k, v in headers.items()}["retry-after"]) >= 1
    server.popen.send_signal(signal.SIGTERM)
    server.wait_said("stopping: waiting for 2 requests to end")
    assert server.request("POST", "/generate", {"inputs": "x"})[0] == 503
    for stream in streams:
        assert stream.events()[-1]["generated_text"] is not None
    assert server.wait_exit(30) == 0


def test_sighup_reads_the_certificate_again(simulated, pki, tmp_path):
    for kind in ("pem", "key"):
        shutil.copy(f"{pki}/server.{kind}", tmp_path / f"live.{kind}")
    server = simulated("--tls-cert", tmp_path / "live.pem", "--tls-key", tmp_path / "live.key",
                       tls=client(pki))
    kept = server.connect()
    kept.request("GET", "/health")
    kept.getresponse().read()
    first = serial_of(server, pki)
    shutil.copy(f"{pki}/next.pem", tmp_path / "live.pem")  # the key is still the old one
    server.popen.send_signal(signal.SIGHUP)
    server.wait_said("the certificate stays as it was: .*tls-key")
    assert serial_of(server, pki) == first
    shutil.copy(f"{pki}/next.key", tmp_path / "live.key")
    server.popen.send_signal(signal.SIGHUP)
    server.wait_said("new connections get the certificate")
    assert serial_of(server, pki) != first
    kept.request("GET", "/health")
    assert kept.getresponse().status == 200


@pytest.mark.parametrize("cert, key, more, message", [
    ("{pki}/missing.pem", "{pki}/server.key", (), "tls-cert.*No such file"),
    ("{pki}/server.csr", "{pki}/server.key", (), "tls-cert.*complete PEM certificates"),
    ("{pki}/server.ext", "{pki}/server.key", (), "tls-cert.*a PEM file"),
    ("{pki}/server.pem", "{pki}/next.key", (), "tls-key.*the key of the certificate"),
    ("{pki}/server.pem", None, (), "tls-key.*belong together"),
    (None, None, ("--tls-client-ca", "{pki}/ca.pem"), "tls-cert.*belong together"),
    ("{pki}/server.pem", "{pki}/pipe.key", (), "tls-key.*not a pipe"),
    ("{pki}", "{pki}/server.key", (), "tls-cert.*not a pipe or a folder"),
    ("{pki}/server.pem", "{pki}/server.key", ("--tls-client-ca", "{pki}/ca.key"),
     "tls-client-ca.*complete PEM certificates"),
])
def test_wrong_files_are_usage_errors_before_a_shard_starts(pki, cert, key, more, message):
    arguments = [part.format(pki=pki) for part in more]
    arguments += ["--tls-cert", cert.format(pki=pki)] if cert else []
    arguments += ["--tls-key", key.format(pki=pki)] if key else []
    launcher = Process([BIN / "penstock-launcher", "--model-id", DEMO_MODEL, "--port", "0",
                        "--shard-program", BIN / "penstock-simshard", *arguments])
    assert launcher.wait_exit(30) == 2
    assert re.search(message, launcher.output()), launcher.output()
    assert "shard-0" not in launcher.output()


def test_bench_checks_the_certificate_of_the_server(simulated, pki):
    url = simulated(*options(pki), tls=client(pki)).url
    load = (BIN / "penstock-bench", "--requests", "4", "--max-new-tokens", "4", "--url", url)
    awscurl = (BIN / "penstock-bench", "--preset", "awscurl", "-d", '{"inputs":"a"}',
               "-H", "Content-Type: application/json", "-N", "2", f"{url}/generate")

    def run(*command):
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    for more in ("--ca-file", f"{pki}/ca.pem"), ("--insecure",):
        done = run(*load, *more)
        assert done.returncode == 0 and json.loads(done.stdout)["failures"] == 0, done.stdout
    for more in (), ("--ca-file", f"{pki}/other.pem"):
        done = run(*load, *more)
        assert done.returncode == 1 and "--ca-file" in done.stderr, done.stderr
    assert "must be a PEM file" in run(*load, "--ca-file", f"{pki}/absent.pem").stderr
    assert run(*awscurl, "-k").returncode == 0
    assert run(*awscurl).returncode != 0


def test_silent_clients_do_not_block_others(simulated, pki):
    server = simulated(*options(pki), tls=client(pki))
    silent = [socket.create_connection((server.host, server.port), 10) for _ in range(600)]
    try:
        assert server.request("GET", "/health", timeout=10)[0] == 200
    finally:
        for sock in silent:
            sock.close()


def test_handshakes_do_not_hold_up_a_stream(simulated, pki):
    server = simulated(*options(pki, "rsa"), "--step-time", "5ms", tls=client(pki))
    stream = server.generate_stream("x", **LONG)
    next(stream)
    span = []

    def many():
        began = time.monotonic()
        assert at_once(200, lambda _: server.request("GET", "/live")[0]) == [200] * 200
        span.extend((began, time.monotonic()))

    crowd = threading.Thread(target=many)
    crowd.start()
    stream.events()
    crowd.join(60)
    during = [t for t in stream.times if span[0] <= t <= span[1]]
    gaps = sorted(b - a for a, b in zip(during, during[1:]))
    print(f"200 handshakes in {span[1] - span[0]:.2f} s; gaps of the stream: median "
          f"{gaps[len(gaps) // 2]:.4f} s, longest {gaps[-1]:.4f} s, {len(gaps)} in all")
    assert gaps[len(gaps) // 2] < 0.05
