"""The learned order: tools/rank computes what the router computes, a bad model file is refused, a log gives
what the training needs, and short answers go first."""

import json
import pathlib
import subprocess
import sys
import threading
import time

import pytest

from penstock_testing import BIN, DEMO_MODEL, REPOSITORY, Process

sys.path.insert(0, str(REPOSITORY / "tools" / "rank"))

import features  # noqa: E402
import model_file  # noqa: E402
import synthetic  # noqa: E402
import tau  # noqa: E402

GOLDENS = REPOSITORY / "tests" / "unit" / "router" / "rank" / "goldens.json"


def test_python_computes_the_features_and_scores_of_the_goldens():
    goldens = json.loads(GOLDENS.read_text())
    matrix = features.Features(goldens["model"]["words"])
    for case in goldens["cases"]:
        assert matrix.of(case) == case["features"]
        score = model_file.score_of(goldens["model"], case["features"])
        assert (score, model_file.tokens_of(score)) == (case["score"], case["tokens"])


def test_tau_counts_every_pair():
    def slow(first, second):
        sign = lambda a, b: (a > b) - (a < b)  # noqa: E731
        pairs = [(i, j) for i in range(len(first)) for j in range(i)]
        of_first = [sign(first[i], first[j]) for i, j in pairs]
        of_second = [sign(second[i], second[j]) for i, j in pairs]
        agreement = sum(a * b for a, b in zip(of_first, of_second, strict=True))
        return agreement / (sum(map(abs, of_first)) * sum(map(abs, of_second))) ** 0.5

    rows, _ = synthetic.make(60, 1.0, 5)
    first = [row["generated"] // 50 for row in rows[::2]]
    second = [len(row["prompt"]) // 40 for row in rows[::2]]
    assert tau.kendall(first, second) == pytest.approx(slow(first, second))
    assert tau.kendall([1, 2, 2, 3], [10, 20, 20, 30]) == pytest.approx(1)
    assert tau.kendall([1, 1], [1, 2]) == 0


@pytest.mark.parametrize("text, words", [
    ("{", "one JSON object"),
    ('{"format": "lightgbm"}', '`format` must be "penstock rank model". Given: "lightgbm"'),
])
def test_a_bad_model_file_is_refused_before_shards_load(tmp_path, text, words):
    path = tmp_path / "model.rank"
    path.write_text(text)
    options = ["--model-id", DEMO_MODEL, "--order", "learned", "--rank-model", path]
    with Process([BIN / "penstock-launcher", *options]) as process:
        assert process.wait_exit() == 2
        assert words in process.output() and "--rank-model" in process.output()


def ids_of(server, text):
    return [token["id"] for token in server.json("POST", "/tokenize", {"inputs": text})]


def short_if(word):
    """A model that predicts 2 tokens if the word is in the prompt, else 512."""
    tree = {"feature": [5], "threshold": [0], "left": [-1], "right": [-2]}
    tree["leaf"] = [9 * model_file.UNIT, model_file.UNIT]
    notes = {"base": 0, "words": [word], "trees": [tree]}
    return {"format": model_file.FORMAT, "version": model_file.VERSION, **notes}


def test_short_answers_go_first_and_the_log_says_how_long_all_were(simulated, tmp_path):
    probe = simulated()
    word = ids_of(probe, "tell briefly")[-3:]
    path, log = tmp_path / "model.rank", tmp_path / "requests.log"
    path.write_text(json.dumps(short_if(word)))
    server = simulated("--order", "learned", "--rank-model", path, "--max-batch-size", "1",
                       "--step-time", "5ms", "--record", log)
    ended = []

    def ask(text, tokens):
        server.generate(text, max_new_tokens=tokens)
        ended.append((text, tokens))

    asked = [("what runs first", 120), ("a long tale", 40), ("another long tale", 40), ("tell briefly", 40)]
    threads = []
    for number, (text, tokens) in enumerate(asked):
        threads.append(threading.Thread(target=ask, args=(text, tokens)))
        threads[-1].start()
        deadline = time.monotonic() + 20
        while not seen(server, number + 1):
            assert time.monotonic() < deadline
    for thread in threads:
        thread.join(60)
    assert [text for text, _ in ended[:2]] == ["what runs first", "tell briefly"]
    server.stop()
    done = subprocess.run([BIN / "penstock-replay", "lengths", log], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert sorted(line["generated"] for line in lines) == [40, 40, 40, 120]
    assert sum(line["prompt"][-3:] == word for line in lines) == 1
    assert all(line["length_given"] and line["cut"] for line in lines)


def seen(server, request):
    status, _, _ = server.request("GET", f"/requests/{request}")
    return status == 200


def test_the_training_finds_the_order_of_requests_whose_ceiling_is_known(tmp_path):
    pytest.importorskip("lightgbm", reason="LightGBM is not installed (tools/rank/requirements.txt)")
    lengths, model = tmp_path / "lengths.jsonl", tmp_path / "model.rank"
    tools = pathlib.Path(model_file.__file__).parent
    subprocess.run([sys.executable, tools / "synthetic.py", lengths, "--prompts", "2000"], check=True)
    done = subprocess.run([sys.executable, tools / "train.py", lengths, "--out", model], check=True,
                          capture_output=True, text=True)
    notes = json.loads(done.stdout)
    assert notes["share"] >= 0.73, notes
    assert notes["tau"] > notes["tau_of_prompt_length"] + 0.2
