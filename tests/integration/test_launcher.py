"""The launcher as its user sees it. Its children are shell scripts that speak the launcher's line
protocol (common/notify.h), so that each test decides how they behave."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess

import pytest
from penstock_testing import BIN, DEMO_MODEL, Process, wait_gone

READY = "echo READY 127.0.0.1:4711 >&$PENSTOCK_NOTIFY_FD"
WAIT = "while :; do sleep 1000 & wait; done"
GOOD = f"trap 'echo got TERM; exit 0' TERM; {READY}; {WAIT}"
DEAF = f"trap '' TERM; {READY}; {WAIT}"


@pytest.fixture
def launch(tmp_path):
    """launch(*options, shard=SCRIPT, router=SCRIPT): a launcher over shell scripts."""
    started = []

    def start(*options, shard=GOOD, router=GOOD, env=None):
        programs = []
        for name, script in (("shard", shard), ("router", router)):
            path = tmp_path / name
            path.write_text(f"#!/bin/sh\necho {name} $*\n{script}\n")
            path.chmod(0o755)
            programs += [f"--{name}-program", path]
        process = Process([BIN / "penstock-launcher", "--model-id", DEMO_MODEL, "--port", "0",
                           "--socket-dir", tmp_path, *programs, *options], env)
        started.append(process)
        return process

    yield start
    for process in started:
        process.popen.kill()
        process.stop()


def run(*options, env=None):
    """(exit code, stdout, stderr) of a launcher that ends by itself."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_")}
    done = subprocess.run([BIN / "penstock-launcher", *options], env={**clean, **(env or {})},
                          capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def wait_ready(process):
    return process.wait_line(r"address: http://127\.0\.0\.1:(\d+)")


def children(process):
    """Pids of the scripts, as they print them."""
    found = {}
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            parent = int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])
            command = open(f"/proc/{pid}/cmdline").read().split("\0")
        except OSError:
            continue
        if parent == process.popen.pid:
            rank = [part for part in command if part.startswith("--rank=")]
            found[rank[0] if rank else "router"] = pid
    return found


def socket_folders(tmp_path):
    return [path for path in tmp_path.iterdir() if path.name.startswith("penstock-")]


# --- options


def test_print_config_says_where_each_value_came_from(tmp_path):
    config = tmp_path / "server.yaml"
    config.write_text("# limits\nmax_best_of: 7\nmax-stop-sequences: 9\nport: 1\n")
    code, out, _ = run("--model-id", "m", "--config", config, "--dtype", "BF16", "--print-config",
                       env={"PENSTOCK_MAX_BEST_OF": "8", "PORT": "80", "HOSTNAME": "pod",
                            "PENSTOCK_PORT": "tcp://10.0.0.1:3000"})
    assert code == 0
    lines = {line.split(" = ")[0]: re.split(" {2,}", line.split(" = ")[1])
             for line in out.splitlines() if line}
    given, rest = out.split("\n\n")
    assert "dtype = bfloat16" in given and "hostname = 127.0.0.1" in rest
    assert lines["dtype"] == ["bfloat16", "command line"]
    assert lines["max-best-of"] == ["8", "environment (PENSTOCK_MAX_BEST_OF)"]
    assert lines["max-stop-sequences"] == ["9", f"config file ({config}:3)"]
    assert lines["port"] == ["1", f"config file ({config}:4)"]
    assert lines["hostname"] == ["127.0.0.1", "default"]
    assert lines["max-total-tokens"] == ["(unset)", "default"]


def test_print_config_shows_that_the_model_is_missing():
    code, out, _ = run("--print-config")
    assert code == 0
    assert out.startswith("model-id = (missing) ")


@pytest.mark.parametrize(("options", "isa", "backend"), [
    ([], "avx2", "cpu/avx2"),
    (["--quantize", "int8"], "avx2", "cpu/avx2/int8"),
    (["--quantize", "int4"], "avx2", "cpu/avx2/int4"),
    (["--quantize", "int4", "--backend", "reference"], "", "none: --quantize int4 needs backend cpu on a CPU"),
    (["--cpu-weights", "compressed", "--quantize", "int4"], "",
     "none: --cpu-weights compressed: must be auto with --quantize int4"),
    (["--cpu-weights", "int16", "--dtype", "bfloat16"], "avx2",
     "none: --cpu-weights int16: must be auto or plain on avx2: int16 needs bfloat16 weights and AVX512_"),
    (["--cpu-weights", "int16", "--dtype", "float32"], "",
     "none: --cpu-weights int16: must be auto or plain for a model in float32: int16 needs"),
    (["--cpu-weights", "int16", "--quantize", "int8"], "",
     "none: --cpu-weights int16: must be auto with --quantize int8"),
    (["--cpu-weights", "compressed", "--dtype", "bfloat16"], "avx2",
     "none: --cpu-weights compressed: must be auto or plain on avx2: compressed needs bfloat16 weights and"),
    (["--cpu-weights", "compressed", "--dtype", "float32"], "",
     "none: --cpu-weights compressed: must be auto or plain for a model in float32: compressed needs"),
    (["--cpu-weights", "compressed", "--backend", "reference"], "",
     "none: --cpu-weights compressed: must be auto with --backend reference: it is for backend cpu"),
    (["--cpu-products", "float", "--dtype", "bfloat16"], "avx2", "cpu/avx2"),  # the former name
    (["--backend", "reference"], "", "reference"),
    (["--dtype", "float16"], "",
     "reference: the cpu backend computes in float32 and bfloat16, not in float16"),
    (["--backend", "cpu", "--dtype", "float16"], "",
     "none: the cpu backend computes in float32 and bfloat16, not in float16"),
    (["--kv-layout", "padded", "--kv-cache-dtype", "int8"], "avx2", "cpu/avx2/kv-int8"),
    (["--kv-layout", "padded", "--kv-cache-dtype", "int8", "--backend", "reference"], "",
     "none: --kv-cache-dtype must be that of the model with backend reference"),
    (["--num-shard", "3"], "", "none: --num-shard 3: must be a divisor of the model's 8 attention"),
])
def test_print_config_says_which_backend_runs_and_why(options, isa, backend):
    code, out, _ = run("--model-id", DEMO_MODEL, *options, "--print-config",
                       env={"PENSTOCK_ISA": isa})
    assert code == 0
    assert out.splitlines()[-1].startswith(f"# backend that runs: {backend}")


