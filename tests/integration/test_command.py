"""`penstock` as its user sees it: serve, chat, fit, models and what it prints of itself."""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess

import pytest
from penstock_testing import BIN, DEMO_MODEL, Process

PENSTOCK = BIN / "penstock"
COMMIT = "a" * 40


def run(*arguments, text="", env=None, cwd=None):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_")}
    return subprocess.run([PENSTOCK, *map(str, arguments)], input=text, capture_output=True,
                          text=True, env={**clean, **(env or {})}, cwd=cwd, timeout=120)


def test_replay_takes_every_command_of_its_program():
    shown = run("replay", "--help").stdout
    commands = re.findall(r"^  ([a-z-]+) (?:LOG|FILE)", shown, re.MULTILINE)
    assert "run" in commands and len(commands) >= 5, shown
    for command in commands:
        done = run("replay", command, "--help")
        assert done.returncode == 0 and done.stdout.startswith(f"Usage: penstock replay {command} "), done.stdout


def test_an_unknown_command_names_the_nearest():
    done = run("serv")
    assert done.returncode == 2 and "did you mean `penstock serve`?" in done.stderr


def test_it_prints_its_version_and_help():
    assert re.fullmatch(r"penstock \d+\.\d+\.\d+\n", run("--version").stdout)
    assert run("help").stdout == run("--help").stdout
    for name in ("serve", "chat", "fit", "doctor", "models", "bench"):
        done = run(name, "--help")
        assert done.returncode == 0 and "sage: " in done.stdout, name + done.stderr


def test_the_completion_for_bash_is_a_script_that_completes():
    script = run("completion", "bash").stdout + """
COMP_WORDS=(penstock doc); COMP_CWORD=1; _penstock; echo "${COMPREPLY[@]}"
COMP_WORDS=(penstock serve --kv-cache-m); COMP_CWORD=2; _penstock; echo "${COMPREPLY[@]}"
"""
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout == "doctor\n--kv-cache-memory\n", done.stderr


def test_a_server_of_the_working_folder_has_its_name(tmp_path):
    model = shutil.copytree(DEMO_MODEL, tmp_path / "story")
    process = Process([PENSTOCK, "serve", ".", "--port", "0", "--shard-program",
                       BIN / "penstock-simshard"], cwd=model)
    try:
        assert process.wait_line(r"model: +(.+), 1 shard").group(1) == "story"
    finally:
        process.stop()
    assert run("fit", ".", cwd=model).stdout.startswith("story: llama")


def test_fit_and_doctor_take_the_demo_model():
    assert run("fit", "--demo").stdout.startswith("demo: llama, ")
    assert "runs on" in run("doctor", "--demo", "--port", "0").stdout


@pytest.mark.parametrize(("words", "said"), [
    (["serve", "--prot", "1"], "--prot: unknown option; did you mean --port? --help-all lists"),
    (["fit", "--memroy", "1GiB"], "--memroy: unknown option; did you mean --memory? --help-all lists"),
    (["doctor", "--ulr", "x"], "--ulr: unknown option; did you mean --url? --help-all lists"),
    (["chat", "--modle", "x"], "--modle: unknown option; did you mean --model? --help lists"),
    (["models", "--chache", "x"], "--chache: unknown option; did you mean --cache? --help lists"),
    (["bench", "--ulr", "x"], "--ulr: unknown option; did you mean --url? --help lists"),
    (["replay", "run", "--bogus"], "--help"),
    (["man", "--bogus"], "man takes no arguments"),
    (["completion", "bash", "--bogus"], "must be bash, zsh or fish"),
    (["help", "serv"], "did you mean `penstock serve`?"),
])
def test_an_unknown_option_names_the_nearest_and_the_help(words, said):
    done = run(*words)
    assert done.returncode in (1, 2) and said in done.stdout + done.stderr, done.stderr


def test_serve_without_a_model_says_what_to_type():
    done = run("serve")
    assert done.returncode == 2 and "`penstock serve --demo`" in done.stderr
    assert done.stderr.startswith("penstock serve: error: ")


@pytest.mark.parametrize("words", [("serve",), ("bench",), ("replay",), ("replay", "run"),
                                   ("replay", "trace")], ids=" ".join)
def test_a_program_calls_itself_as_it_was_started(words):
    shown = "penstock " + " ".join(words)
    assert run(*words, "--help").stdout.startswith(f"Usage: {shown} ")
    failed = run(*words, "--bogus")
    assert failed.returncode == 2 and failed.stderr.startswith(f"{shown}: error: ")


