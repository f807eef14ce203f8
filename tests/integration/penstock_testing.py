"""Starts the real binaries on port 0 and talks to them; shared by integration and conformance tests.

Nothing here sleeps: readers wait for lines or bytes with a deadline.
"""

import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import queue
import re
import signal
import socket
import subprocess
import threading
import time

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PENSTOCK_BUILD_DIR", REPOSITORY / "build"))
BIN = BUILD / "bin"
DEPENDENCIES = pathlib.Path(os.environ.get("PENSTOCK_DEPS_DIR", REPOSITORY / ".deps"))
DEMO_MODEL = REPOSITORY / "demo" / "model"
SHARED_DATA = pathlib.Path(
    os.environ.get("PENSTOCK_SHARED_DATA", REPOSITORY.parent / "shared" / "data"))
START_SECONDS = 120
LISTENING = re.compile(r"listening on ([\d.]+):(\d+)")
ADDRESS = re.compile(r'address(?:: |":")https?://([\d.]+):(\d+)')  # in the block or the record


def shared_data(*parts):
    """A path below the optional test inputs; skips the test when it is absent."""
    import pytest
    path = SHARED_DATA.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"test input {'/'.join(parts)} is absent (set PENSTOCK_SHARED_DATA)")
    return path


class Process:
    """A child whose merged output is read line by line as it comes."""

    tls = None  # of connections to it, see Server

    def __init__(self, arguments, env=None, cwd=None):
        full_env = {k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_")}
        full_env.update(env or {})
        self.arguments = [str(a) for a in arguments]
        self.popen = subprocess.Popen(self.arguments, env=full_env, cwd=cwd, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.lines = []
        self._news = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.stop()

    def _read(self):
        for raw in self.popen.stdout:
            line = raw.decode("utf-8", "replace").rstrip("\n")
            self.lines.append(line)
            self._news.put(line)
        self._news.put(None)

    def wait_line(self, pattern, seconds=START_SECONDS):
        """The match of the first not yet seen line that has `pattern`."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                line = self._news.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no line with {pattern!r} in {seconds} s:\n{self.output()}")
            if line is None:
                self.popen.wait()
                raise AssertionError(f"ended ({self.popen.returncode}) before {pattern!r}:\n"
                                     f"{self.output()}")
            if match := re.search(pattern, line):
                return match

    def wait_said(self, pattern, seconds=20):
        """Waits for a line with `pattern`, also among earlier lines, because processes log at the same time."""
        if not any(re.search(pattern, line) for line in list(self.lines)):
            self.wait_line(pattern, seconds)

    def wait_exit(self, seconds=60):
        try:
            code = self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {seconds} s:\n{self.output()}")
        self._reader.join(10)
        return code

    def output(self):
        return "\n".join(self.lines[-60:])

    def stop(self, seconds=60):
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGTERM)
            try:
                self.popen.wait(seconds)
            except subprocess.TimeoutExpired:
                self.popen.kill()
                self.popen.wait()
        self._reader.join(10)
        return self.popen.returncode


class Server(Process):
    """penstock-launcher with router and shards; ready when the constructor returns.

    tls: the ssl.SSLContext of a client, where the options make the server speak HTTPS.
    """

    def __init__(self, *options, model=DEMO_MODEL, env=None, tls=None,
                 launcher=BIN / "penstock-launcher"):
        self.tls = tls
        super().__init__([launcher, "--model-id", model, "--port", "0", *options], env)
        try:
            address = self.wait_line(ADDRESS)
        except AssertionError:
            self.stop()
            raise
        self.host, self.port = address.group(1), int(address.group(2))
        self.url = f"{'https' if tls else 'http'}://{self.host}:{self.port}"

    # --- processes

    def children(self):
        """{pid: command line} of the processes that the launcher started."""
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError):
                stat = (entry / "stat").read_text()
                parent = int(stat[stat.rindex(")") + 2:].split()[1])
                if parent == self.popen.pid:
                    command = (entry / "cmdline").read_bytes().split(b"\0")
                    found[int(entry.name)] = [part.decode() for part in command]
        return found

    def pid_of(self, program, rank=None):
        for pid, command in self.children().items():
            if pathlib.Path(command[0]).name != program:
                continue
            text = " ".join(command)
            if rank is None or re.search(rf"--rank[= ]{rank}\b", text):
                return pid
        raise AssertionError(f"no {program} (rank {rank}) among {self.children()}")

    # --- requests

    def connect(self, timeout=120):
        if self.tls:
            return http.client.HTTPSConnection(self.host, self.port, timeout=timeout, context=self.tls)
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def request(self, method, path, body=None, headers=None, timeout=120):
        """(status, headers, body bytes) of one request on its own connection."""
        connection = self.connect(timeout)
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode()
        send = {"Content-Type": "application/json"} if body is not None else {}
        send.update(headers or {})
        try:
            connection.request(method, path, body, send)
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read()
        finally:
            connection.close()

    def json(self, method, path, body=None, expect=200, headers=None):
        status, _, payload = self.request(method, path, body, headers)
        assert status == expect, (status, payload)
        return json.loads(payload)

    def generate(self, inputs, details=True, expect=200, **parameters):
        return self.json("POST", "/generate", {
            "inputs": inputs, "parameters": {"details": details, **parameters}}, expect)

    def stream(self, path, body, timeout=120, headers=None):
        return Stream(self, path, body, timeout, headers)

    def generate_stream(self, inputs, timeout=120, headers=None, **parameters):
        return self.stream("/generate_stream", {"inputs": inputs, "parameters": parameters}, timeout, headers)

    def metrics(self):
        """{name{labels}: value} of /metrics."""
        _, _, text = self.request("GET", "/metrics")
        values = {}
        for line in text.decode().splitlines():
            if line and not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                values[name] = float(value)
        return values

    def wait_metric(self, name, accept, seconds=10):
        """Waits until accept(value) of a metric. Asks repeatedly, with a deadline, because the server
        sends no notice."""
        deadline = time.monotonic() + seconds
        while True:
            value = self.metrics().get(name)
            if value is not None and accept(value):
                return value
            assert time.monotonic() < deadline, f"{name} is {value}:\n{self.output()}"


class Attached(Process):
    """penstock-router alone, on shards that run already; requests as on a Server."""

    connect, request, json = Server.connect, Server.request, Server.json
    generate, stream, generate_stream = Server.generate, Server.stream, Server.generate_stream
    metrics, wait_metric = Server.metrics, Server.wait_metric

    def __init__(self, shards, *options, prefix=()):
        super().__init__([*prefix, BIN / "penstock-router", "--model-id", DEMO_MODEL, "--port", "0",
                          "--shards", shards, *options])

    def wait_ready(self):
        found = self.wait_line(LISTENING, 30)
        self.host, self.port = found.group(1), int(found.group(2))
        return self


def at_once(count, ask, seconds=120):
    """[ask(0), ask(1), ...], started together on threads of their own. Raises the first exception."""
    barrier = threading.Barrier(count)

    def one(i):
        barrier.wait(30)
        return ask(i)

    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count), timeout=seconds))


class Stream:
    """Server-sent events of one request, with the time of arrival of each."""

    def __init__(self, server, path, body, timeout, headers=None):
        self.connection = server.connect(timeout)
        self.connection.request("POST", path, json.dumps(body),
                                {"Content-Type": "application/json", **(headers or {})})
        self.response = self.connection.getresponse()
        self.status = self.response.status
        self.times = []

    def __iter__(self):
        return self

    def __next__(self):
        while True:
            line = self.response.readline()
            if not line:
                raise StopIteration
            if line.startswith(b"data:"):
                self.times.append(time.monotonic())
                return line[5:].strip().decode("utf-8")  # strict: half a character is an error

    def events(self):
        """All remaining events as JSON (text where it is not JSON, such as [DONE])."""
        return [_json_or_text(data) for data in self]

    def close(self):
        """Resets the connection, as a killed client does."""
        with contextlib.suppress(OSError):
            self.connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                            b"\1\0\0\0\0\0\0\0")
        self.response.close()
        self.connection.close()


def _json_or_text(data):
    try:
        return json.loads(data)
    except ValueError:
        return data


def read_step_log(path):
    return [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]


def wake_ups(pids):
    """{(process, thread, its name): times it has waited}, with gRPC's own threads."""
    waits = {}
    for pid in pids:
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            name = (task / "comm").read_text().strip()
            status = (task / "status").read_text()
            times = re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status, re.M).group(1)
            waits[pid, int(task.name), name] = int(times)
    return waits


def most_wake_ups(pids, before):
    """The highest number of waits of a process since `before`, an earlier wake_ups(pids)."""
    return max(sum(times - before.get(thread, 0) for thread, times in wake_ups([pid]).items())
               for pid in pids)


def cpu_seconds(pid):
    """Processor time that a process has used, in seconds."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def is_alive(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_gone(pids, seconds):
    """Pids that still live after `seconds`; waits on pidfds, not in a loop."""
    import select
    deadline = time.monotonic() + seconds
    left = []
    for pid in pids:
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        with contextlib.closing(os.fdopen(fd)):
            ready, _, _ = select.select([fd], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            left.append(pid)
    return left
