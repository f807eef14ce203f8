"""text-generation-launcher is replaced by a program of the same name: environment alone starts it, its flags
are honoured or refused by name, and its version output has the fields that dashboards and bug reports
read."""

import json
import re
import signal

import pytest

from penstock_testing import ADDRESS, BIN, DEMO_MODEL, Process, Server

LAUNCHER = BIN / "text-generation-launcher"

# GET /info of text-generation-router 3.3, in its order.
INFO = ["model_id", "model_sha", "model_pipeline_tag", "max_concurrent_requests", "max_best_of",
        "max_stop_sequences", "max_input_tokens", "max_total_tokens", "validation_workers",
        "max_client_batch_size", "router", "version", "sha", "docker_label"]


class Alias(Server):
    """text-generation-launcher with variables alone, over simulated shards by default."""

    def __init__(self, *options, env=None, simulated=True):
        variables = {"MODEL_ID": str(DEMO_MODEL), "PORT": "0", **(env or {})}
        if simulated:
            variables["PENSTOCK_SHARD_PROGRAM"] = str(BIN / "penstock-simshard")
        Process.__init__(self, [LAUNCHER, *options], variables)
        address = self.wait_line(ADDRESS)
        self.host, self.port = address.group(1), int(address.group(2))
        self.url = f"http://{self.host}:{self.port}"


def refused(*options, env=None):
    """(exit code, lines) of a start that must fail."""
    process = Process([LAUNCHER, *options], {"MODEL_ID": str(DEMO_MODEL), "PORT": "0", **(env or {})})
    code = process.wait_exit(30)
    return code, process.lines


def test_variables_alone_start_a_server():
    env = {"HOSTNAME": "127.0.0.1", "MAX_CONCURRENT_REQUESTS": "7", "MAX_BEST_OF": "3",
           "MAX_STOP_SEQUENCES": "5", "MAX_TOTAL_TOKENS": "300", "MAX_INPUT_LENGTH": "200",
           "VALIDATION_WORKERS": "1", "MAX_CLIENT_BATCH_SIZE": "9", "NUM_SHARD": "2",
           "JSON_OUTPUT": "true", "CUDA_GRAPHS": "1,2,4", "TRUST_REMOTE_CODE": "true",
           "API_KEY": "secret:with:colons", "COMPUTE_TYPE": "2-cpu", "PAYLOAD_LIMIT": "5000"}
    with Alias(env=env) as server:
        info = server.json("GET", "/info")
        assert list(info) == INFO
        assert info["max_concurrent_requests"] == 7 and info["max_best_of"] == 3
        assert info["max_total_tokens"] == 300 and info["max_input_tokens"] == 200
        assert info["max_stop_sequences"] == 5 and info["max_client_batch_size"] == 9
        assert info["validation_workers"] == 1 and info["model_id"] == str(DEMO_MODEL)
        body = {"inputs": "hello", "parameters": {"max_new_tokens": 3, "details": True}}
        status, headers, _ = server.request("POST", "/generate", body)
        assert status == 401
        key = {"Authorization": "Bearer secret:with:colons"}
        status, headers, payload = server.request("POST", "/generate", body, key)
        assert status == 200 and json.loads(payload)["details"]["generated_tokens"] == 3
        assert {k.lower(): v for k, v in headers.items()}["x-compute-type"] == "2-cpu"
        too_large = {"inputs": "x" * 6000}
        assert server.request("POST", "/generate", too_large, key)[0] == 413
        # A key on a command line can be read by everybody on the machine.
        commands = server.children()
        assert len(commands) == 3, commands
        assert "secret" not in str(commands)
    assert server.lines[0].startswith("{"), "the warnings of the start are no plain lines"
    logs = [json.loads(line) for line in server.lines if line.startswith("{")]
    assert logs and all("message" in record for record in logs)
    assert any("CUDA_GRAPHS=1,2,4: has no effect" in record["message"] for record in logs)


