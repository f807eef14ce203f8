"""LoRA adapters behind the launcher: chosen by each interface, in one batch with the plain model, loaded and
unloaded while others run."""

import json
import threading

import pytest
from penstock_testing import BIN, BUILD, Process, Server, at_once

ADAPTERS = BUILD / "tests" / "model_adapters"
BASE = BUILD / "tests" / "model_checkpoints" / "phi3-v4_su_crossing"
LENGTHS = ("--max-input-tokens", "60", "--max-total-tokens", "90")
PROMPTS = ["Once upon a time", "The old mill stood beside the river"]


@pytest.fixture(scope="module", autouse=True)
def folders():
    if not ADAPTERS.exists():
        pytest.skip(f"no adapters in {ADAPTERS}: build penstock_model_checkpoints")


def lora(*names):
    return [word for name in names for word in ("--lora", f"{name}={ADAPTERS / name}")]


def ask(server, prompt, adapter=None, **parameters):
    if adapter is not None:
        parameters["adapter_id"] = adapter
    answer = server.generate(prompt, max_new_tokens=12, **parameters)
    return [token["id"] for token in answer["details"]["tokens"]]


@pytest.fixture(scope="module", params=["1", "2"], ids=["one rank", "two ranks"])
def served(request):
    with Server("--num-shard", request.param, *LENGTHS, *lora("fused", "rslora"), "--served-model-name", "base",
                model=BASE) as server:
        yield server


def test_one_batch_gives_what_each_adapter_gives_alone(served):
    jobs = [(prompt, adapter) for prompt in PROMPTS for adapter in (None, "fused", "rslora", None)]
    alone = [ask(served, *job) for job in jobs]
    assert len({json.dumps(ids) for ids in alone}) == 6, "prompts and adapters differ"
    assert at_once(len(jobs), lambda i: ask(served, *jobs[i])) == alone


def test_the_prefix_cache_is_apart_by_adapter(served):
    prompt = "a prefix that is longer than two blocks of sixteen"
    first = [ask(served, prompt, adapter) for adapter in ("fused", None, "rslora")]
    assert [ask(served, prompt, adapter) for adapter in ("fused", None, "rslora")] == first
    assert len({json.dumps(ids) for ids in first}) == 3


def test_every_interface_chooses_by_name(served):
    prompt = PROMPTS[0]
    texts = {}
    for adapter in (None, "fused"):
        parameters = {"max_new_tokens": 12} | ({"adapter_id": adapter} if adapter else {})
        texts[adapter] = served.json("POST", "/generate", {"inputs": prompt, "parameters": parameters})[
            "generated_text"]
        answer = served.json("POST", "/v1/completions", {
            "model": adapter or "base", "prompt": prompt, "max_tokens": 12, "temperature": 0})
        assert answer["model"] == (adapter or "base")
        assert answer["choices"][0]["text"] == texts[adapter]
        answer = served.json("POST", "/invocations", {
            "inputs": [prompt], "adapters": [adapter or ""], "parameters": {"max_new_tokens": 12}})
        assert [one["generated_text"] for one in answer] == [texts[adapter]]
    assert texts[None] != texts["fused"]
    models = [model["id"] for model in served.json("GET", "/v1/models")["data"]]
    assert models == ["base", "fused", "rslora"]
    assert served.json("GET", "/v1/models/fused")["parent"] == "base"


def test_unknown_names_are_refused(served):
    error = served.json("POST", "/generate", {
        "inputs": "x", "parameters": {"adapter_id": "nobody", "max_new_tokens": 2}}, expect=422)
    assert "`adapter_id` must be the name of a loaded adapter (fused, rslora). Given: nobody" in error["error"]
    error = served.json("POST", "/v1/completions", {"model": "nobody", "prompt": "x"}, expect=404)
    assert "Served here: base, fused, rslora" in error["error"]["message"]


