"""Listeners, socket folder, idle cost."""

import pathlib
import re
import shutil
import stat
import subprocess

import pytest
from penstock_testing import BIN, Server, cpu_seconds, most_wake_ups, wake_ups


def listeners(pids):
    if shutil.which("ss") is None:
        pytest.skip("ss (iproute2) is not installed")
    output = subprocess.run(["ss", "-H", "-ltnp"], capture_output=True, text=True, check=True)
    return [line.split()[3] for line in output.stdout.splitlines()
            if any(f"pid={pid}," in line for pid in pids)]


def socket_folder(server):
    for command in server.children().values():
        match = re.search(r"--shard-uds-path[= ](\S+)", " ".join(command))
        if match:
            return pathlib.Path(match.group(1)).parent
    raise AssertionError(server.children())


def test_one_listener_on_loopback_and_private_sockets_that_go_away():
    with Server("--num-shard", "2") as server:
        found = listeners([server.popen.pid, *server.children()])
        assert found == [f"127.0.0.1:{server.port}"]
        folder = socket_folder(server)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert len([p for p in folder.iterdir() if p.is_socket()]) == 2
        assert server.stop() == 0
    assert not folder.exists()


@pytest.mark.parametrize("program", ["penstock-router", "penstock-launcher", "penstock-shard"])
def test_programs_link_libraries_of_the_system_alone(program):
    output = subprocess.run(["ldd", BIN / program], capture_output=True, text=True, check=True)
    paths = [line.split(" => ")[1].split(" ")[0] for line in output.stdout.splitlines() if " => " in line]
    assert paths and all(path.startswith(("/lib/", "/usr/lib/")) for path in paths), paths


def test_an_idle_server_hardly_wakes(demo_server):
    demo_server.generate("Once upon a time", max_new_tokens=20)
    pids = [demo_server.popen.pid, *demo_server.children()]
    # The measurement is a span of idle time: a wait on a socket that stays silent.
    connection = demo_server.connect()
    connection.connect()
    connection.sock.settimeout(1)
    with pytest.raises(TimeoutError):
        connection.sock.recv(1)  # what the request and the connection began is over
    before = wake_ups(pids)
    cpu = {pid: cpu_seconds(pid) for pid in pids}
    connection.sock.settimeout(10)
    with pytest.raises(TimeoutError):
        connection.sock.recv(1)
    assert most_wake_ups(pids, before) <= 10 * 8, "eight times a second"
    assert all(cpu_seconds(pid) - cpu[pid] < 10 * 0.01 for pid in pids), "1 % of a core"