def test_defaults_are_those_of_the_replaced_program():
    with Alias(env={"HOSTNAME": "5f3a1c0de9ab"}) as server:
        server.wait_said("--hostname 5f3a1c0de9ab: is no address; listening on 0.0.0.0")
        assert server.host == "0.0.0.0"
        info = server.json("GET", "/info")
        assert (info["max_concurrent_requests"], info["max_best_of"], info["max_stop_sequences"],
                info["validation_workers"], info["max_client_batch_size"]) == (128, 2, 4, 2, 4)
        assert server.request("POST", "/generate", {"inputs": "x" * 2_000_100})[0] == 413
        _, headers, _ = server.request("GET", "/info", headers={"Origin": "http://a.example"})
        assert {k.lower(): v for k, v in headers.items()}["access-control-allow-origin"] == "*"


def test_a_real_shard_starts_the_same_way():
    with Alias(env={"HOSTNAME": "127.0.0.1", "DTYPE": "bfloat16"}, simulated=False) as server:
        assert server.generate("Once upon a time", max_new_tokens=4)["details"]["generated_tokens"] == 4


def test_unsupported_options_are_refused_by_name_before_the_start():
    code, lines = refused("--quantize", "gptq", "--rope-factor", "3", env={"ROPE_SCALING": "linear"})
    assert code == 2
    text = "\n".join(lines)
    for name in ("--quantize gptq", "--rope-factor 3", "ROPE_SCALING=linear"):
        assert f"error: {name}: is not offered; " in text, text


@pytest.mark.parametrize("options, said", [
    (["--sharded", "true"], "--sharded true: must come with --num-shard"),
    (["--shard-uds-path", "/tmp/text-generation-server"], "must have mode 0700"),
    (["--disable-custom-kernels", "--backend", "cpu"], "must not come with --backend cpu"),
    (["--tokenizer-config-path", "/nowhere.json"], "--tokenizer-config-path /nowhere.json"),
    (["--max-batch-total-tokens", "1"], "--max-batch-total-tokens 1: must be an integer from 2"),
    (["--max-input-tokens", "9", "--max-input-length", "9"], "by another name"),
    (["--max-best-of", "2", "--max-best-of", "3"],
     "text-generation-launcher: error: the argument '--max-best-of <MAX_BEST_OF>' cannot be used multiple times"),
    (["--max-total-tokens", "100000"], "must be at most 2048, the model's context"),
    (["--api-keys-file", "/nowhere/keys"], "/nowhere/keys"),
    (["--cuda-graphs", "a,b"], "--cuda-graphs a,b: must be a list of integers of at least 0"),
    (["--no-such-flag"], "text-generation-launcher: error: --no-such-flag: unknown option"),
])
def test_refusals_say_what_to_do(options, said):
    code, lines = refused(*options)
    assert code == 2, lines
    assert said in "\n".join(lines), lines
    assert not any("shard" in line and "starting" in line for line in lines), "before any shard is started"


def test_sockets_are_in_the_requested_folder(tmp_path):
    folder = tmp_path / "sockets"
    folder.mkdir(mode=0o700)
    with Alias("--shard-uds-path", folder / "shard", "--sharded", "true", "--num-shard", "2",
               env={"HOSTNAME": "127.0.0.1"}) as server:
        assert sorted(path.name for path in folder.iterdir()) == ["shard-0", "shard-1"]
        assert server.generate("hello", max_new_tokens=2)["details"]["generated_tokens"] == 2


def test_the_chat_template_of_another_file(tmp_path):
    config = tmp_path / "tokenizer_config.json"
    config.write_text(json.dumps({"chat_template": "{{ bos_token }}{% for m in messages %}"
                                                   "<{{ m.content }}>{% endfor %}"}))
    with Alias(env={"HOSTNAME": "127.0.0.1", "TOKENIZER_CONFIG_PATH": str(config)}) as server:
        answer = server.json("POST", "/chat_tokenize", {
            "messages": [{"role": "user", "content": "Hello"}, {"role": "user", "content": "You"}]})
        assert answer["templated_text"].endswith("<Hello><You>")


def test_a_small_batch_bounds_the_length_of_requests():
    with Alias("--max-batch-total-tokens", "48", env={"HOSTNAME": "127.0.0.1"}) as server:
        assert server.json("GET", "/info")["max_total_tokens"] == 48
        assert server.generate("hello", max_new_tokens=20)["details"]["generated_tokens"] == 20


