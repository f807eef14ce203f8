"""Router and shard take no more memory than they say at start; tests/bench/soak.py is the router's long form."""

import json
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))

from penstock_testing import BIN, DEMO_MODEL, Process, Server
from soak import resident, soak  # noqa: E402


def test_the_memory_bound_holds_under_short_load():
    report = soak(2, 16, 8, payload=1 << 17)
    assert report["healthy"] and report["within_bound"], report
    assert report["sent"]["large"] > 0 and report["sent"]["crowd"]["events"] > 0
    # A bound far above the use would prove nothing, so the load must use a part of it.
    assert report["peak_mib"] > report["start_mib"], report


def test_the_bound_is_compared_with_the_limit_of_the_process():
    process = Process(["/bin/sh", "-c", 'ulimit -v 3000000; exec "$@"', "sh", BIN / "penstock-launcher", "--model-id",
                       DEMO_MODEL, "--port", "0", "--kv-cache-memory", "16MiB"])
    try:
        process.wait_line("is ready after")
        said = "\n".join(process.lines)
    finally:
        process.stop()
    assert "The process may take 2.9 GiB (limit: ulimit -v)." in said
    assert re.search(r"warning router: memory of the router: the bound of [4-8]\.\d GiB is above the 2\.9 GiB "
                     r"that the process may take \(limit: ulimit -v\): lower --payload-limit, "
                     r"which sets 4\.0 GiB of it", said)


def most_memory_of_a_shard(folder):
    with Server("--kv-cache-memory", "1MiB", model=folder) as server:
        pids = [pid for pid, command in server.children().items() if command[0].endswith("penstock-shard")]
        return resident(pids[0], "VmHWM")


def test_a_small_cache_bounds_what_the_warm_up_takes(tmp_path):
    """The warm-up tries no sequence that the cache cannot hold."""
    folder = tmp_path / "model"
    shutil.copytree(DEMO_MODEL, folder)
    usual = most_memory_of_a_shard(folder)
    config = json.loads((folder / "config.json").read_text())
    config["max_position_embeddings"] = 65536
    (folder / "config.json").write_text(json.dumps(config))
    # The table of positions grows; K and V of 65,536 tokens would take 100 MiB more.
    assert most_memory_of_a_shard(folder) < usual + (50 << 20)
