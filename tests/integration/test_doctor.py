"""`penstock doctor` names the cause of each planted fault."""

import http.server
import json
import os
import resource
import shutil
import socket
import ssl
import subprocess
import threading
import time

import pytest
from certificates import make_authority, make_certificate, need_openssl
from penstock_testing import BIN, DEMO_MODEL, Server

PENSTOCK = BIN / "penstock"


def doctor(*arguments, env=None, program=PENSTOCK, limits=(), options=("--port", "0"), within=()):
    """(exit code, problems) of a run."""
    clean = {k: v for k, v in os.environ.items()
             if not k.startswith("PENSTOCK_") and "proxy" not in k.lower()}

    def lower():
        for limit, value in limits:
            resource.setrlimit(limit, (value, value))

    done = subprocess.run([*within, program, "doctor", *map(str, arguments), *options],
                          env={**clean, **(env or {})}, capture_output=True, text=True, timeout=60,
                          preexec_fn=lower if limits else None)
    problems = [line for line in done.stdout.splitlines() if line.startswith("problem: ")]
    assert done.returncode == (1 if problems else 0), done.stdout + done.stderr
    return "\n".join(problems)


@pytest.fixture
def model(tmp_path):
    return shutil.copytree(DEMO_MODEL, tmp_path / "model")


def edit_config(model, **changes):
    path = model / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.fixture
def answers():
    """answers({path: status}): the URL of a server that gives these answers."""
    servers = []

    def start(table):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(table.get(self.path, 404))
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *arguments):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()


@pytest.fixture
def pair(tmp_path):
    need_openssl()
    make_authority(tmp_path, "ca")
    make_certificate(tmp_path, "server", "ca", ["127.0.0.1"])
    (tmp_path / "server.key").chmod(0o600)
    return tmp_path


def tls(folder, certificate="server.pem", key="server.key"):
    return doctor("--tls-cert", folder / certificate, "--tls-key", folder / key)


def test_a_good_set_up_has_no_problem():
    assert doctor(DEMO_MODEL) == ""


def test_a_port_in_use():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"--port {port}: in use" in doctor(options=("--port", port))


def test_a_port_that_a_penstock_serves_is_a_note(answers):
    with Server("--shard-program", BIN / "penstock-simshard") as server:
        port = server.url.rpartition(":")[2]
        done = subprocess.run([PENSTOCK, "doctor", "--port", port], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout
        version = server.json("GET", "/info")["version"]
        assert f"note: 127.0.0.1 port {port} is served by Penstock {version}, " in done.stdout
    other = answers({"/info": 200, "/health": 200}).rpartition(":")[2]
    assert f"--port {other}: in use by another program" in doctor(options=("--port", other))


def test_an_address_of_another_machine():
    assert "192.0.2.1" in doctor("--hostname", "192.0.2.1")


def test_an_unknown_key_of_the_config_file(tmp_path):
    config = tmp_path / "server.yaml"
    config.write_text("max_batch_sise: 8\n")
    said = doctor("--config", config)
    assert "server.yaml:1" in said and "max-batch-size" in said.replace("_", "-")


def test_a_wrong_value_of_the_config_file(tmp_path):
    config = tmp_path / "server.yaml"
    config.write_text("max_batch_size: many\n")
    assert "many" in doctor("--config", config)


def test_a_missing_model_folder(tmp_path):
    assert "absent" in doctor(tmp_path / "absent")


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_missing_file_of_the_model(model, name):
    (model / name).unlink()
    assert name.split(".")[-1] in doctor(model)


def test_a_tokenizer_that_was_cut_off(model):
    path = model / "tokenizer.json"
    path.write_text(path.read_text()[:5000])
    said = doctor(model)
    assert f"{path} is not valid JSON" in said and "downloading the file again" in said


def test_a_missing_chat_template(model):
    for path in model.glob("chat_template*"):
        path.unlink()
    path = model / "tokenizer_config.json"
    config = json.loads(path.read_text())
    config.pop("chat_template", None)
    path.write_text(json.dumps(config))
    said = doctor(model)
    assert "no chat template" in said and "try --tokenizer-config-path FILE" in said


TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}"


@pytest.mark.parametrize("place", ["chat_template.jinja", "tokenizer_config.json", "--tokenizer-config-path"])
@pytest.mark.parametrize("mistake, said", [
    (TEMPLATE.replace("{% endfor %}", ""), "the chat template cannot be used: syntax error: "),
    (TEMPLATE.replace("%}", "}", 1), "the chat template cannot be used: syntax error: "),
    (TEMPLATE.replace("content", "content | lowre"), "the chat template fails for one message of a user: "),
])
def test_a_mistake_in_the_chat_template(model, tmp_path, place, mistake, said):
    def put(template):
        if place.endswith(".jinja"):
            (model / place).write_text(template)
            return ()
        path = model / place if place.endswith(".json") else tmp_path / "other.json"
        config = json.loads((model / "tokenizer_config.json").read_text())
        path.write_text(json.dumps({**config, "chat_template": template}))
        return ("--tokenizer-config-path", path) if place.startswith("--") else ()

    assert doctor(model, *put(TEMPLATE)) == ""
    [problem] = doctor(model, *put(mistake)).splitlines()
    assert said in problem and "--tokenizer-config-path FILE" in problem


