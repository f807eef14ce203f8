"""A router without a launcher: shards that run already, on Unix sockets or on TCP with mutual TLS."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile

import pytest

from certificates import make_authority, make_certificate, need_openssl
from penstock_testing import BIN, DEMO_MODEL, Attached, Process, Server


@pytest.fixture
def run():
    """run(process): stops it, and all others, at the end."""
    processes = []

    def keep(process):
        processes.append(process)
        return process

    yield keep
    for process in reversed(processes):
        process.stop()


@pytest.fixture
def folder():
    """A private folder with a short path: the path of a socket has at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="penstock-") as path:
        yield path


def simshard(*options, prefix=()):
    shard = Process([*prefix, BIN / "penstock-simshard", "--model-id", DEMO_MODEL, *options])
    shard.wait_line("listening on", 30)
    return shard


def unix(folder, *names):
    return ",".join(f"unix:{folder}/{name}" for name in names)


def test_groups_of_one_process_serve_and_a_failed_group_restarts(run, folder):
    run(simshard("--shard-uds-path", f"{folder}/s", "--num-groups", "2", "--world-size", "2",
                 "--step-time", "5ms", "--faults", "fail at=20 group=1 rank=1"))
    router = run(Attached(f"{unix(folder, 's-0-0', 's-0-1')};{unix(folder, 's-1-0', 's-1-1')}"))
    router.wait_ready()
    router.wait_metric('penstock_group_up{group="0"}', lambda value: value == 1)
    router.wait_metric('penstock_group_up{group="1"}', lambda value: value == 1)
    streams = [router.generate_stream(f"prompt {i}", max_new_tokens=60) for i in range(4)]
    ends = [json.loads(list(stream)[-1]) for stream in streams]
    assert not any("error" in end for end in ends), ends  # two continued on the other group
    router.wait_metric('penstock_group_up{group="1"}', lambda value: value == 1)
    assert router.metrics()['penstock_group_losses_total{group="1"}'] == 1
    streams = [router.generate_stream(f"prompt {i}", max_new_tokens=60) for i in range(4)]
    assert all("error" not in json.loads(list(stream)[-1]) for stream in streams)
    assert router.stop() == 0


@pytest.mark.parametrize("fault", ["desync at=5 rank=1", "desync at=5 rank=0", "invalid at=5"])
def test_a_rank_with_a_wrong_digest_or_answer_ends_its_requests_and_the_router_continues(
        run, folder, fault):
    run(simshard("--shard-uds-path", f"{folder}/s", "--world-size", "2", "--faults", fault))
    router = run(Attached(unix(folder, "s-0", "s-1"))).wait_ready()
    json.loads(list(router.generate_stream("prompt", max_new_tokens=20))[-1])
    router.wait_metric('penstock_group_up{group="0"}', lambda value: value == 1)
    assert "error" not in json.loads(list(router.generate_stream("prompt", max_new_tokens=20))[-1])
    losses = router.metrics().get('penstock_group_losses_total{group="0"}', 0)
    assert losses == (1 if "desync" in fault else 0)


def test_the_only_group_restarts_with_its_shard(run, folder):
    options = ("--shard-uds-path", f"{folder}/s")
    shard = run(simshard(*options))
    router = run(Attached(unix(folder, "s-0"))).wait_ready()
    router.generate("prompt", max_new_tokens=3)
    shard.popen.send_signal(signal.SIGKILL)
    router.wait_metric('penstock_group_up{group="0"}', lambda value: value == 0)
    assert router.request("GET", "/health")[0] == 503
    run(simshard(*options))
    router.wait_metric('penstock_group_up{group="0"}', lambda value: value == 1)
    router.generate("prompt", max_new_tokens=3)


def test_one_group_serves_while_the_other_is_absent(run, folder):
    run(simshard("--shard-uds-path", f"{folder}/here"))
    router = run(Attached(f"{unix(folder, 'absent-0')};{unix(folder, 'here-0')}")).wait_ready()
    router.generate("prompt", max_new_tokens=3)
    run(simshard("--shard-uds-path", f"{folder}/absent"))
    router.wait_metric('penstock_group_up{group="0"}', lambda value: value == 1)


