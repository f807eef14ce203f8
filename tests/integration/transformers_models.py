"""Run with the Python that has torch and transformers, by test_engine.py.

  transformers_models.py own FOLDER MODEL [PLANT]   writes FOLDER: MODEL as a model with code of its own
  transformers_models.py ids FOLDER...              prints what generate() gives for PROMPTS, as JSON
"""

import json
import pathlib
import shutil
import sys

PROMPTS = [text * (1 + i % 4) for i, text in enumerate([
    "The river", "A small boat went ", "when morning", "0123456789", "She said: ", "To be", "over the hills and ",
    "x = x + 1; ", "deep water", "Once", "and then the rain ", "[1, 2, 3]", "north wind", "A", "seven green bottles ",
    "no one knew", "\n\n", "every day at noon ", "the end", "of all the stars in the sky "])]
NEW_TOKENS = 16
LEAST_GAP = 4e-3  # of the best two logits; nearer ones may change places

OWN_MODEL = '''
import torch
from transformers import LlamaConfig, LlamaForCausalLM


class OwnConfig(LlamaConfig):
    model_type = "own"


class OwnForCausalLM(LlamaForCausalLM):
    """A llama whose logits have a bias that no other class has, and a fault if the config plants one."""

    config_class = OwnConfig

    def forward(self, input_ids=None, attention_mask=None, position_ids=None, past_key_values=None, use_cache=None,
                logits_to_keep=0, **kwargs):
        plant = getattr(self.config, "plant", "")
        cached = past_key_values is not None and past_key_values.get_seq_length() > 0
        if plant == "cache" and cached and input_ids.shape[1] == 1:
            position_ids = position_ids + 3
        if plant == "chunks" and cached and input_ids.shape[1] > 1:
            position_ids = position_ids + 3
        output = super().forward(input_ids=input_ids, attention_mask=attention_mask, position_ids=position_ids,
                                 past_key_values=past_key_values, use_cache=use_cache,
                                 logits_to_keep=logits_to_keep, **kwargs)
        if plant == "rows" and input_ids.shape[0] > 1:
            output.logits = output.logits + output.logits.mean(0, keepdim=True)
        if plant == "nan":
            output.logits = output.logits * float("nan")
        output.logits = output.logits + 0.5 * torch.cos(torch.arange(output.logits.shape[-1]))
        return output
'''


def write_own(folder, source, plant=""):
    """`source` is a llama."""
    folder, source = pathlib.Path(folder), pathlib.Path(source)
    shutil.copytree(source, folder)
    config = json.loads((source / "config.json").read_text())
    config.update(model_type="own", architectures=["OwnForCausalLM"], plant=plant, auto_map={
        "AutoConfig": "modeling_own.OwnConfig", "AutoModelForCausalLM": "modeling_own.OwnForCausalLM"})
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "modeling_own.py").write_text(OWN_MODEL)


def generated(folder):
    """For each prompt the new ids of generate(), as far as the best two logits are not too near."""
    import torch
    from tokenizers import Tokenizer
    from transformers import AutoModelForCausalLM
    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, trust_remote_code=True)
    tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
    out = []
    for prompt in PROMPTS:
        ids = torch.tensor([tokenizer.encode(prompt).ids])
        plain = not getattr(model.config, "plant", "")
        result = model.generate(ids, max_new_tokens=NEW_TOKENS, do_sample=False, use_cache=plain, output_logits=True,
                                return_dict_in_generate=True, attention_mask=torch.ones_like(ids), pad_token_id=0)
        sure = []
        for token, logits in zip(result.sequences[0, ids.shape[1]:].tolist(), result.logits):
            best = logits[0].topk(2).values
            if best[0] - best[1] < LEAST_GAP:
                break
            sure.append(token)
        out.append(sure)
    return out


if __name__ == "__main__":
    if sys.argv[1] == "own":
        write_own(*sys.argv[2:])
    else:
        print(json.dumps([generated(folder) for folder in sys.argv[2:]]))
