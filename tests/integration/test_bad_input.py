"""Bad input gets one line that names field, value and limit, and the server continues."""

import json
import shutil
import socket
import struct
import time

import pytest
from penstock_testing import BIN, DEMO_MODEL, Process, Server


def copy_model(tmp_path):
    return shutil.copytree(DEMO_MODEL, tmp_path / "model")


def edit_config(model, **changes):
    path = model / "config.json"
    config = json.loads(path.read_text())
    config.update(changes)
    path.write_text(json.dumps(config))


def refuse(*options, model, code=None, env=None):
    """The last line of a launcher that must not come up, and ends with this code if one is given."""
    process = Process([BIN / "penstock-launcher", "--model-id", model, "--port", "0", *options], env)
    ended = process.wait_exit(60)
    assert ended != 0 and code in (None, ended), process.output()
    return process.lines[-1]


def test_missing_model_folder(tmp_path):
    assert str(tmp_path / "nowhere") in refuse(model=tmp_path / "nowhere")


def test_broken_config(tmp_path):
    model = copy_model(tmp_path)
    (model / "config.json").write_text("{")
    assert "config.json" in refuse(model=model)


def test_unsupported_architecture(tmp_path):
    model = copy_model(tmp_path)
    edit_config(model, model_type="mamba", architectures=["MambaForCausalLM"])
    line = refuse(model=model)
    assert "model_type" in line and "mamba" in line


def test_truncated_weights(tmp_path):
    model = copy_model(tmp_path)
    weights = model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    line = refuse(model=model)
    assert "model.safetensors" in line


def test_hostile_weights_header(tmp_path):
    model = copy_model(tmp_path)
    (model / "model.safetensors").write_bytes(struct.pack("<Q", 1 << 60) + b"{}")
    assert "model.safetensors" in refuse(model=model)


def gguf_folder(model):
    (model / "model.safetensors").unlink()
    (model / "tiny.gguf").write_bytes(b"GGUF")


@pytest.mark.parametrize("spoil, words", [
    (lambda model: edit_config(model, model_type="lama"),
     ["config.json: `model_type` must be one of ", "; the nearest is llama. Given: \"lama\""]),
    (lambda model: edit_config(model, num_hidden_layers=4096),
     ["tensor model.layers.", ".input_layernorm.weight is missing; config.json asks for ["]),
    (lambda model: edit_config(model, quantization_config={"quant_method": "quip"}),
     ["quantization_config", "quip"]),
    (lambda model: (model / "config.json").write_text('{"model_type": "llama", "rms_norm_eps": NaN}'),
     ["config.json", "NaN"]),
    (gguf_folder, ["its format is GGUF (tiny.gguf), which is not read"]),
])
def test_two_ranks_refuse_a_bad_folder_in_one_line(tmp_path, spoil, words):
    model = copy_model(tmp_path)
    spoil(model)
    started = time.monotonic()
    line = refuse("--num-shard", "2", model=model, code=3)
    print(f"refused after {time.monotonic() - started:.2f} s: {line}")
    assert all(word in line for word in words), line


def test_world_size_that_does_not_divide():
    line = refuse("--num-shard", "3", model=DEMO_MODEL, code=2)
    assert "--num-shard 3: must be a divisor of the model's 8 attention heads: 1, 2, 4 or 8" in line


def test_prompts_longer_than_the_context_are_refused_before_anything_starts():
    process = Process([BIN / "penstock-launcher", "--model-id", DEMO_MODEL, "--port", "0",
                       "--max-input-tokens", "3000"])
    assert process.wait_exit() == 2
    assert ": must be below 2048, the model's context" in process.lines[-1]
    assert "shard" not in process.output()


def test_a_cache_too_small_for_a_block_exits_with_the_memory_code():
    line = refuse("--kv-cache-memory", "1KiB", model=DEMO_MODEL, code=4)
    assert "shard-0 " in line and "for a rank; must be at least one block" in line
    line = refuse("--num-replicas", "2", "--kv-cache-memory", "1KiB", model=DEMO_MODEL, code=2)
    assert "--kv-cache-memory 1KiB: divided among 2 ranks" in line


@pytest.mark.parametrize("name, words", [
    ("PENSTOCK_ISA", "PENSTOCK_ISA=/nope: must be avx2"),
    ("PENSTOCK_TORCH_DIR", "PENSTOCK_TORCH_DIR=/nope: must be the folder of the torch 2.11 package"),
])
def test_a_wrong_variable_is_named_and_is_a_wrong_option(name, words):
    assert words in refuse(model=DEMO_MODEL, code=2, env={name: "/nope"})


@pytest.mark.parametrize("option", ["--step-log", "--record"])
def test_files_that_cannot_be_written_are_refused_before_shards_load(option):
    process = Process([BIN / "penstock-launcher", "--model-id", DEMO_MODEL, "--port", "0", option, "/nope/file"])
    assert process.wait_exit() == 2
    assert process.lines[-1].endswith(f"{option} /nope/file: must be a writable file: No such file or directory")
    assert "shard-0" not in process.output()


