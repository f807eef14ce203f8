"""What SIGTERM does while requests run, and what the exit codes of docs/operations.md mean."""

import json
import signal
import socket
import threading
import time

import pytest

from penstock_testing import BIN, DEMO_MODEL, Process


def wait_status(server, path, status, seconds=2):
    """Asks until the answer has this status: each request is answered by the server."""
    deadline = time.monotonic() + seconds
    while (got := server.request("GET", path, timeout=5))[0] != status:
        assert time.monotonic() < deadline, got
    return got


def refuses_new_requests(server):
    chat = {"messages": [{"role": "user", "content": "x"}]}
    for path, body in [
        ("/generate", {"inputs": "x"}),
        ("/generate_stream", {"inputs": "x"}),
        ("/", {"inputs": "x", "stream": True}),
        ("/invocations", {"inputs": "x", "stream": True}),
        ("/vertex", {"instances": [{"inputs": "x"}]}),
        ("/predictions/demo", {"inputs": "x"}),
        ("/inference", {"prompt": "x"}),
        ("/v1/completions", {"prompt": "x"}),
        ("/v1/completions", {"prompt": "x", "stream": True}),
        ("/v1/chat/completions", chat),
        ("/v1/chat/completions", chat | {"stream": True}),
    ]:
        status, headers, answer = server.request("POST", path, body)
        assert status == 503, (path, body, status, answer)
        headers = {k.lower(): v for k, v in headers.items()}
        assert int(headers["retry-after"]) >= 1, (path, body)
        assert headers["content-type"] == "application/json", (path, body)


@pytest.mark.parametrize("profile", ["penstock", "tgi"])
@pytest.mark.parametrize("replicas", [1, 2])
def test_sigterm_finishes_what_runs_and_refuses_what_is_new(simulated, replicas, profile):
    server = simulated("--step-time", "20ms", "--num-replicas", str(replicas),
                       "--api-profile", profile)
    streams = [server.generate_stream(f"prompt {i}", max_new_tokens=60) for i in range(32)]
    ends = [None] * len(streams)

    def read(i):
        ends[i] = json.loads(list(streams[i])[-1])

    readers = [threading.Thread(target=read, args=(i,)) for i in range(len(streams))]
    for reader in readers:
        reader.start()
    began = time.monotonic()
    server.popen.send_signal(signal.SIGTERM)
    _, headers, _ = wait_status(server, "/health", 503)
    assert time.monotonic() - began < 0.5
    assert int({k.lower(): v for k, v in headers.items()}["retry-after"]) >= 1
    refuses_new_requests(server)
    for reader in readers:
        reader.join(30)
    assert all(end is not None and end.get("generated_text") is not None for end in ends), ends
    assert server.wait_exit(30) == 0


def test_streams_that_outlive_the_shutdown_timeout_end_with_an_error(simulated):
    server = simulated("--step-time", "50ms", "--shutdown-timeout", "300ms")
    stream = server.generate_stream("prompt", max_new_tokens=1000)
    next(stream)
    server.popen.send_signal(signal.SIGTERM)
    assert "error" in json.loads(list(stream)[-1])
    assert server.wait_exit(30) == 0


def test_a_second_signal_ends_at_once(simulated):
    server = simulated("--step-time", "50ms")
    stream = server.generate_stream("prompt", max_new_tokens=1000)
    next(stream)
    server.popen.send_signal(signal.SIGTERM)
    server.wait_said("waiting for 1 request to end, at most 90s .--graceful-termination-timeout.; "
                     "Ctrl-C or SIGTERM again stops at once")
    wait_status(server, "/health", 503)
    deadline = time.monotonic() + 10
    while server.popen.poll() is None and time.monotonic() < deadline:
        server.popen.send_signal(signal.SIGTERM)  # those of the first 250 ms count as one
    assert server.wait_exit(10) == 1


@pytest.fixture
def taken_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield str(listener.getsockname()[1])


def launch(*options, model=DEMO_MODEL):
    return Process([BIN / "penstock-launcher", "--model-id", model, "--port", "0", *options])


def simulate(*options):
    return launch("--shard-program", BIN / "penstock-simshard", *options)


def test_exit_codes_of_the_manual(tmp_path, taken_port):
    cases = [
        (2, simulate("--num-shard", "0")),
        (2, simulate("--faults", "explode at=1")),
        (3, launch(model=tmp_path)),
        (4, launch("--kv-cache-memory", "4096GiB")),
        (5, launch("--device", "cuda")),
        (6, simulate("--faults", "kill at=1", "--restart", "never")),
        (7, simulate("--port", taken_port)),
    ]
    for expected, process in cases:
        if expected == 6:
            address = process.wait_line(r"address: http://127\.0\.0\.1:(\d+)")
            with socket.create_connection(("127.0.0.1", int(address.group(1)))) as client:
                client.sendall(b"POST /generate HTTP/1.1\r\nhost: x\r\n"
                               b"content-type: application/json\r\ncontent-length: 14\r\n\r\n"
                               b'{"inputs":"x"}')
                client.recv(4096)
        assert process.wait_exit(60) == expected, (expected, process.output())


def test_the_memory_plan_names_the_limit_that_counts():
    process = Process(["/bin/sh", "-c", 'ulimit -v 3000000; exec "$@"', "sh",
                       BIN / "penstock-launcher", "--model-id", DEMO_MODEL, "--port", "0",
                       "--kv-cache-memory", "10GiB"])
    assert process.wait_exit(60) == 4, process.output()
    assert process.lines[-1].endswith(
        "free (limit: ulimit -v): it does not fit; lower --kv-cache-memory")