# It reads no weights, so it cannot know.
def test_print_config_does_not_claim_that_weights_are_compressed():
    options = ["--model-id", DEMO_MODEL, "--dtype", "bfloat16", "--print-config"]
    _, out, _ = run(*options, env={"PENSTOCK_ISA": "avx512-bf16"})
    line = out.splitlines()[-1]
    if "none: " in line:
        pytest.skip("no such processor")
    assert line.startswith("# backend that runs: cpu/avx512-bf16-compressed, or cpu/avx512-bf16 if "
                           "its weights do not fit that format")


def test_all_mistakes_are_reported_at_once(tmp_path):
    config = tmp_path / "server.yaml"
    config.write_text("max_total_token: 5\n")
    code, out, err = run("--prot", "81", "--num-shard", "0", "--config", config,
                         env={"PENSTOCK_MAX_BEST_OF": "x"})
    assert code == 2 and out == ""
    assert sorted(err.splitlines()) == sorted(f"penstock-launcher: error: {line}" for line in [
        "--prot: unknown option; did you mean --port? --help-all lists the options",
        "--num-shard 0: must be an integer from 1 to 64",
        f"{config}:1: max_total_token: unknown option; did you mean max_total_tokens? "
        "`penstock serve --help-all` lists the keys",
        "PENSTOCK_MAX_BEST_OF=x: must be an integer from 1 to 128"])


@pytest.mark.parametrize(("options", "env", "error"), [
    (["--config", "/nope.yaml"], {}, "--config /nope.yaml: cannot be read: No such file"),
    (["--model-id"], {}, "--model-id: a value is missing"),
    (["--serving-properties", "/nope"], {}, "--serving-properties /nope: cannot be read: No such file"),
    ([], {"PENSTOCK_PROT": "3"}, "PENSTOCK_PROT: unknown variable; did you mean PENSTOCK_PORT?"),
    ([], {}, "--model-id: is required; type `penstock serve FOLDER`"),
])
def test_only_the_first_cause_is_reported(options, env, error):
    code, out, err = run(*options, env=env)
    assert code == 2 and out == ""
    (line,) = err.splitlines()
    assert line.startswith(f"penstock-launcher: error: {error}")


def test_mistakes_in_the_options_are_json_with_json_logs(tmp_path):
    config = tmp_path / "server.yaml"
    config.write_text("log_format: json\n")
    for options in (["--log-format", "json"], ["--json-output"], ["--config", config]):
        code, out, err = run(*options, "--prot", "81", "--num-shard", "0")
        assert code == 2 and out == ""
        records = [json.loads(line) for line in err.splitlines()]
        assert [record["message"] for record in records] == [
            "--prot: unknown option; did you mean --port? --help-all lists the options",
            "--num-shard 0: must be an integer from 1 to 64"]
        assert {(record["level"], record["component"]) for record in records} == {
            ("error", "launcher")}


def test_the_ready_record_is_json_with_json_logs(launch):
    process = launch("--log-format", "json")
    process.wait_line("is ready after")
    process.popen.send_signal(signal.SIGTERM)
    assert process.wait_exit() == 0
    records = [json.loads(line) for line in process.lines]
    (ready,) = [record for record in records if "is ready after" in record["message"]]
    assert ready["address"] == "http://127.0.0.1:4711"
    assert (ready["model"], ready["shards"], ready["replicas"]) == (str(DEMO_MODEL), 1, 1)
    assert all({"timestamp", "level", "component", "message"} <= set(record) for record in records)


def test_help_and_version():
    code, out, _ = run("--version")
    assert code == 0 and re.fullmatch(r"penstock-launcher \d+\.\d+\.\d+\n", out)
    code, common, _ = run("--help")
    assert code == 0 and "--model-id" in common and "--pipeline-depth" not in common
    code, everything, _ = run("--help=all")
    assert code == 0 and "--pipeline-depth" in everything