def test_a_template_elsewhere_stands_for_a_missing_one(model, tmp_path):
    config = json.loads((model / "tokenizer_config.json").read_text())
    (tmp_path / "other.json").write_text(json.dumps(config))
    config.pop("chat_template")
    (model / "tokenizer_config.json").write_text(json.dumps(config))
    assert doctor(model, "--tokenizer-config-path", tmp_path / "other.json") == ""


@pytest.mark.parametrize("options, said", [
    (("--api-keys-file", "absent"), "--api-keys-file absent: cannot be read"),
    (("--tokenizer-config-path", "absent"), "--tokenizer-config-path absent: cannot be read"),
    (("--record", "absent/record"), "--record absent/record: must be a writable file"),
])
def test_what_the_router_would_refuse(options, said):
    assert said in doctor(DEMO_MODEL, *options)


def test_a_wrong_line_of_the_keys_that_others_may_read(tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("no colon\n")
    keys.chmod(0o644)
    said = doctor(DEMO_MODEL, "--api-keys-file", keys)
    assert f"{keys}:1: must be name:key" in said
    assert f"chmod 600 {keys}" in said


def test_the_advice_for_an_adapter_is_not_about_the_model(tmp_path):
    said = doctor(DEMO_MODEL, "--lora", f"a={tmp_path / 'absent'}")
    assert f"--lora a={tmp_path / 'absent'}: is not a folder of an adapter" in said
    assert "downloading the model" not in said


def test_a_missing_weight_shard(model):
    (model / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"a": "model.safetensors", "b": "model-2.safetensors"}}))
    assert "lacks the weight file model-2.safetensors" in doctor(model)


def test_an_unsupported_model_type(model):
    edit_config(model, model_type="martian")
    assert "martian" in doctor(model)


def test_truncated_weights(model):
    path = model / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1000])
    assert "model.safetensors" in doctor(model)