@pytest.mark.parametrize("files, said", [
    ({"tiny.gguf": "GGUF"}, "its format is GGUF (tiny.gguf)"),
    ({"one/config.json": "{}", "two/config.json": "{}"},
     "give one of the model folders in it: {}/one, {}/two"),
    ({}, "config.json cannot be read"),
])
def test_what_fit_and_serve_cannot_take_is_named_with_the_option(files, said, tmp_path):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    for command in (["fit", tmp_path], ["serve", tmp_path, "--port", "0"]):
        done = run(*command)
        assert done.returncode == 3
        assert f"error: --model-id {tmp_path}: " in done.stderr and said.replace("{}", str(tmp_path)) in done.stderr


def test_fit_reads_no_weights(tmp_path):
    model = shutil.copytree(DEMO_MODEL, tmp_path / "model")
    done = run("fit", model)
    assert done.returncode == 0, done.stderr
    assert "K/V per token" in done.stdout and "With --kv-cache-memory" in done.stdout
    small = run("fit", model, "--memory", "1MiB")
    assert small.returncode == 4 and "It does not fit" in small.stdout


def test_models_lists_the_cache(tmp_path):
    folder = tmp_path / "models--org--demo"
    shutil.copytree(DEMO_MODEL, folder / "snapshots" / COMMIT)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(COMMIT)
    [row] = json.loads(run("models", "--cache", tmp_path, "--json").stdout)
    assert row["model"] == "org/demo" and row["supported"] and row["fits"]
    assert run("models", "--cache", tmp_path).stdout.startswith("org/demo ")


def test_serve_demo_serves_the_demo_model():
    process = Process([PENSTOCK, "serve", "--demo", "--port", "0"])
    try:
        address = process.wait_line(r"address: (http://\S+)").group(1)
        done = run("chat", "--url", address, text="Hello!\n")
        assert done.returncode == 0 and done.stdout.strip(), done.stderr
    finally:
        process.stop()


def test_chat_over_a_pipe_gives_the_answers_alone(demo_server, tmp_path):
    saved = tmp_path / "chat.txt"
    done = run("chat", "--url", demo_server.url + "/v1", "--system", "Be brief.",
               text=f"Hello!\nAgain.\n/stats\n/save {saved}\n/quit\n")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert "> " not in done.stdout and "\033" not in done.stdout
    # An answer that comes in one piece has no rate.
    assert re.search(r"\d+ tokens,( \d+\.\d tokens/s,)? first after \d+\.\d\d s; "
                     r"prompt \d+ tokens, \d+ of them cached", done.stdout)
    turns = re.findall(r"^(system|user|assistant): ", saved.read_text(), re.MULTILINE)
    assert turns == ["system", "user", "assistant", "user", "assistant"]


def test_chat_says_why_a_request_is_refused(demo_server):
    done = run("chat", "--url", demo_server.url, "--model", "absent", text="Hello!\n")
    assert done.returncode == 1 and "status 404" in done.stderr and "absent" in done.stderr


def test_chat_with_a_model_without_a_template_says_what_to_do(simulated, tmp_path):
    model = shutil.copytree(DEMO_MODEL, tmp_path / "base")
    for path in model.glob("chat_template*"):
        path.unlink()
    config = json.loads((model / "tokenizer_config.json").read_text())
    config.pop("chat_template", None)
    (model / "tokenizer_config.json").write_text(json.dumps(config))
    done = run("chat", "--url", simulated(model=model).url, text="Hello!\n")
    assert done.returncode == 1 and "the model has no chat template" in done.stderr


def test_control_c_stops_the_answer_and_not_the_chat(simulated):
    # Slow tokens (0.2 s each), so that the signal comes before the answer ends.
    server = simulated("--step-time", "200ms")
    main, terminal = pty.openpty()

    def own_terminal():
        os.setsid()
        fcntl.ioctl(0, 0x540E, 0)  # TIOCSCTTY

    clean = {k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_")}
    chat = subprocess.Popen([PENSTOCK, "chat", "--url", server.url], stdin=terminal,
                            stdout=subprocess.PIPE, bufsize=0, env=clean, preexec_fn=own_terminal)
    try:
        text = bytearray()

        def read_one():
            assert select.select([chat.stdout], [], [], 60)[0], f"no more output after {text}"
            byte = chat.stdout.read(1)
            assert byte, f"ended after {text}"
            text.extend(byte)

        def read_until(wanted):
            text.clear()
            while not text.endswith(wanted):
                read_one()
            return bytes(text)

        read_until(b"> ")
        os.write(main, b"Hello!\n")
        read_one()
        chat.send_signal(signal.SIGINT)
        read_until(b"> ")
        os.write(main, b"/stats\n")
        assert b" tokens, first after " in read_until(b"> ")
        chat.send_signal(signal.SIGINT)
        read_until(b"> ")
        os.write(main, b"/quit\n")
        assert chat.wait(30) == 0
    finally:
        chat.kill()
        chat.wait()
        os.close(main)
        os.close(terminal)
