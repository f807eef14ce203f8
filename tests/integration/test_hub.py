"""Model ids: what the launcher finds in the Hugging Face cache or fetches from a hub. No network:
the hub is tests/integration/fake_hub.py."""

import os
import pathlib
import signal
import subprocess
import threading

import pytest
from fake_hub import COMMIT, FakeHub
from penstock_testing import BIN, DEMO_MODEL, Server

REPO = "someone/little-model"
FILES = {path.name: path.read_bytes() for path in DEMO_MODEL.iterdir() if path.name != "README.md"}
WEIGHTS = "model.safetensors"


@pytest.fixture
def hub():
    with FakeHub(REPO, dict(FILES)) as fake:
        yield fake


def environment(tmp_path, hub=None, **more):
    clean = {k: v for k, v in os.environ.items()
             if not k.startswith(("PENSTOCK_", "HF_", "HUGGING"))}
    clean.update(HF_HOME=str(tmp_path / "home"), no_proxy="127.0.0.1,localhost")
    if hub:
        clean["HF_ENDPOINT"] = hub.url
    return {**clean, **more}


def run_fetch(tmp_path, hub=None, model=REPO, options=(), cwd=None, **env):
    """A launcher that only fetches, at its end."""
    return subprocess.run(
        [BIN / "penstock-launcher", "--model-id", model, "--port", "0", "--download-only", *options],
        env=environment(tmp_path, hub, **env), cwd=cwd, capture_output=True, text=True, timeout=60)


def fetch(*arguments, **options):
    """(exit code, what was printed, last line of the log) of a launcher that only fetches."""
    done = run_fetch(*arguments, **options)
    return done.returncode, done.stdout.strip(), (done.stderr.strip().splitlines() or [""])[-1]


