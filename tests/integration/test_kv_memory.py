"""What a text keeps in memory beyond plain K/V, seen through /metrics: windows give their blocks back, a
recurrent layer keeps one state of a sequence, MLA keeps the latent and the key of RoPE."""

import sys
from dataclasses import replace

import pytest
from penstock_testing import REPOSITORY, Server, read_step_log

sys.path.insert(0, str(REPOSITORY / "tests" / "oracle"))
import checkpoints  # noqa: E402

FLOAT = 4  # bytes
BLOCK, STEP, TEXT = 4, 16, 256
OPTIONS = ("--block-size", str(BLOCK), "--max-step-tokens", str(STEP), "--max-batch-size", "4",
           "--max-input-tokens", "126", "--max-total-tokens", str(TEXT))


def checkpoint(tmp_path, name, **config):
    """The folder of a recipe's variant with other values in its configuration."""
    recipe = checkpoints.recipes()[name]
    recipe.variant = replace(recipe.variant, config=recipe.variant.config | config)
    recipe.config |= config
    recipe.write(tmp_path / name, seed=25)
    return tmp_path / name, recipe.config


def blocks_of(metrics, name):
    return sum(metrics[f'{name}{{state="{state}"}}'] for state in ("free", "used", "cached", "retiring"))


def bytes_per_token(metrics, group=0):
    return metrics[f'penstock_group_kv_bytes_per_token{{group="0",kv_group="{group}"}}']


def total_bytes(metrics):
    return metrics['penstock_group_kv_cache_bytes{group="0"}']


def test_window_layers_hold_their_window_and_one_step(tmp_path):
    window = TEXT // 8
    folder, config = checkpoint(tmp_path, "gemma3-v5_text", sliding_window=window)
    log = tmp_path / "steps.jsonl"
    with Server(*OPTIONS, "--step-log", log, model=folder) as server:
        body = {"model": "tgi", "prompt": "ab" * 60, "max_tokens": 130, "ignore_eos": True, "stream": True}
        stream = server.stream("/v1/completions", body)
        assert stream.status == 200
        seen = [server.metrics() for i, _ in enumerate(stream) if i % 8 == 0]
        metrics = server.metrics()
    steps = read_step_log(log)
    most = (window + STEP) // BLOCK + 1  # the window begins anywhere in a block
    assert max(step["blocks_used"] for step in steps) >= TEXT // BLOCK - 1, "the full layer keeps the text"
    assert window // BLOCK <= max(step["window_blocks_used"] for step in steps) <= most
    assert 0 < max(each['penstock_kv_window_blocks{state="used"}'] for each in seen) <= most
    assert metrics['penstock_group_kv_window{group="0",kv_group="1"}'] == window
    per_layer = 2 * config["num_key_value_heads"] * config["head_dim"] * FLOAT
    layers = [config["layer_types"].count(kind) for kind in ("full_attention", "sliding_attention")]
    for group, count in enumerate(layers):
        assert metrics[f'penstock_group_kv_layers{{group="0",kv_group="{group}"}}'] == count
        assert bytes_per_token(metrics, group) == count * per_layer
    assert total_bytes(metrics) == BLOCK * (
        blocks_of(metrics, "penstock_kv_blocks") * bytes_per_token(metrics, 0) +
        blocks_of(metrics, "penstock_kv_window_blocks") * bytes_per_token(metrics, 1))


def test_a_hybrid_model_keeps_full_layers_states_and_the_snapshots_of_its_plan(tmp_path):
    folder, config = checkpoint(tmp_path, "qwen3_5-v5_text")
    with Server(*OPTIONS, model=folder) as server:
        server.generate("ab" * 40, max_new_tokens=8)
        server.wait_metric('penstock_group_up{group="0"}', lambda up: up == 1)
        metrics, output = server.metrics(), server.output()
    full = config["layer_types"].count("full_attention")
    assert metrics['penstock_group_kv_layers{group="0",kv_group="0"}'] == full
    assert bytes_per_token(metrics) == full * 2 * config["num_key_value_heads"] * config["head_dim"] * FLOAT
    recurrent = config["layer_types"].count("linear_attention")
    assert metrics['penstock_group_state_layers{group="0"}'] == recurrent
    heads, size = config["linear_num_value_heads"], config["linear_value_head_dim"]
    keys = config["linear_num_key_heads"] * config["linear_key_head_dim"]
    inputs = (config["linear_conv_kernel_dim"] - 1) * (2 * keys + heads * size)
    state = metrics['penstock_group_state_bytes_per_sequence{group="0"}']
    assert state == recurrent * (inputs + heads * config["linear_key_head_dim"] * size) * FLOAT
    snapshots = metrics['penstock_group_state_snapshots{group="0"}']
    assert snapshots > 0 and f" and {snapshots:.0f} snapshots of " in output
    rest = total_bytes(metrics) - BLOCK * blocks_of(metrics, "penstock_kv_blocks") * bytes_per_token(metrics)
    sequences = rest / state - snapshots
    assert sequences == int(sequences) and f"states of {sequences:.0f} sequences" in output


@pytest.mark.parametrize("name", ["deepseek_v3-v5_plain_q", "deepseek_v2-v5_default_rope"])
def test_mla_keeps_the_latent_and_the_key_of_rope(tmp_path, name):
    folder, config = checkpoint(tmp_path, name)
    with Server(*OPTIONS, model=folder) as server:
        server.wait_metric('penstock_group_up{group="0"}', lambda up: up == 1)
        metrics = server.metrics()
    width = config["kv_lora_rank"] + config["qk_rope_head_dim"]
    assert bytes_per_token(metrics) == config["num_hidden_layers"] * width * FLOAT
    assert total_bytes(metrics) == \
        BLOCK * blocks_of(metrics, "penstock_kv_blocks") * bytes_per_token(metrics)
