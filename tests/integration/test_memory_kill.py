"""The kernel kills a shard for its memory: the launcher says so, with the shard's memory plan.

The processes run in a control group of their own with a limit. The test skips where it may not
make one.
"""

import contextlib
import pathlib
import re
import subprocess
import sys

import pytest

from penstock_testing import BIN, DEMO_MODEL, Process

LIMIT = 1 << 30
CGROUPS = pathlib.Path("/sys/fs/cgroup")
# Joins the group of $0, then runs the arguments.
JOIN = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
# Takes memory in small parts while the process in argv[1] runs, at most the limit in argv[2].
TAKE = """
import os, sys
parts = []
while len(parts) < int(sys.argv[2]) >> 20:
    parts.append(b"x" * (1 << 20))
    with open(f"/proc/{sys.argv[1]}/stat") as file:
        if file.read().rpartition(")")[2].split()[0] == "Z":
            break
"""


def parent_group():
    """(folder, name of its limit) of the control group of this process that bounds memory."""
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return CGROUPS / "memory" / path.lstrip("/"), "memory.limit_in_bytes"
        if not controllers and (CGROUPS / "cgroup.controllers").exists():
            return CGROUPS / path.lstrip("/"), "memory.max"
    pytest.skip("this process is in no control group that bounds memory")


@pytest.fixture
def limited_group():
    """(folder, file of the limit) of a new control group that holds at most LIMIT bytes."""
    parent, limit = parent_group()
    group = parent / "penstock-test"
    try:
        if limit == "memory.max":
            (parent / "cgroup.subtree_control").write_text("+memory")
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group may be made here: {error}")
    try:
        (group / limit).write_text(str(LIMIT))
        with contextlib.suppress(OSError):  # absent without swap accounting
            (group / "memory.swap.max").write_text("0")
        yield group, group / limit
    finally:
        group.rmdir()


def test_a_shard_that_the_kernel_killed_for_memory_is_named_with_its_plan(limited_group):
    group, limit_file = limited_group
    process = Process(["/bin/sh", "-c", JOIN, group, BIN / "penstock-launcher", "--model-id",
                       DEMO_MODEL, "--port", "0", "--restart", "never"])
    try:
        process.wait_line("is ready after")
        [started] = [line for line in process.lines if "memory plan of rank 0" in line]
        assert f"free (limit: {limit_file})" in started
        [shard] = [int(pid) for pid in (group / "cgroup.procs").read_text().split()
                   if pathlib.Path(f"/proc/{pid}/exe").resolve().name == "penstock-shard"]
        # The kernel chooses this process first.
        pathlib.Path(f"/proc/{shard}/oom_score_adj").write_text("1000")
        subprocess.run(["/bin/sh", "-c", JOIN, group, sys.executable, "-c", TAKE, str(shard),
                        str(LIMIT)], timeout=60, capture_output=True)
        assert process.wait_exit() == 4, process.output()
    finally:
        process.stop()
    assert re.search(rf"error: shard-0 \(rank 0, pid {shard}\) was killed by signal 9 \(SIGKILL\) "
                     r"by the kernel: out of memory \(memory plan of rank 0: weights .*"
                     rf"\(limit: {limit_file}\)\)$", process.lines[-1])