def test_a_file_that_is_a_pointer(model):
    (model / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\n")
    assert "Git LFS" in doctor(model)


def test_a_link_without_a_target(model):
    (model / "generation_config.json").unlink()
    (model / "generation_config.json").symlink_to(model / "gone")
    assert "generation_config.json cannot be read" in doctor(model)


def test_a_cache_that_is_too_large_for_the_memory(model):
    assert "--kv-cache-memory" in doctor(model, "--kv-cache-memory", "900TiB")


def test_a_limit_of_the_address_space():
    assert "ulimit -v" in doctor(limits=[(resource.RLIMIT_AS, 1 << 30)])


def test_a_limit_of_open_files():
    assert "may open 100 files" in doctor(limits=[(resource.RLIMIT_NOFILE, 100)])


def test_a_certificate_without_a_key(pair):
    assert "--tls-key" in doctor("--tls-cert", pair / "server.pem")


def test_a_key_of_another_certificate(pair):
    make_certificate(pair, "other", "ca", ["127.0.0.1"])
    assert "--tls-key" in tls(pair, key="other.key")


def test_a_certificate_that_ends(pair):
    make_certificate(pair, "old", "ca", ["127.0.0.1"], days=0)
    (pair / "old.key").chmod(0o600)
    assert "old.pem" in tls(pair, "old.pem", "old.key")


def test_a_key_that_others_may_read(pair):
    (pair / "server.key").chmod(0o644)
    assert "chmod 600" in tls(pair)


def test_a_hub_cache_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    said = doctor("org/model", env={"HF_HUB_CACHE": str(tmp_path / "file" / "hub")})
    assert "hub cache" in said


def test_a_weights_cache_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    assert "--weights-cache" in doctor("--weights-cache", tmp_path / "file" / "kept")


@pytest.fixture
def small_disk(tmp_path):
    """small_disk(bytes): (words that run a program with a disk of this size, the folder of the disk)."""
    if not shutil.which("bwrap"):
        pytest.skip("bwrap is not installed (deploy/bootstrap --tests installs it)")
    folder = tmp_path / "disk"
    folder.mkdir()
    words = ["bwrap", "--dev-bind", "/", "/", "--size"]
    works = subprocess.run([*words, "4096", "--tmpfs", folder, "true"], capture_output=True, text=True, timeout=60)
    if works.returncode != 0:
        pytest.skip(f"bwrap may make no disk here: {works.stderr.strip()}")
    return lambda size: ([*words, str(size), "--tmpfs", str(folder)], folder)


def test_a_hub_cache_without_room(small_disk):
    words, folder = small_disk(64 << 20)
    said = doctor("org/model", within=words, env={"HF_HUB_CACHE": str(folder / "hub")})
    assert f"hub cache {folder}/hub: the disk is full, 64.0 MiB free of 1.0 GiB needed" in said


def test_a_weights_cache_without_room_for_this_model(small_disk):
    weights = (DEMO_MODEL / "model.safetensors").stat().st_size
    words, folder = small_disk(weights // 2)
    said = doctor(DEMO_MODEL, "--weights-cache", folder, within=words)
    assert f"--weights-cache {folder}: the disk is full" in said and "another disk" in said
    words, folder = small_disk(weights * 4)
    assert doctor(DEMO_MODEL, "--weights-cache", folder, within=words) == ""


def test_a_folder_of_sockets_that_others_reach(tmp_path):
    open_folder = tmp_path / "open"
    open_folder.mkdir()
    open_folder.chmod(0o755)
    assert "must have mode 0700" in doctor("--shard-uds-path", open_folder / "shard")


def test_a_gpu_that_is_asked_for_and_missing():
    if os.path.exists("/dev/nvidiactl"):
        pytest.skip("this machine has a driver")
    assert "no NVIDIA driver" in doctor("--device", "cuda")


def test_programs_of_mixed_versions(tmp_path):
    for name in ("penstock", "penstock-launcher", "penstock-shard"):
        shutil.copy(BIN / name, tmp_path / name)
    (tmp_path / "penstock-router").write_text("#!/bin/sh\necho penstock-router 0.0.1\n")
    (tmp_path / "penstock-router").chmod(0o755)
    assert "penstock-router is version 0.0.1" in doctor(program=tmp_path / "penstock")


def test_files_from_the_future(model):
    later = time.time() + 30 * 86400
    os.utime(model / "config.json", (later, later))
    assert "clock" in doctor(model)


def test_a_proxy_that_catches_this_machine():
    assert "http_proxy=http://proxy:3128" in doctor(env={"http_proxy": "http://proxy:3128"})


def test_a_server_that_is_not_there():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert "cannot be reached" in doctor("--url", f"http://127.0.0.1:{port}", options=())


def test_a_server_that_is_not_ready(answers):
    url = answers({"/health": 503})
    assert "is not ready: GET /health gives 503" in doctor("--url", url, options=())


def test_a_server_that_needs_a_key(answers):
    url = answers({"/health": 200, "/v1/models": 401})
    assert "needs a key" in doctor("--url", url, options=())
    assert "refuses the key" in doctor("--url", url, "--api-key", "k", options=())


def test_a_penstock_that_needs_a_key():
    with Server("--api-key", "right") as server:
        assert "needs a key" in doctor("--url", server.url, options=())
        assert "refuses the key" in doctor("--url", server.url, "--api-key", "wrong", options=())
        assert doctor("--url", server.url, "--api-key", "right", options=()) == ""


def test_a_certificate_that_clients_refuse(pair):
    options = ("--tls-cert", pair / "server.pem", "--tls-key", pair / "server.key")
    with Server("--shard-program", BIN / "penstock-simshard", *options,
                tls=ssl.create_default_context(cafile=pair / "ca.pem")) as server:
        said = doctor("--url", server.url, options=())
        assert f"{server.url}: the certificate is refused, unable to get local issuer" in said
        assert doctor("--url", server.url, "--ca-file", pair / "ca.pem", options=()) == ""
        named = server.url.replace("127.0.0.1", "localhost")
        said = doctor("--url", named, "--ca-file", pair / "ca.pem", options=())
        assert "the certificate is refused, it names another host" in said
        plain = server.url.replace("https:", "http:")
        said = doctor("--url", plain, options=())
        assert said == f"problem: {plain}: the server speaks HTTPS there; try {server.url}"


def test_https_to_a_server_of_plain_http(answers):
    plain = answers({"/health": 200, "/v1/models": 200})
    url = plain.replace("http:", "https:")
    said = doctor("--url", url, options=())
    assert said == f"problem: {url}: the server speaks plain HTTP there; try {plain}"
    chat = subprocess.run([PENSTOCK, "chat", "--url", url], input="", capture_output=True, text=True,
                          timeout=60)
    assert "a server without TLS has an address that begins with http://" in chat.stderr


def test_a_base_url_without_v1(answers):
    url = answers({"/health": 200, "/v1/models": 200})
    assert doctor("--url", f"{url}/v1", options=()) == ""
    assert f"try {url}/v1" in doctor("--url", f"{url}/openai", options=())
    said = doctor("--url", url, options=(), env={"OPENAI_BASE_URL": url})
    assert f"try OPENAI_BASE_URL={url}/v1" in said