def check_snapshot(folder):
    folder = pathlib.Path(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == FILES
    assert all(path.is_symlink() for path in folder.iterdir())
    blobs = {path.name for path in (folder.parent.parent / "blobs").iterdir()}
    assert len(blobs) == len(FILES), "nothing half-done is left"


def test_a_model_id_is_downloaded_and_served(tmp_path, hub):
    with Server(model=REPO, env=environment(tmp_path, hub)) as server:
        info = server.json("GET", "/info")
        assert (info["model_id"], info["model_sha"]) == (REPO, COMMIT)
        assert server.generate("Once upon a time", max_new_tokens=4)["generated_text"]
    check_snapshot(tmp_path / "home/hub/models--someone--little-model/snapshots" / COMMIT)


def test_a_revision_of_a_local_folder_is_warned_of(tmp_path):
    code, folder, said = fetch(tmp_path, model=str(DEMO_MODEL), options=("--revision", "v2"))
    assert (code, folder) == (0, str(DEMO_MODEL))
    assert f"--revision v2 has no effect: the model is the local folder {DEMO_MODEL}" in said
    assert "--revision" not in fetch(tmp_path, model=str(DEMO_MODEL))[2]


def test_huggingface_hub_finds_what_was_fetched(tmp_path, hub):
    huggingface_hub = pytest.importorskip("huggingface_hub")
    code, folder, _ = fetch(tmp_path, hub)
    assert code == 0
    found = huggingface_hub.snapshot_download(REPO, cache_dir=tmp_path / "home/hub",
                                              local_files_only=True)
    assert os.path.samefile(found, folder)


def test_the_cache_of_huggingface_hub_needs_no_hub(tmp_path, hub):
    huggingface_hub = pytest.importorskip("huggingface_hub")
    for name in FILES:
        theirs = huggingface_hub.hf_hub_download(REPO, name, endpoint=hub.url, token=False,
                                                 cache_dir=tmp_path / "cache")
    code, folder, _ = fetch(tmp_path, HF_HUB_OFFLINE="1", HF_HUB_CACHE=str(tmp_path / "cache"))
    assert code == 0 and os.path.samefile(folder, pathlib.Path(theirs).parent)


def test_code_of_a_model_is_fetched_with_permission_only(tmp_path):
    code = ("modeling_own.py", b"OWN = 1\n")
    with FakeHub(REPO, {**FILES, code[0]: code[1]}) as hub:
        exit_code, folder, _ = fetch(tmp_path, hub)
        assert exit_code == 0 and not (pathlib.Path(folder) / code[0]).exists()
        options = ("--engine", "transformers", "--trust-remote-code")
        assert fetch(tmp_path, hub, options=options)[:2] == (0, folder)
        assert (pathlib.Path(folder) / code[0]).read_bytes() == code[1]


def test_a_second_start_fetches_nothing(tmp_path, hub):
    assert fetch(tmp_path, hub)[0] == 0
    served = hub.served
    assert fetch(tmp_path, hub)[0] == 0
    assert hub.served == served


def test_a_complete_commit_needs_no_connection(tmp_path, hub):
    assert fetch(tmp_path, hub, options=["--revision", COMMIT])[0] == 0
    asked = len(hub.requests)
    assert fetch(tmp_path, hub, options=["--revision", COMMIT])[0] == 0
    assert len(hub.requests) == asked


def test_the_cache_serves_if_the_hub_is_unreachable(tmp_path, hub):
    assert fetch(tmp_path, hub)[0] == 0
    code, folder, _ = fetch(tmp_path, HF_ENDPOINT="http://127.0.0.1:9")
    assert code == 0
    check_snapshot(folder)


def test_weights_are_downloaded_in_ranges(tmp_path, hub):
    starts = []
    hub.trouble[WEIGHTS] = lambda handler, start, end, content: starts.append(start)
    assert fetch(tmp_path, hub)[0] == 0
    assert len(starts) > 1 and len(set(starts)) == len(starts)


def test_a_hub_without_ranges_works(tmp_path, hub):
    hub.ranges = False
    code, folder, _ = fetch(tmp_path, hub)
    assert code == 0
    check_snapshot(folder)
    assert hub.served <= sum(map(len, FILES.values()))


@pytest.mark.parametrize("ranges", [True, False])
def test_interrupted_downloads_resume(tmp_path, hub, ranges):
    hub.ranges = ranges
    cuts = []

    def cut(handler, start, end, content):
        if len(cuts) >= 5:
            return False
        cuts.append(start)
        hub.send_content(handler, start, end, content, only=300_000 * len(cuts))
        return True

    hub.trouble[WEIGHTS] = cut
    code, folder, _ = fetch(tmp_path, hub)
    assert code == 0
    check_snapshot(folder)
    if ranges:
        assert hub.served < 1.1 * sum(map(len, FILES.values())), "only what was missing came again"


@pytest.mark.parametrize("options, code", [
    (["--download-only"], 128 + signal.SIGTERM),  # the model is not there
    ([], 0),                                      # a server was asked to stop
])
def test_a_killed_download_resumes(tmp_path, hub, options, code):
    """The last bytes of a file hang. The launcher is killed when all others are on disk, which is so
    when it asks for the missing part."""
    reached = threading.Event()
    release = threading.Event()
    size = len(FILES[WEIGHTS])
    most = size - 1000

    def hang(handler, start, end, content):
        if start >= most:
            reached.set()
            release.wait(30)
        else:
            hub.send_content(handler, start, end, content, only=max(0, min(end, most) - start))
        return True

    hub.trouble[WEIGHTS] = hang
    child = subprocess.Popen([BIN / "penstock-launcher", "--model-id", REPO, "--port", "0", *options],
                             env=environment(tmp_path, hub), stderr=subprocess.PIPE, text=True)
    assert reached.wait(30)
    child.send_signal(signal.SIGTERM)
    _, said = child.communicate(timeout=2)
    assert child.returncode == code
    assert said.splitlines()[-1].endswith(
        "launcher: stopping: received SIGTERM before the model was complete")
    release.set()
    asked = []
    hub.trouble[WEIGHTS] = lambda handler, start, end, content: asked.append((start, end))
    code, folder, _ = fetch(tmp_path, hub)
    assert code == 0
    check_snapshot(folder)
    assert sum(end - start for start, end in asked) < size, asked


def test_busy_and_failing_hubs_are_retried(tmp_path, hub):
    hub.api_answers = [(429, [("Retry-After", "0")]), (503, []), (500, [])]
    failures = iter([503, 500, 429])

    def fail(handler, start, end, content):
        code = next(failures, None)
        if code:
            hub.refuse(handler, code)
        return code is not None

    hub.trouble["tokenizer.json"] = fail
    done = run_fetch(tmp_path, hub)
    assert done.returncode == 0
    check_snapshot(done.stdout.strip())
    for what in (f"{hub.url}/api/models/{REPO}/revision/main: answer 429; asking again in 0 s, try 2 of 6",
                 "/revision/main: answer 503; asking again in 0.4 s, try 3 of 6",
                 "/tokenizer.json: answer 503; asking again in 0.2 s, try 2 of 6"):
        assert done.stderr.count(what) == 1, done.stderr
    assert done.stderr.count("asking again") == 6


def give(handler, body):
    """A partial answer whose body may differ from the request."""
    handler.send_response(206)
    handler.send_header("Content-Length", str(len(body)))
    handler.send_header("Retry-After", "0")
    handler.end_headers()
    handler.wfile.write(body)
    return True


@pytest.mark.parametrize("length, said", [
    (lambda asked: asked + 7, "its answer is longer than what was asked for"),
    (lambda asked: 0, "its answer ends before the bytes that were asked for"),
])
def test_answers_of_a_wrong_length_are_reported(tmp_path, hub, length, said):
    def wrong(handler, start, end, content):
        return give(handler, b"x" * length(end - start))

    hub.trouble["config.json"] = wrong
    code, _, error = fetch(tmp_path, hub)
    assert code == 3 and error.endswith(f"--model-id {REPO}: config.json: {hub.url}: {said}"), error


@pytest.mark.parametrize("endpoint", ["ftp://hub", "not a url", "http://"])
def test_an_invalid_endpoint_is_refused_by_name(tmp_path, endpoint):
    done = run_fetch(tmp_path, HF_ENDPOINT=endpoint)
    assert done.returncode == 2
    assert f"HF_ENDPOINT {endpoint.rstrip('/')}: must be a URL" in done.stderr
    assert "asking again" not in done.stderr


def test_wrong_contents_are_downloaded_again(tmp_path, hub):
    wrong = []

    def spoil(handler, start, end, content):
        if start or wrong:
            return False
        wrong.append(start)
        hub.send_content(handler, start, end, content, wrong=True)
        return True

    hub.trouble[WEIGHTS] = spoil
    code, folder, _ = fetch(tmp_path, hub)
    assert code == 0 and wrong
    check_snapshot(folder)


def test_contents_that_stay_wrong_are_an_error_that_names_the_file(tmp_path, hub):
    def spoil(handler, start, end, content):
        hub.send_content(handler, start, end, content, wrong=True)
        return True

    hub.trouble["tokenizer.json"] = spoil
    code, _, error = fetch(tmp_path, hub)
    assert code == 3
    assert "tokenizer.json came with wrong contents twice: checksum" in error


def test_repeated_failures_of_the_hub_are_an_error(tmp_path, hub):
    hub.api_answers = [(503, [("Retry-After", "0")])] * 20
    code, _, error = fetch(tmp_path, hub)
    assert code == 3
    assert f"--model-id {REPO}: {hub.url} gave answer 503" in error


def test_a_token_opens_a_gated_model_and_stays_on_the_hub(tmp_path):
    with FakeHub(REPO, dict(FILES), token="hf_secret") as gated, \
            FakeHub(REPO, dict(FILES)) as elsewhere:
        gated.content_host = elsewhere.url.replace("127.0.0.1", "localhost")
        code, _, error = fetch(tmp_path, gated)
        assert code == 3
        assert f"{REPO} is gated: accept its terms at {gated.url}/{REPO}; set HF_TOKEN" in error
        code, folder, _ = fetch(tmp_path, gated, HF_TOKEN="hf_secret")
        assert code == 0
        check_snapshot(folder)
        assert elsewhere.requests and {sent for _, _, sent in elsewhere.requests} == {None}


def test_a_renamed_model_is_followed(tmp_path, hub):
    hub.renamed_from = "someone/old-name"
    old_api = hub.answer

    def answer(handler, head):
        handler.path = handler.path.replace("/api/models/someone/old-name", f"/api/models/{REPO}")
        old_api(handler, head)

    hub.answer = answer
    code, folder, _ = fetch(tmp_path, hub, model="someone/old-name")
    assert code == 0
    check_snapshot(folder)


@pytest.mark.parametrize("model, options, words", [
    ("someone/else", [], "neither a folder here nor a model at"),
    (REPO, ["--revision", "v9"], "--revision v9 is no branch, tag or commit"),
    (REPO, ["--revision", "../../x"], "--revision ../../x: must be a branch, a tag or a commit"),
    ("no such folder", [], "there is no such folder, and it is no model id"),
    ("../secret", [], "there is no such folder"),
    ("https://huggingface.co/org/name", [], "is an address; give a model id (org/name) or"),
])
def test_what_the_hub_does_not_have_is_reported(tmp_path, hub, model, options, words):
    code, _, error = fetch(tmp_path, hub, model=model, options=options)
    assert code == (2 if "must be" in words else 3) and words in error


def test_offline_without_the_model_is_an_error(tmp_path, hub):
    code, _, error = fetch(tmp_path, hub, HF_HUB_OFFLINE="1")
    assert code == 3 and "HF_HUB_OFFLINE forbids fetching it" in error
    assert not hub.requests


def test_a_model_without_safetensors_is_an_error(tmp_path, hub):
    hub.listed = [name for name in FILES if name != WEIGHTS] + ["pytorch_model.bin"]
    code, _, error = fetch(tmp_path, hub)
    assert code == 3 and "its format is PyTorch (pytorch_model.bin), which is not read" in error
    hub.listed = ["README.md", "little.Q4_K_M.gguf"]
    code, _, error = fetch(tmp_path, hub)
    assert code == 3 and "its format is GGUF (little.Q4_K_M.gguf), which is not read" in error
    hub.listed = [name for name in FILES if name != WEIGHTS]
    code, _, error = fetch(tmp_path, hub)
    assert code == 3 and "has no .safetensors files" in error


@pytest.mark.parametrize("model, words", [
    ("demo/modle", "there is no such folder; did you mean demo/model? (demo exists here, so the "
                   "hub is not asked)"),
    ("demo/xyz-0123456789", "there is no such folder (demo exists here, so the hub is not asked)"),
    ("demo/nope", "there is no such folder (demo exists here, so the hub is not asked)"),
    ("./demo/modle/", "there is no such folder; did you mean ./demo/model?"),
    ("../demo/modle", "there is no such folder"),
    ("/nowhere/model", "there is no such folder"),
    ("tiny.gguf", "there is no such folder"),
    ("a/b/c", "there is no such folder"),
])
def test_a_folder_that_is_not_there_is_not_looked_up(tmp_path, hub, model, words):
    for name in ("model", "home"):
        (tmp_path / "demo" / name).mkdir(parents=True)
    done = run_fetch(tmp_path, hub, model=model, cwd=tmp_path)
    assert done.returncode == 3 and done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"penstock-launcher: error: --model-id {model}: {words}"), line
    assert not hub.requests