# --- life and death of the processes


def test_ready_block_then_an_orderly_stop(launch, tmp_path):
    process = launch("--num-shard", "2")
    assert wait_ready(process).group(1) == "4711"
    assert process.wait_line(r"curl http://127\.0\.0\.1:4711/generate .*\"inputs\"")
    assert len(children(process)) == 3
    [folder] = socket_folders(tmp_path)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    process.popen.send_signal(signal.SIGTERM)
    assert process.wait_exit() == 0
    said = [line for line in process.lines if "got TERM" in line]
    assert "router | got TERM" in said[0] and len(said) == 3
    assert not folder.exists()


def test_a_killed_rank_is_named_with_its_last_lines(launch, tmp_path):
    process = launch("--num-shard", "2", "--restart", "never")
    wait_ready(process)
    pid = children(process)["--rank=1"]
    os.kill(pid, signal.SIGKILL)
    assert process.wait_exit() == 6
    assert process.lines[-1] == (f"penstock-launcher: error: shard-1 (rank 1, pid {pid}) "
                                 "was killed by signal 9 (SIGKILL)")
    assert re.search(r"shard-1 \| shard .*--rank=1", process.lines[-2])
    assert socket_folders(tmp_path) == []


def test_no_child_survives_a_killed_launcher_and_the_next_one_cleans_up(launch, tmp_path):
    process = launch("--num-shard", "2", shard=DEAF, router=DEAF)
    wait_ready(process)
    pids = list(children(process).values())
    assert len(pids) == 3
    process.popen.kill()
    assert wait_gone(pids, seconds=2) == []
    [abandoned] = socket_folders(tmp_path)
    process = launch()
    wait_ready(process)
    [folder] = socket_folders(tmp_path)
    assert folder != abandoned


def test_a_second_ctrl_c_stops_at_once(launch):
    process = launch(shard=DEAF, router=DEAF)
    wait_ready(process)
    pids = list(children(process).values())
    process.popen.send_signal(signal.SIGINT)
    process.wait_line("stopping: received SIGINT")
    process.popen.send_signal(signal.SIGINT)  # within 250 ms: taken for the same one
    with pytest.raises(AssertionError, match="still running"):
        process.wait_exit(0.5)
    process.popen.send_signal(signal.SIGINT)
    assert process.wait_exit() == 1
    assert wait_gone(pids, seconds=2) == []


def test_the_cause_of_a_failed_start_is_the_last_line(launch):
    process = launch(shard="echo FAILED num_shard must divide 8 heads >&$PENSTOCK_NOTIFY_FD; exit 3")
    assert process.wait_exit() == 3
    assert process.lines[-1].endswith("exited with status 3: num_shard must divide 8 heads")


def test_an_unsupported_model_is_said_once(tmp_path):
    model = shutil.copytree(DEMO_MODEL, tmp_path / "model")
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "model_type": "martian"}))
    code, _, err = run("--model-id", model, "--port", "0", "--num-shard", "2")
    assert code == 3 and err.count("martian") == 1, err
    assert "Given: \"martian\"" in err.splitlines()[-1]


def test_a_port_of_a_penstock_server_is_named_as_such(demo_server):
    code, _, err = run("--model-id", DEMO_MODEL, "--port", str(demo_server.port))
    assert code == 7, err
    assert err.splitlines()[-1] == (
        f"penstock-launcher: error: --hostname 127.0.0.1 --port {demo_server.port}: in use by a "
        f"Penstock server, which answers on {demo_server.url}; choose another port, such as --port "
        f"{demo_server.port + 1}, or --port 0 for any free one")


def test_a_start_without_progress_ends(launch):
    process = launch("--startup-timeout", "300ms", shard="exec sleep 1000")
    assert process.wait_exit() == 1
    assert "no progress for 0.300 s" in process.lines[-1]
    assert process.lines[-1].endswith("still waiting for shard-0; raise --startup-timeout")


def test_the_log_shows_the_progress_of_loading(launch):
    line = "echo PROGRESS loading 1048576 4194304 bytes >&$PENSTOCK_NOTIFY_FD"
    process = launch(shard=f"{line}; {GOOD}")
    process.wait_line(r"shard-0: loading 1\.0 MiB of 4\.0 MiB \(25 %\)")


def test_json_logs_are_one_object_a_line(tmp_path):
    script = tmp_path / "shard"
    script.write_text("#!/bin/sh\necho 'a \"stray\" line'\nexit 4\n")
    script.chmod(0o755)
    code, _, err = run("--model-id", DEMO_MODEL, "--port", "0", "--json-output",
                       "--shard-program", script)
    assert code == 4
    records = [json.loads(line) for line in err.splitlines()]
    assert any(record["message"] == 'shard-0 | a "stray" line' for record in records)
    assert "exited with status 4" in records[-1]["message"]
    assert all(record["component"] == "launcher" for record in records)
