"""The same weights in safetensors and GGUF: Penstock and llama.cpp select the same ids.

Needs tests/bench/cpu/build_llama, and typing_extensions for the bindings in its sources. Not part of `make test`:
  python3 -m pytest tests/bench/cpu/test_gguf.py
"""

import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from programs import BIN, LLAMA, Server  # noqa: E402

PROMPT = "Sphinx of black quartz"
COUNT = 24


# Not qwen2: llama.cpp needs heads * head size = hidden size there, and the tiny shape has more.
@pytest.mark.parametrize("kind", ["llama", "qwen3"])
def test_same_ids(tmp_path, kind):
    if not (LLAMA / "bin" / "llama-bench").exists():
        pytest.skip("llama.cpp is not built: tests/bench/cpu/build_llama")
    make = [BIN / "penstock-make-model", "--output", tmp_path / "model", "--type", kind, "--dtype", "float32"]
    subprocess.run([str(c) for c in [*make, "--gguf", tmp_path / "model.gguf"]], check=True)
    with Server(model=tmp_path / "model") as server:
        tokens = server.generate(PROMPT, max_new_tokens=COUNT)["details"]["tokens"]
    ours = [token["id"] for token in tokens]
    prompt = [3 + byte for byte in PROMPT.encode()]  # the made tokenizer's ids
    command = [sys.executable, HERE / "llama_ids.py", tmp_path / "model.gguf", len(ours), *prompt]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=True)
    assert ours == [int(word) for word in done.stdout.split()]