def test_adapters_come_and_go_under_load():
    with Server(*LENGTHS, *lora("fused"), model=BASE) as server:
        assert server.json("DELETE", "/adapters/nobody", expect=404)
        wanted = {adapter: ask(server, PROMPTS[0], adapter) for adapter in (None, "fused")}
        over, failed = threading.Event(), []

        def work(adapter):
            while not over.is_set():
                try:
                    if ask(server, PROMPTS[0], adapter) != wanted[adapter]:
                        failed.append(adapter)
                except AssertionError as error:
                    failed.append(error)

        threads = [threading.Thread(target=work, args=(adapter,)) for adapter in (None, "fused", None)]
        for thread in threads:
            thread.start()
        try:
            given = {}
            for i in range(8):  # two sets of weights under one name
                name = ("rslora", "patterns")[i % 2]
                server.json("POST", "/adapters", {"name": "guest", "folder": str(ADAPTERS / name)})
                given.setdefault(name, ask(server, PROMPTS[1], "guest"))
                assert ask(server, PROMPTS[1], "guest") == given[name]
                listed = {a["name"]: a for a in server.json("GET", "/adapters")["adapters"]}
                assert listed["guest"]["state"] == "loaded" and listed["guest"]["bytes"] > 0
                server.json("DELETE", "/adapters/guest")
                server.json("POST", "/generate", {
                    "inputs": "x", "parameters": {"adapter_id": "guest", "max_new_tokens": 2}}, expect=422)
        finally:
            over.set()
            for thread in threads:
                thread.join()
        assert failed == []
        assert given["rslora"] != given["patterns"]


def test_a_running_request_keeps_its_adapter(simulated, tmp_path):
    (tmp_path / "adapter_config.json").write_text("{}")
    server = simulated("--step-time", "20ms", ranks=2)
    server.json("POST", "/adapters", {"name": "guest", "folder": str(tmp_path)})
    stream = server.generate_stream("Once upon a time", adapter_id="guest", max_new_tokens=40)
    next(stream)
    gone = []
    thread = threading.Thread(target=lambda: gone.append(server.json("DELETE", "/adapters/guest")))
    thread.start()
    events = 1 + sum(1 for _ in stream)
    assert events == 40
    thread.join(20)
    assert gone == [{"adapters": []}]


def test_bad_folders_are_one_line():
    process = Process([BIN / "penstock-launcher", "--model-id", BASE, "--port", "0", *LENGTHS,
                       "--lora", f"other={ADAPTERS / 'conv1d'}"])
    assert process.wait_exit() != 0
    assert "--lora other=" in process.output() and "the model has no linear module" in process.output()
    with Server(*LENGTHS, model=BASE) as server:
        error = server.json("POST", "/adapters", {"name": "x", "folder": "/no/such"}, expect=422)
        assert "/no/such: is not a folder of an adapter" in error["error"]
        server.json("POST", "/adapters", {"name": "a b", "folder": "/x"}, expect=422)
        status, _, body = server.request("POST", "/adapters", {"name": "x"})
        assert status == 422 and b"`folder` is missing" in body
        assert ask(server, "x")


def test_only_the_admin_loads(simulated, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("boss:alpha\nbob:beta\n")
    keys.chmod(0o600)
    (tmp_path / "adapter_config.json").write_text("{}")
    server = simulated("--api-keys-file", keys, "--admin-key-name", "boss")
    body = {"name": "guest", "folder": str(tmp_path)}

    def headers(key):
        return {"Authorization": f"Bearer {key}"}

    assert server.request("POST", "/adapters", body, headers("beta"))[0] == 401
    assert server.request("POST", "/adapters", body, headers("alpha"))[0] == 200
    assert server.request("DELETE", "/adapters/guest", headers=headers("beta"))[0] == 401
    assert server.json("GET", "/adapters", headers=headers("beta"))["adapters"][0]["name"] == "guest"
    assert server.request("DELETE", "/adapters/guest", headers=headers("alpha"))[0] == 200