def test_a_hub_that_cannot_be_reached_is_asked_once(tmp_path):
    done = run_fetch(tmp_path, HF_ENDPOINT="http://127.0.0.1:9")
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert (f"--model-id {REPO}: there is no such folder here, and the hub cannot be reached: "
            "http://127.0.0.1:9/") in line


@pytest.mark.parametrize("files, words", [
    (["tiny.gguf"], "its format is GGUF (tiny.gguf), which is not read; give the same model in"),
    (["config.json", "pytorch_model.bin", "tokenizer.json"], "its format is PyTorch (pytorch_model."),
    (["config.json", "model.onnx", "tokenizer.json"], "its format is ONNX (model.onnx)"),
    (["adapter_config.json", "adapter_model.safetensors"], "it is an adapter (adapter_config.json)"),
])
def test_a_format_that_is_not_read_is_named(tmp_path, files, words):
    folder = tmp_path / "other"
    folder.mkdir()
    for name in files:
        (folder / name).write_text("{}")
    code, _, error = fetch(tmp_path, model=str(folder))
    assert code == 3 and f"--model-id {folder}: {words}" in error
    if files[0].endswith(".gguf"):
        code, _, error = fetch(tmp_path, model=str(folder / files[0]))
        assert code == 3 and words in error


def test_file_names_cannot_leave_the_cache(tmp_path, hub):
    hub.files["../../evil.safetensors"] = b"x"
    index = b'{"weight_map": {"a": "../../../evil.safetensors"}}'
    hub.files["model.safetensors.index.json"] = index
    code, _, error = fetch(tmp_path, hub)
    assert code == 3 and "model.safetensors.index.json names no file for a" in error
    assert not list(tmp_path.rglob("evil*"))
