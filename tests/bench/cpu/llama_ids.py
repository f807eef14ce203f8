"""Token ids that llama.cpp selects greedily, by the bindings that the source distribution brings.

usage: llama_ids.py MODEL.gguf COUNT ID [ID…]
"""

import importlib
import os
import pathlib
import sys
import types

LLAMA = pathlib.Path(__file__).resolve().parents[3] / "build" / "llama"


def bindings():
    """The raw bindings alone: the package itself wants libraries that are not needed here."""
    os.environ["LLAMA_CPP_LIB_PATH"] = str(LLAMA / "bin")
    package = types.ModuleType("llama_cpp")
    package.__path__ = [str(LLAMA / "source" / "llama_cpp")]
    sys.modules["llama_cpp"] = package
    return importlib.import_module("llama_cpp.llama_cpp")


def greedy(path, prompt, count):
    llama = bindings()
    llama.llama_backend_init()
    model = llama.llama_model_load_from_file(str(path).encode(), llama.llama_model_default_params())
    vocabulary = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model))
    parameters = llama.llama_context_default_params()
    parameters.n_ctx = len(prompt) + count + 8
    parameters.type_k = parameters.type_v = 0  # float32
    context = llama.llama_init_from_model(model, parameters)
    picked = []
    tokens = list(prompt)
    while len(picked) < count:
        ids = (llama.llama_token * len(tokens))(*tokens)  # the batch points into it
        if llama.llama_decode(context, llama.llama_batch_get_one(ids, len(ids))) != 0:
            raise RuntimeError("llama_decode failed")
        logits = llama.llama_get_logits_ith(context, -1)
        tokens = [max(range(vocabulary), key=logits.__getitem__)]
        picked += tokens
    return picked


if __name__ == "__main__":
    print(*greedy(sys.argv[1], [int(i) for i in sys.argv[3:]], int(sys.argv[2])))