def test_a_group_of_another_model_is_refused_by_name(run, folder):
    run(simshard("--shard-uds-path", f"{folder}/a"))
    run(simshard("--shard-uds-path", f"{folder}/b", "--max-sequence-length", "99"))
    router = run(Attached(f"{unix(folder, 'a-0')};{unix(folder, 'b-0')}"))
    router.wait_line(r"`group \d.fingerprint` must be simulated-\d+ as in group \d", 30)


def test_the_wait_for_an_absent_shard_is_logged_once(run, folder):
    router = run(Attached(f"{unix(folder, 'a-0')}"))
    router.wait_line(f"waiting for shard-0 at {folder}/a-0", 30)
    run(simshard("--shard-uds-path", f"{folder}/a"))
    router.wait_ready()
    assert sum("waiting for shard-" in line for line in router.lines) == 1


@pytest.mark.parametrize("options, message", [
    (("--shards", "tcp:127.0.0.1:7000"), "shards.*with --shard-tls-cert"),
    (("--shards", "unix:relative"), "shards.*unix:/PATH or tcp:HOST:PORT"),
    (("--shards", "unix:/a,unix:/a"), "--shards unix:/a: must be an address of its own"),
    (("--shards", "unix:/a;unix:/b,unix:/a"), "--shards unix:/a: must be an address of its own"),
    (("--shards", "tcp:host:0"), "shards.*tcp:HOST:PORT"),
    ((), "one of --shards and --shard-uds-path"),
    (("--shards", "unix:/a", "--shard-tls-cert", "/missing"), "shard-tls-cert.*PEM file"),
])
def test_wrong_addresses_are_usage_errors(options, message):
    router = Process([BIN / "penstock-router", "--model-id", DEMO_MODEL, *options])
    assert router.wait_exit(30) == 2
    assert re.search(message, router.output()), router.output()


# --- TCP with mutual TLS

def tls(folder, name, authority="ca"):
    return ("--shard-tls-cert", f"{folder}/{name}.pem", "--shard-tls-key", f"{folder}/{name}.key",
            "--shard-tls-ca", f"{folder}/{authority}.pem")


@pytest.fixture
def certificates(folder):
    need_openssl()
    for authority in ("ca", "other"):
        make_authority(folder, authority)
    make_certificate(folder, "shard", "ca", ["127.0.0.1", "10.91.0.2"])
    make_certificate(folder, "router", "ca", ["127.0.0.1"])
    make_certificate(folder, "stranger", "other", ["127.0.0.1"])
    return folder


def free_ports(count):
    """The first of `count` consecutive free ports."""
    import contextlib
    import random
    import socket
    for _ in range(100):
        first = random.randrange(20000, 30000)
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first
    raise AssertionError("no free ports")


def test_ranks_on_tcp_with_mutual_tls(run, certificates):
    port = free_ports(2)
    run(simshard("--shard-listen", f"tcp:127.0.0.1:{port}", "--world-size", "2",
                 *tls(certificates, "shard")))
    shards = f"tcp:127.0.0.1:{port},tcp:127.0.0.1:{port + 1}"
    router = run(Attached(shards, *tls(certificates, "router"))).wait_ready()
    assert router.generate("prompt", max_new_tokens=9)["details"]["generated_tokens"] == 9


@pytest.mark.skipif(not os.environ.get("PENSTOCK_LONG_TESTS"), reason="PENSTOCK_LONG_TESTS=1 runs it: a minute")
def test_a_stopped_shard_on_tcp_is_found_after_a_long_idle_time(run, certificates):
    port = free_ports(1)
    shard = run(simshard("--shard-listen", f"tcp:127.0.0.1:{port}", *tls(certificates, "shard")))
    router = run(Attached(f"tcp:127.0.0.1:{port}", *tls(certificates, "router"))).wait_ready()
    router.generate("prompt", max_new_tokens=3)
    silent, _other_end = socket.socketpair()
    silent.settimeout(32)  # beyond the two pings after which gRPC stops by itself
    with pytest.raises(TimeoutError):
        silent.recv(1)
    shard.popen.send_signal(signal.SIGSTOP)
    try:
        router.wait_line("keepalive watchdog timeout", 25)
    finally:
        shard.popen.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("name, authority", [("stranger", "ca"), ("router", "other")])