def test_env_describes_the_machine():
    process = Process([LAUNCHER, "--env"], {})
    assert process.wait_exit(30) == 0
    names = [line.partition(":")[0] for line in process.lines if re.match(r"[A-Z][a-z ]+: |[a-z-]+:$", line)]
    assert names[:7] == ["Target", "Cargo version", "Commit sha", "Docker label", "nvidia-smi",
                         "xpu-smi", "hpu-smi"]
    assert "Runtime environment:" in process.output()


def test_version_and_help_name_the_program():
    version = Process([LAUNCHER, "--version"], {})
    assert version.wait_exit(30) == 0
    assert re.fullmatch(r"text-generation-launcher \d+\.\d+\.\d+", version.lines[0])
    shown = Process([LAUNCHER, "--help=all"], {})
    assert shown.wait_exit(30) == 0
    assert "--quantize" in "\n".join(shown.lines)


@pytest.mark.parametrize("program, is_tgi", [("text-generation-router", True), ("penstock-router", False)])
def test_print_schema_prints_what_the_server_would_serve(program, is_tgi):
    printed = Process([BIN / program, "print-schema"], {})
    assert printed.wait_exit(30) == 0
    document = json.loads("\n".join(printed.lines))
    assert {"/generate", "/generate_stream", "/v1/chat/completions", "/tokenize", "/info"} <= set(document["paths"])
    assert "best_of" in json.dumps(document["components"]["schemas"]["GenerateParameters"])
    if is_tgi:
        with Alias(env={"HOSTNAME": "127.0.0.1"}) as server:
            assert server.json("GET", "/api-doc/openapi.json") == document


def test_a_router_takes_the_other_programs_flags(tmp_path):
    folder = tmp_path / "sockets"
    folder.mkdir(mode=0o700)
    shard = Process([BIN / "penstock-simshard", "--model-id", DEMO_MODEL, "--shard-uds-path", folder / "server"])
    try:
        shard.wait_said("listening")
        router = Process([BIN / "text-generation-router", "--tokenizer-name", DEMO_MODEL,
                          "--master-shard-uds-path", folder / "server-0", "--port", "0",
                          "--max-waiting-tokens", "2", "--revision", "v2"], {})
        match = router.wait_line(r"listening on 0\.0\.0\.0:(\d+)")
        assert int(match.group(1)) > 0
        assert "--max-waiting-tokens has no effect without --prefill whole" in router.output()
        assert "--revision v2 has no effect: the model is the local folder" in router.output()
        assert "waiting-served-ratio" not in router.output(), "a default is not an option that the user set"
        router.popen.send_signal(signal.SIGTERM)
        assert router.wait_exit(30) == 0
    finally:
        shard.stop()


def test_a_router_finds_its_restarted_shard_again(tmp_path):
    folder = tmp_path / "sockets"
    folder.mkdir(mode=0o700)
    command = [BIN / "penstock-simshard", "--model-id", DEMO_MODEL, "--shard-uds-path", folder / "server"]
    shard = Process(command)
    router = None
    try:
        shard.wait_said("listening")
        router = Process([BIN / "text-generation-router", "--tokenizer-name", DEMO_MODEL,
                          "--master-shard-uds-path", folder / "server-0", "--port", "0"], {})
        router.wait_line(r"listening on 0\.0\.0\.0:(\d+)")
        shard.popen.send_signal(signal.SIGKILL)
        router.wait_line("shard-0 was lost")
        shard = Process(command)
        shard.wait_said("listening")
        router.wait_line("has joined")
        router.popen.send_signal(signal.SIGTERM)
        assert router.wait_exit(30) == 0
    finally:
        shard.stop()
        if router is not None:
            router.stop()


def test_a_router_without_sockets_names_the_other_programs_flag():
    router = Process([BIN / "text-generation-router", "--tokenizer-name", DEMO_MODEL], {})
    assert router.wait_exit(30) == 2
    assert "--master-shard-uds-path: must be given. " in router.output()
