"""lm-evaluation-harness over /v1/completions, against its own HF back end on the same model."""

import json

import pytest

lm_eval = pytest.importorskip("lm_eval", reason="lm_eval is not installed (pip install 'lm_eval[api]')")
pytest.importorskip("torch", reason="the HF back end of lm_eval needs torch")
pytest.importorskip("transformers", reason="the HF back end of lm_eval needs transformers")

from penstock_testing import DEMO_MODEL, Server  # noqa: E402

TOLERANCE = 1e-3
PEOPLE = ("Ada", "Ben", "Chloé", "Deniz")
THINGS = ("a red kite", "two old maps", "the blue boat", "some warm bread")
CHOICE_TASK = """
task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{text}}}}"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: "{{{{label}}}}"
metric_list: [{{metric: acc}}, {{metric: acc_norm}}]
"""
WORD_TASK = """
task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
output_type: loglikelihood
doc_to_text: "{{{{text}}}}"
doc_to_target: " {{{{word}}}}"
metric_list: [{{metric: perplexity}}, {{metric: acc}}]
"""


def completions():
    for person in PEOPLE:
        for label, thing in enumerate(THINGS):
            yield {"text": f"{person} looked at {thing}. Then {person} took", "choices": [f" {t}" for t in THINGS],
                   "label": label}


def questions():
    for number in range(12):
        choices = [f" {number + step}." for step in (1, 2, 5)]
        yield {"text": f"Question: what comes after {number}?\nAnswer:", "choices": choices, "label": 0}


def last_words():
    for person in PEOPLE:
        for thing in THINGS:
            *words, last = f"{person} had {thing} and {person} liked {thing}".split()
            yield {"text": " ".join(words), "word": last}


TASKS = {"penstock_completions": (CHOICE_TASK, completions), "penstock_questions": (CHOICE_TASK, questions),
         "penstock_last_words": (WORD_TASK, last_words)}


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    """A task manager that knows the tasks, from files as a user writes them."""
    from lm_eval.tasks import TaskManager
    folder = tmp_path_factory.mktemp("tasks")
    for name, (template, rows) in TASKS.items():
        data = folder / f"{name}.jsonl"
        data.write_text("".join(json.dumps(row) + "\n" for row in rows()))
        (folder / f"{name}.yaml").write_text(template.format(name=name, data=data))
    return TaskManager(include_path=str(folder), include_defaults=False)


def evaluate(tasks, back_end, **arguments):
    """{task: [[(log-likelihood, is greedy) of each choice] of each sample]}"""
    found = lm_eval.simple_evaluate(model=back_end, model_args=arguments, tasks=list(TASKS), task_manager=tasks,
                                    batch_size=4, log_samples=True, bootstrap_iters=0)
    samples = {}
    for task, rows in found["samples"].items():
        rows = sorted(rows, key=lambda row: row["doc_id"])
        samples[task] = [[(float(resp[0][0]), str(resp[0][1]) == "True") for resp in row["resps"]] for row in rows]
    return samples


def test_answers_and_log_likelihoods_are_those_of_the_hf_back_end(tasks):
    with Server("--dtype", "float32", "--served-model-name", "demo") as server:
        ours = evaluate(tasks, "local-completions", model="demo", base_url=f"{server.url}/v1/completions",
                        tokenizer=str(DEMO_MODEL), num_concurrent=2, add_bos_token=True)
    theirs = evaluate(tasks, "hf", pretrained=str(DEMO_MODEL), dtype="float32", device="cpu", add_bos_token=True)
    assert ours.keys() == theirs.keys() == TASKS.keys()
    for task, samples in theirs.items():
        assert len(samples) == len(ours[task]) > 0
        for number, (expected, given) in enumerate(zip(samples, ours[task])):
            where = f"{task}, sample {number}"
            assert len(given) == len(expected), where
            for (likely, greedy), (our_likely, our_greedy) in zip(expected, given):
                assert our_likely == pytest.approx(likely, abs=TOLERANCE), where
                assert our_greedy == greedy, where
            ranked = sorted((likely for likely, _ in expected), reverse=True)
            if len(ranked) > 1 and ranked[0] - ranked[1] > 2 * TOLERANCE:
                assert max(given)[0] == given[expected.index(max(expected))][0], where