def test_unknown_certificates_are_refused_on_both_sides(run, certificates, name, authority):
    port = free_ports(1)
    run(simshard("--shard-listen", f"tcp:127.0.0.1:{port}", *tls(certificates, "shard")))
    router = run(Attached(f"tcp:127.0.0.1:{port}", "--startup-timeout", "1s",
                          *tls(certificates, name, authority)))
    assert router.wait_exit(30) == 6
    assert f"shard-0: Describe: tcp:127.0.0.1:{port}: " in router.output()
    assert "Deadline Exceeded" not in router.output()


@pytest.mark.parametrize("address, reason", [
    ("unix:{folder}/absent", "No such file or directory"),
    ("tcp:127.0.0.1:{closed}", "Connection refused"),
    ("tcp:localhost:{port}", "localhost"),  # the certificate names addresses only
])
def test_a_shard_out_of_reach_is_named_with_the_reason(run, certificates, address, reason):
    port = free_ports(2)
    run(simshard("--shard-listen", f"tcp:127.0.0.1:{port}", *tls(certificates, "shard")))
    where = address.format(folder=certificates, port=port, closed=port + 1)
    router = run(Attached(where, "--startup-timeout", "1s", *tls(certificates, "router")))
    assert router.wait_exit(30) == 6
    said = f"{re.escape(where.removeprefix('unix:'))}: .*{reason}"
    assert re.search(said, router.output()), router.output()


def test_a_key_of_another_certificate_is_a_usage_error(certificates):
    options = ("--shard-tls-cert", f"{certificates}/router.pem",
               "--shard-tls-key", f"{certificates}/shard.key",
               "--shard-tls-ca", f"{certificates}/ca.pem")
    for program in ([BIN / "penstock-router", "--model-id", DEMO_MODEL, "--shards", "tcp:127.0.0.1:1"],
                    [BIN / "penstock-simshard", "--shard-listen", "tcp:127.0.0.1:1"]):
        process = Process([*program, *options])
        assert process.wait_exit(30) == 2
        assert "shard-tls-key" in process.output()


@pytest.mark.parametrize("check", [("--check",), ()])
def test_a_wrong_endpoint_of_traces_is_found_before_shards_are_waited_for(check):
    router = Process([BIN / "penstock-router", "--model-id", DEMO_MODEL, "--shards", "unix:/absent",
                      "--otlp-endpoint", "nonsense", *check])
    assert router.wait_exit(30) == 2
    assert re.search("otlp-endpoint.*nonsense", router.output()), router.output()


def test_a_shard_does_not_listen_on_tcp_without_tls():
    shard = Process([BIN / "penstock-simshard", "--shard-listen", "tcp:127.0.0.1:7001"])
    assert shard.wait_exit(30) == 2
    assert "mutual TLS only" in shard.output()


@pytest.fixture
def namespace():
    """A network namespace that is reached through 10.91.0.2."""
    name = f"penstock{os.getpid()}"
    # What was made, in reverse, is unmade even if a later step fails.
    steps = [
        ["ip", "netns", "add", name],
        ["ip", "link", "add", "pst0", "type", "veth", "peer", "name", "pst1", "netns", name],
        ["ip", "address", "add", "10.91.0.1/24", "dev", "pst0"],
        ["ip", "link", "set", "pst0", "up"],
        ["ip", "-n", name, "address", "add", "10.91.0.2/24", "dev", "pst1"],
        ["ip", "-n", name, "link", "set", "pst1", "up"],
        ["ip", "-n", name, "link", "set", "lo", "up"],
    ]
    try:
        for step in steps:
            done = subprocess.run(step, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                pytest.skip(f"network namespaces cannot be made: {done.stderr.strip()}")
        yield name
    except FileNotFoundError:
        pytest.skip("the program `ip` is not installed")
    finally:
        if shutil.which("ip"):
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def test_shards_in_another_network_namespace(run, certificates, namespace):
    inside = ("ip", "netns", "exec", namespace)
    run(simshard("--shard-listen", "tcp:10.91.0.2:7100", *tls(certificates, "shard"),
                 prefix=inside))
    router = run(Attached("tcp:10.91.0.2:7100", *tls(certificates, "router"))).wait_ready()
    assert router.generate("prompt", max_new_tokens=9)["details"]["generated_tokens"] == 9
