"""The programs around the server: what they print when asked for help, and when something is wrong."""

import contextlib
import http.server
import json
import os
import pty
import re
import subprocess
import threading

import pytest
from penstock_testing import BIN

# The examples of the documents have no options but --help. Programs for GPUs do not start without
# CUDA's libraries; penstock-shard-cuda has the options of penstock-shard.
PROGRAMS = sorted(path.name for path in BIN.iterdir()
                  if os.access(path, os.X_OK) and path.is_file()
                  and not path.name.startswith(("example_", "penstock-gpu-"))
                  and path.name != "penstock-shard-cuda")


def run(program, *options, text=None):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_")}
    return subprocess.run([BIN / program, *map(str, options)], input=text, env=clean,
                          capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_program_has_a_help_text(program):
    done = run(program, "--help", text="")
    assert done.returncode == 0, done.stderr
    assert re.match(r"[Uu]sage: ", done.stdout)
    assert done.stderr == ""
    assert max(map(len, done.stdout.splitlines())) <= 100


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_program_refuses_an_unknown_option(program):
    done = run(program, "--nope", text="")
    assert done.returncode == 2 and done.stdout == ""
    assert re.match(r"(\S+: )?error: (\"--nope\": no such command|--nope: unknown option)",
                    done.stderr), done.stderr


@pytest.mark.parametrize("program", ["example_generate_v3", "example_native_v1"])
def test_an_example_prints_its_usage(program):
    done = run(program, "--help", text="")
    assert done.returncode == 0 and done.stdout.startswith("Usage: ") and done.stderr == ""
    done = run(program, text="")
    assert done.returncode == 2 and done.stderr.startswith("Usage: ") and done.stdout == ""


@pytest.mark.parametrize("program", ["example_generate_v3", "example_native_v1"])
def test_an_example_says_that_no_shard_is_there(program, tmp_path):
    done = run(program, tmp_path / "none", "1", "1", text="")
    assert done.returncode == 1 and re.match(rf"no shard .*{tmp_path}/none", done.stderr)


@pytest.mark.parametrize("words, said", [
    (["penstock_sim_sweep", "--seeds", "many"], "--seeds many: must be an integer from 1"),
    (["penstock_sim_sweep", "--first"], "each option has one value"),
    (["penstock_sim_sweep", "--first", "1", "2"], "each option has one value"),
    (["penstock_sim_sweep", "--first", str(2**64 - 1), "--seeds", "3"], "no room for 3 seeds after it"),
    (["penstock_sim_outputs", "1", "1e3"], "COUNT 1e3: must be an integer from 1"),
    (["penstock_transcripts", "hermes", "0", "1"], "COUNT 0: must be an integer from 1"),
    (["penstock-cpu-bench", "all"], "THREADS all: must be an integer from 1"),
    (["router-load", "127.0.0.1", "70000", "1", "1", "1", "plain"], "PORT 70000: must be an integer from 1 to 65535"),
])
def test_an_argument_that_is_no_number_is_named(words, said):
    done = run(*words, text="")
    assert done.returncode == 2 and said in done.stderr and done.stdout == ""


@pytest.mark.parametrize("command", ["run", "lengths", "trace", "search", "what-if"])
def test_every_command_of_replay_has_a_help_text(command):
    done = run("penstock-replay", command, "--help")
    assert done.returncode == 0 and done.stdout.startswith(f"Usage: penstock-replay {command}")


@pytest.mark.parametrize("words", [
    ["run"], ["run", "absent"], ["run", "."], ["run", "absent", "--outputs", "absent/out"],
    ["trace"], ["trace", "absent"], ["trace", "uniform", "--requests", "2", "--csv", "absent/out"],
    ["search", "uniform", "--min-rate", "5", "--max-rate", "1"], ["search", "absent"],
    ["what-if"], ["what-if", "absent"], ["wait"],
])
def test_replay_ends_with_2_where_nothing_can_be_run(words, tmp_path):
    done = subprocess.run([BIN / "penstock-replay", *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and "error: " in done.stderr, done.stderr


@pytest.mark.parametrize("text", ["hi\n", "", "{}", "[{}]", '[{"title": 1}]'])
def test_chart_refuses_what_is_no_chart(text):
    done = run("penstock-chart", text=text)
    assert done.returncode == 2 and done.stdout == ""
    said = done.stderr.splitlines()[0]
    assert said.startswith("penstock-chart: error: standard input ") and "boost" not in said


def test_bench_finds_the_name_of_the_model(simulated):
    server = simulated("--served-model-name", "mine")
    done = run("penstock-bench", "--url", server.url, "--api", "openai-chat", "--requests", "4",
               "--max-new-tokens", "4")
    assert done.returncode == 0, done.stdout
    assert done.stderr == "", "no progress bar without a terminal"
    report = json.loads(done.stdout)
    assert report["requests"] == 4 and report["failures"] == 0
    assert not re.search(r"[0-9][eE][-+]?[0-9]", done.stdout), "numbers have no exponent"


def test_bench_prints_a_table_beside_a_file_and_on_a_terminal(simulated, tmp_path):
    server = simulated()
    options = ["--url", server.url, "--requests", "4", "--max-new-tokens", "4"]
    done = run("penstock-bench", *options, "--output", tmp_path / "report.json")
    assert done.returncode == 0
    assert json.loads((tmp_path / "report.json").read_text())["requests"] == 4
    assert re.search(r"^time to first token( +[\d.]+){5}$", done.stdout, re.MULTILINE)
    code, shown = on_terminal([BIN / "penstock-bench", *options])
    assert code == 0 and "4/4" in shown and "time to first token" in shown


def on_terminal(command):
    """(exit code, output) of a command whose standard output and error are a terminal."""
    main, side = pty.openpty()
    process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=side,
                               stderr=side)
    os.close(side)
    shown = b""
    with contextlib.suppress(OSError):  # EIO: the other side is closed
        while piece := os.read(main, 4096):
            shown += piece
    os.close(main)
    return process.wait(60), shown.decode()


@pytest.mark.parametrize("options", [[], ["--api", "openai-chat"]])
def test_bench_without_a_server_prints_one_error(options):
    done = run("penstock-bench", "--url", "http://127.0.0.1:1", *options)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr == ("penstock-bench: error: http://127.0.0.1:1: Connection refused; is a "
                           "server running there? --url names another\n")


@pytest.mark.parametrize("options", [[], ["--api", "openai-chat"]])
def test_bench_with_a_wrong_key_prints_one_error(simulated, options):
    server = simulated("--api-key", "right")
    done = run("penstock-bench", "--url", server.url, "--requests", "3", "--api-key", "wrong", *options)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("penstock-bench: error: the server refuses the API key")
    assert done.stderr.count("\n") == 1 and "--api-key" in done.stderr


def test_bench_names_an_unknown_preset():
    for options in (["--preset", "foo"], ["--requests", "4", "--preset=foo"]):
        done = run("penstock-bench", *options)
        assert done.returncode == 2
        assert "--preset foo: must be awscurl; the presets recorded, readme and head" in done.stderr
    assert "penstock-bench --preset awscurl" in run("penstock-bench", "--preset=awscurl", "-h").stdout


@contextlib.contextmanager
def bad_gateway(body):
    """The URL of a server that answers every request with 502."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(502)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_DELETE = do_POST

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(("body", "said"), [
    (b"", "status 502 without a body"), (b"upstream is gone", "status 502: upstream is gone")])
def test_an_answer_that_is_no_success_is_named_by_its_status(body, said):
    with bad_gateway(body) as url:
        done = run("penstock-bench", "effective", "--url", url, "--prompt", "hi")
        assert done.returncode == 1 and done.stdout == ""
        assert f"penstock-bench effective: error: POST /inference: {said}" in done.stderr
        done = run("penstock-bench", "--url", url, "--requests", "1")
        assert done.returncode == 1 and json.loads(done.stdout)["first_error"] == said
        done = run("penstock-bench", "--url", url, "--api", "openai-chat", "--requests", "1")
        assert done.returncode == 1
        assert "GET /v1/models: status 502: it names no model; give --model" in done.stderr


def test_effective_says_what_it_waits_for(simulated, tmp_path):
    server = simulated("--batching", "dynamic")
    options = ["effective", "--url", server.url, "--numsamples", "10", "--rate", "200"]
    done = run("penstock-bench", *options)
    assert done.returncode == 0
    assert re.match(r"10 requests to 127\.0\.0\.1:\d+; the last is sent after [\d.]+ s\n", done.stderr)
    code, shown = on_terminal([BIN / "penstock-bench", *options])
    assert code == 0 and "10/10" in shown
