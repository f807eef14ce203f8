"""Vectors, scores and classes of tiny random models equal those of transformers, and their bits do not depend on
the other texts of a request. The models are made here by PENSTOCK_ORACLE_PYTHON, a Python with transformers."""

import base64
import json
import math
import os
import pathlib
import struct
import subprocess
import sys

import pytest
from penstock_testing import REPOSITORY, Server, at_once

EMBEDDERS = ["bert-mean", "bert-dense", "roberta-cls", "modernbert-mean", "qwen3-last", "llama-mean"]
COSINE = 0.99999


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    python = os.environ.get("PENSTOCK_ORACLE_PYTHON", sys.executable)
    have = subprocess.run([python, "-c", "import torch, transformers"], capture_output=True)
    if have.returncode != 0:
        pytest.skip("no transformers: set PENSTOCK_ORACLE_PYTHON to a Python that has it")
    folder = tmp_path_factory.mktemp("vector_models")
    script = REPOSITORY / "tests" / "oracle" / "make_vector_models.py"
    subprocess.run([python, script, folder], check=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    return pathlib.Path(folder)


def expected(models, name):
    return json.loads((models / f"{name}.json").read_text())


def cosine(a, b):
    product = sum(x * y for x, y in zip(a, b, strict=True))
    return product / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


def vectors(server, texts, **more):
    answer = server.json("POST", "/v1/embeddings", {"input": texts, **more})
    assert [item["index"] for item in answer["data"]] == list(range(len(answer["data"])))
    return [item["embedding"] for item in answer["data"]]


@pytest.mark.parametrize("name", EMBEDDERS)
def test_embeddings_equal_those_of_transformers(models, name):
    want = expected(models, name)
    with Server("--dtype", "float32", model=models / name) as server:
        together = vectors(server, want["texts"])
        for mine, theirs in zip(together, want["vectors"], strict=True):
            assert cosine(mine, theirs) >= COSINE
            assert max(abs(x - y) for x, y in zip(mine, theirs)) < 1e-4
        alone = [vectors(server, text)[0] for text in want["texts"]]
        assert alone == together
        # Requests at the same time share calls and steps.
        many = at_once(len(want["texts"]) * 4,
                       lambda i: vectors(server, want["texts"][i % len(want["texts"])])[0])
        assert many == together * 4


def test_bits_do_not_depend_on_the_step_size(models):
    texts = expected(models, "llama-mean")["texts"]
    with Server("--dtype", "float32", model=models / "llama-mean") as server:
        whole = vectors(server, texts)
    with Server("--dtype", "float32", "--max-step-tokens", "32", model=models / "llama-mean") as server:
        assert vectors(server, texts) == whole  # the longest text has 92 tokens


@pytest.mark.parametrize("name", ["bert-mean", "qwen3-last"])
def test_two_ranks(models, name):
    want = expected(models, name)
    with Server("--dtype", "float32", "--num-shard", "2", model=models / name) as server:
        for mine, theirs in zip(vectors(server, want["texts"]), want["vectors"], strict=True):
            assert cosine(mine, theirs) >= COSINE


def test_forms_of_embeddings(models):
    texts = expected(models, "bert-mean")["texts"]
    with Server("--dtype", "float32", model=models / "bert-mean") as server:
        answer = server.json("POST", "/v1/embeddings", {"input": texts[1], "model": "tgi"})
        assert answer["object"] == "list" and answer["usage"]["prompt_tokens"] == 9
        whole = answer["data"][0]["embedding"]
        coded = vectors(server, texts[1], encoding_format="base64")[0]
        assert base64.b64decode(coded) == struct.pack("<64f", *whole)
        short = vectors(server, texts[1], dimensions=16)[0]
        assert len(short) == 16 and sum(x * x for x in short) == pytest.approx(1, abs=1e-6)
        assert cosine(short, whole[:16]) == pytest.approx(1, abs=1e-6)
        ids = [2] + [5] * 3 + [3]
        assert vectors(server, [ids, ids]) == vectors(server, ids) * 2
        assert server.json("POST", "/embed", {"inputs": [texts[1]]}) == [whole]
        assert vectors(server, texts[3], truncate_prompt_tokens=20) == vectors(server, "ab " * 18)
        scores = [item["score"] for item in server.json(
            "POST", "/score", {"text_1": texts[0], "text_2": texts[1:3]})["data"]]
        pair = vectors(server, texts[:3])
        assert scores == pytest.approx([cosine(pair[0], v) for v in pair[1:]], abs=1e-6)


def test_refusals_name_field_value_and_limit(models):
    with Server("--max-embed-batch-size", "3", model=models / "bert-mean") as server:
        def refusal(path, body, status=400):
            return server.json("POST", path, body, expect=status)["error"]
        error = refusal("/v1/embeddings", {"input": "ab " * 200})
        assert error["param"] == "input" and "202" in error["message"] and "128" in error["message"]
        error = refusal("/v1/embeddings", {"input": ["a"] * 4})
        assert error["param"] == "input" and "from 1 to 3" in error["message"]
        assert refusal("/v1/embeddings", {"input": "a", "dimensions": 65})["param"] == "dimensions"
        assert refusal("/v1/embeddings", {"input": "a", "encoding_format": "x"})["param"] == "encoding_format"
        assert refusal("/v1/embeddings", {"input": [[1, 999999]]})["param"] == "input"
        assert refusal("/classify", {"input": "a"})["param"] == "model"
        assert refusal("/v1/embeddings", {"input": "a", "model": "other"}, 404)["code"] == "model_not_found"
        error = refusal("/v1/completions", {"prompt": "a"})
        assert "generates no text" in error["message"]
        assert server.json("GET", "/info")["max_input_tokens"] == 128
        server.json("POST", "/v1/embeddings", {"input": ["a", "b"]})
        assert server.metrics()["penstock_vector_texts_total"] == 2


def test_a_generating_model_gives_no_vectors():
    with Server() as server:
        for path, body in [("/v1/embeddings", {"input": "a"}), ("/classify", {"input": "a"}),
                           ("/rerank", {"query": "a", "documents": ["b"]})]:
            error = server.json("POST", path, body, expect=400)["error"]
            assert error["param"] == "model" and "gives no vectors" in error["message"]


def test_cross_encoder(models):
    want = expected(models, "bert-rank")
    with Server("--dtype", "float32", model=models / "bert-rank") as server:
        firsts, seconds = zip(*want["pairs"])
        data = server.json("POST", "/score", {"text_1": list(firsts), "text_2": list(seconds)})["data"]
        assert [item["score"] for item in data] == pytest.approx(want["scores"], abs=1e-5)
        documents = [{"text": seconds[1]}, seconds[0], seconds[2]]
        answer = server.json("POST", "/v1/rerank", {"query": "mill", "documents": documents, "top_n": 2})
        scores = [r["relevance_score"] for r in answer["results"]]
        assert len(scores) == 2 and scores == sorted(scores, reverse=True)
        by_index = {r["index"]: r for r in answer["results"]}
        for index, result in by_index.items():
            text = documents[index]["text"] if index == 0 else documents[index]
            assert result["document"]["text"] == text
            alone = server.json("POST", "/score", {"text_1": "mill", "text_2": text})["data"][0]["score"]
            assert result["relevance_score"] == alone


@pytest.mark.parametrize("name", ["modernbert-classes", "roberta-classes"])
def test_classes(models, name):
    want = expected(models, name)
    with Server("--dtype", "float32", model=models / name) as server:
        data = server.json("POST", "/classify", {"input": want["texts"]})["data"]
        for item, probs in zip(data, want["probs"], strict=True):
            assert item["probs"] == pytest.approx(probs, abs=1e-5)
            assert item["label"] == f"LABEL_{probs.index(max(probs))}"
            assert item["num_classes"] == len(probs)