@pytest.mark.parametrize("limit", [60000, 300000])
def test_a_limit_of_memory_that_is_too_low_is_named(limit):
    process = Process(["/bin/sh", "-c", f'ulimit -v {limit}; exec "$@"', "sh",
                       BIN / "penstock-launcher", "--model-id", DEMO_MODEL, "--port", "0"])
    assert process.wait_exit(60) == 4, process.output()
    assert f"(SIGABRT): `ulimit -v {limit}` (KiB) leaves too little memory" in process.lines[-1]


def test_busy_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        line = refuse("--port", str(port), model=DEMO_MODEL)
        assert f"127.0.0.1:{port}" in line or str(port) in line


def test_device_cuda_is_refused_with_a_reason():
    line = refuse("--device", "cuda", model=DEMO_MODEL)
    assert "make cuda" in line or "GPU" in line, line


def test_unknown_option_suggests_the_nearest():
    process = Process([BIN / "penstock-launcher", "--model-idd", "x"])
    assert process.wait_exit() == 2
    assert "--model-id" in process.output()


@pytest.fixture(scope="module")
def server():
    with Server("--max-input-tokens", "64", "--max-total-tokens", "128") as running:
        yield running
        # Whatever the tests sent, it still serves.
        assert running.generate("Once", max_new_tokens=2)["details"]["generated_tokens"] == 2


def post(server, path, body, expect):
    status, _, payload = server.request("POST", path, body)
    assert status == expect, payload
    return payload.decode()


@pytest.mark.parametrize("path, body, status, words", [
    ("/generate", {"inputs": "word " * 90}, 422, ["64"]),
    ("/generate", {"inputs": "word " * 200}, 422, ["128", "204"]),
    ("/generate", {"inputs": "x", "parameters": {"max_new_tokens": 500}}, 422, ["128", "500"]),
    ("/generate", {"inputs": "x", "parameters": {"temperature": 0}}, 422, ["temperature"]),
    ("/generate", {"inputs": "x", "parameters": {"top_p": 1.5}}, 422, ["top_p"]),
    ("/generate", {"inputs": ""}, 422, ["inputs"]),
    ("/generate", {"inputs": 5}, 422, ["inputs"]),
    ("/generate", '{"inputs": ', 400, []),
    ("/generate", "", 400, []),
    # TGI's streams carry errors as events of an answer with status 200.
    ("/generate_stream", {"inputs": "x", "parameters": {"best_of": 2}}, 200, ["error", "best_of"]),
    ("/v1/chat/completions", {"messages": "hello"}, 400, ["messages"]),
    ("/v1/chat/completions", {"model": "tgi"}, 400, ["messages"]),
    ("/v1/chat/completions", {"messages": []}, 400, ["messages"]),
    ("/v1/completions", {"model": "tgi", "prompt": "x", "temperature": 3}, 400, ["temperature", "3"]),
    ("/v1/completions", {"model": "tgi", "prompt": "x", "max_tokens": -1}, 400, ["max_tokens", "-1"]),
    ("/v1/completions", {"model": "tgi", "prompt": "word " * 90, "max_tokens": 4}, 400, ["64"]),
    ("/v1/completions", "[1,2", 400, []),
])
def test_wrong_bodies(server, path, body, status, words):
    text = post(server, path, body, status)
    for word in words:
        assert word in text, text


def test_openai_errors_have_the_openai_envelope(server):
    error = json.loads(post(server, "/v1/completions", {"prompt": "x", "max_tokens": -1}, 400))
    assert set(error["error"]) >= {"message", "type", "param", "code"}
    assert error["error"]["param"] == "max_tokens"
    error = json.loads(post(server, "/v1/completions", {"prompt": "x", "max_tokens": 999}, 400))
    assert error["error"]["param"] == "max_tokens"
    assert error["error"]["code"] == "context_length_exceeded"


def test_tgi_errors_have_the_tgi_envelope(server):
    error = json.loads(post(server, "/generate", {"inputs": ""}, 422))
    assert error == {"error": "Input validation error: `inputs` cannot be empty",
                     "error_type": "validation"}


def test_unknown_route_and_method(server):
    assert server.request("GET", "/nothing")[0] == 404
    status, headers, _ = server.request("GET", "/generate")
    assert status == 405 and "POST" in headers.get("Allow", headers.get("allow", ""))


def test_a_huge_body_is_refused_early(server):
    connection = server.connect()
    connection.putrequest("POST", "/generate")
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Content-Length", str(100 * 1024 * 1024))
    connection.endheaders()
    response = connection.getresponse()  # answered before the body was sent
    assert response.status == 413
    assert b"limit" in response.read().lower()


def test_bytes_that_are_no_http_are_refused(server):
    with socket.create_connection((server.host, server.port), timeout=10) as raw:
        raw.sendall(b"\x00\xff NOT HTTP\r\n\r\n")
        answer = raw.recv(4096)
        assert answer == b"" or b"400" in answer.split(b"\r\n")[0]
