"""The tiny checkpoints of model types behind the launcher: they answer alone as beside others, with the options
that a type might not have. A type that cannot have an option is refused with one line."""

import pytest
from penstock_testing import BIN, BUILD, Process, Server, at_once

CHECKPOINTS = BUILD / "tests" / "model_checkpoints"
LENGTHS = ("--max-input-tokens", "44", "--max-total-tokens", "64")
PROMPTS = ["Once upon a time", "ab ab ab ab ab ab ab", "The old mill stood beside the river", "x",
           "Once upon a time there was"]

# Every kind of layer, and each option with several of them.
SERVED = {
    "gpt2": (),
    "opt": ("--num-shard", "2"),
    "deepseek_v3": ("--num-shard", "2", "--kv-layout", "padded"),
    "gemma4": ("--kv-layout", "padded", "--speculate", "3"),
    "gpt_oss": ("--num-shard", "2", "--speculate", "3"),
    "mixtral": ("--num-shard", "2", "--quantize", "int8"),
    "phi3": ("--contrastive-search", "--kv-cache-dtype", "int8", "--dtype", "bfloat16"),
    "qwen3_5": ("--num-shard", "2", "--speculate", "3"),
    "qwen3_next": ("--quantize", "int8", "--kv-cache-dtype", "int8", "--dtype", "bfloat16"),
}
REFUSED = {
    ("--kv-layout", "padded"): "`kv-layout` must be paged",
    ("--contrastive-search",): "`contrastive-search` must be off",
}


def checkpoint(model_type):
    """The first variant of the type."""
    folders = sorted(CHECKPOINTS.glob(f"{model_type}-*"))
    if not folders:
        pytest.skip(f"no checkpoint of {model_type} in {CHECKPOINTS}: build penstock_model_checkpoints")
    return folders[0]


@pytest.mark.parametrize("model_type", SERVED)
def test_answers_do_not_depend_on_others(model_type):
    options = SERVED[model_type]
    more = {"penalty_alpha": 0.6, "top_k": 4} if "--contrastive-search" in options else {}
    with Server(*LENGTHS, *options, model=checkpoint(model_type)) as server:
        def ask(i):
            answer = server.generate(PROMPTS[i], max_new_tokens=16, **more)
            return [(token["id"], token["logprob"]) for token in answer["details"]["tokens"]]

        alone = [ask(i) for i in range(len(PROMPTS))]
        assert max(map(len, alone)) == 16, "not all end early"
        assert at_once(len(PROMPTS), ask) == alone


@pytest.mark.parametrize("options", REFUSED, ids=lambda options: options[0].strip("-"))
def test_a_recurrent_type_is_refused_with_one_line(options):
    process = Process([BIN / "penstock-launcher", "--model-id", checkpoint("qwen3_next"), "--port", "0",
                       *LENGTHS, *options])
    assert process.wait_exit() != 0
    assert f"{REFUSED[options]} with model type qwen3_next: its recurrent layers" in process.lines[-1]
