"""Writes tiny random embedding models and classifiers, and what transformers makes of some texts.

make_vector_models.py FOLDER: FOLDER/NAME/ is a model and FOLDER/NAME.json its expected vectors, as
{"texts": [...], "pairs": [[a, b], ...], "vectors": [[...]], "scores": [...]}.
"""

import json
import pathlib
import sys

import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

TEXTS = ["a", "the old mill stood beside the river", "Once upon a time there was a fox",
         "ab " * 90, "river river fox", "one two three four five six seven eight nine ten"]
PAIRS = [["who lived there", "Once upon a time there was a fox"], ["mill", "the old mill"],
         ["fox", "one two three"]]
WORDS = ("the old mill stood beside river once upon a time there was fox one two three four five "
         "six seven eight nine ten ab who lived").split()
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SIZES = dict(hidden_size=64, num_hidden_layers=3, num_attention_heads=4, intermediate_size=96)


def write_tokenizer(folder, pair_types):
    letters = [chr(c) for c in range(97, 123)]
    vocabulary = {w: i for i, w in enumerate(
        dict.fromkeys(SPECIAL + letters + ["##" + c for c in letters] + WORDS))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    second = 1 if pair_types else 0
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair=f"[CLS] $A [SEP] $B:{second} [SEP]:{second}",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]")
    fast.save_pretrained(folder)
    return fast, len(vocabulary)


def write_modules(folder, pooling, normalized=True, dense=None):
    modules = ["Transformer", "Pooling"] + (["Dense"] if dense else [])
    modules += ["Normalize"] if normalized else []
    paths = ["" if kind == "Transformer" else f"{i}_{kind}" for i, kind in enumerate(modules)]
    (folder / "modules.json").write_text(json.dumps([
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (kind, path) in enumerate(zip(modules, paths))]))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({
        "word_embedding_dimension": 64, f"pooling_mode_{pooling}": True}))
    if dense:
        from safetensors.torch import save_file
        (folder / "2_Dense").mkdir()
        (folder / "2_Dense" / "config.json").write_text(json.dumps({
            "in_features": 64, "out_features": dense.out_features, "bias": True,
            "activation_function": "torch.nn.modules.activation.Tanh"}))
        save_file({"linear.weight": dense.weight.detach(), "linear.bias": dense.bias.detach()},
                  folder / "2_Dense" / "model.safetensors")


def randomize(model):
    """Weights of a size that makes every part count."""
    for name, weight in model.named_parameters():
        if weight.dim() > 1:
            torch.nn.init.normal_(weight, std=0.15)
        elif "bias" in name:
            torch.nn.init.normal_(weight, std=0.1)
        else:
            torch.nn.init.normal_(weight, mean=1.0, std=0.1)
    return model.eval()


def pool(hidden, how):
    if how == "cls_token":
        return hidden[0]
    if how == "lasttoken":
        return hidden[-1]
    return hidden.mean(0) if how == "mean_tokens" else hidden.max(0).values


def embeddings(model, tokenizer, how, dense, normalized):
    vectors = []
    for text in TEXTS:
        ids = tokenizer(text, return_tensors="pt")
        ids.pop("token_type_ids", None)
        vector = pool(model(**ids).last_hidden_state[0], how)
        if dense:
            vector = torch.tanh(dense(vector))
        vectors.append((vector / vector.norm() if normalized else vector).tolist())
    return vectors


def embedder(folder, config, how, pair_types=True, dense=None, normalized=True):
    tokenizer, _ = write_tokenizer(folder, pair_types)
    model = randomize(transformers.AutoModel.from_config(config, attn_implementation="eager"))
    model.save_pretrained(folder)
    write_modules(folder, how, normalized, dense)
    return {"texts": TEXTS, "vectors": embeddings(model, tokenizer, how, dense, normalized)}


def classifier(folder, config, pair_types, scores_pairs):
    tokenizer, _ = write_tokenizer(folder, pair_types)
    model = randomize(transformers.AutoModelForSequenceClassification.from_config(
        config, attn_implementation="eager"))
    model.save_pretrained(folder)
    if scores_pairs:
        logits = [model(**tokenizer(a, b, return_tensors="pt", return_token_type_ids=pair_types))
                  .logits[0] for a, b in PAIRS]
        return {"pairs": PAIRS, "scores": [torch.sigmoid(x)[0].item() for x in logits]}
    logits = [model(**tokenizer(t, return_tensors="pt", return_token_type_ids=pair_types)).logits[0]
              for t in TEXTS]
    return {"texts": TEXTS, "probs": [torch.softmax(x, -1).tolist() for x in logits]}


def main():
    root = pathlib.Path(sys.argv[1])
    torch.manual_seed(5)
    torch.set_grad_enabled(False)
    _, words = write_tokenizer(root / "tokenizer", True)
    tokens = dict(vocab_size=words, pad_token_id=0, max_position_embeddings=128)
    ends = dict(bos_token_id=2, eos_token_id=3)
    modern = dict(**tokens, **ends, **SIZES, cls_token_id=2, sep_token_id=3, local_attention=16)
    t = transformers
    dense = torch.nn.Linear(64, 24)
    made = {
        "bert-mean": lambda f: embedder(f, t.BertConfig(**tokens, **SIZES, is_matryoshka=True),
                                        "mean_tokens"),
        "bert-dense": lambda f: embedder(f, t.BertConfig(**tokens, **SIZES), "cls_token",
                                         dense=dense, normalized=False),
        "roberta-cls": lambda f: embedder(
            f, t.XLMRobertaConfig(**{**tokens, "pad_token_id": 1, "max_position_embeddings": 130},
                                  **ends, **SIZES, type_vocab_size=1), "cls_token", False),
        "modernbert-mean": lambda f: embedder(f, t.ModernBertConfig(**modern), "mean_tokens"),
        "qwen3-last": lambda f: embedder(
            f, t.Qwen3Config(**tokens, **ends, **SIZES, num_key_value_heads=2, head_dim=16),
            "lasttoken"),
        "llama-mean": lambda f: embedder(
            f, t.LlamaConfig(**tokens, **ends, **SIZES, num_key_value_heads=2), "mean_tokens"),
        "bert-rank": lambda f: classifier(
            f, t.BertConfig(**tokens, **SIZES, num_labels=1), True, True),
        "modernbert-classes": lambda f: classifier(
            f, t.ModernBertConfig(**modern, num_labels=3, classifier_pooling="mean"), False, False),
        "roberta-classes": lambda f: classifier(
            f, t.XLMRobertaConfig(**{**tokens, "pad_token_id": 1, "max_position_embeddings": 130},
                                  **ends, **SIZES, type_vocab_size=1, num_labels=4), False, False),
    }
    for name, make in made.items():
        folder = root / name
        folder.mkdir(parents=True)
        (root / f"{name}.json").write_text(json.dumps(make(folder)))


main()
