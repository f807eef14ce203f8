"""--speculate: fewer steps for text that repeats itself, the same answers to the bit."""

from penstock_testing import Server, at_once

REPEATED = "One two three. One two three. One two three. One two"
REQUESTS = [(REPEATED, {}),
            ("Once upon a time there was a little dog. " * 3, {}),
            ("Once upon a time", {"do_sample": True, "seed": 3, "temperature": 0.8}),
            (REPEATED, {"do_sample": True, "seed": 4, "repetition_penalty": 1.1}),
            (REPEATED, {"stop": ["three"]})]


def answer_of(server, i):
    """Text, ids and logprobs, and why it ended."""
    inputs, more = REQUESTS[i]
    answer = server.generate(inputs, max_new_tokens=40, **more)
    details = answer["details"]
    return (answer["generated_text"], details["finish_reason"],
            [(token["id"], token["logprob"]) for token in details["tokens"]])


def check_counts(metrics, drafts):
    steps = metrics["penstock_speculation_steps_total"]
    accepted = metrics["penstock_speculation_accepted_tokens_total"]
    drafted = metrics["penstock_speculation_drafted_tokens_total"]
    generated = metrics["penstock_generated_tokens_total"]
    # As TGI: one observation for each message of tokens, of those beyond its first.
    assert metrics["tgi_request_skipped_tokens_count"] == steps
    assert metrics["tgi_request_skipped_tokens_sum"] == accepted
    if drafts == 0:
        assert steps == accepted == drafted == 0
    else:
        assert 0 < accepted < drafted <= drafts * steps  # some are wrong, too
        assert generated <= steps + accepted  # tokens after a stop string do not count


def test_answers_are_the_same_and_steps_are_fewer():
    steps = {}
    answers = {}
    for drafts in (0, 4):
        with Server("--speculate", str(drafts)) as server:
            answers[drafts] = [answer_of(server, i) for i in range(len(REQUESTS))]
            steps[drafts] = server.metrics()["penstock_step_duration_seconds_count"]
            check_counts(server.metrics(), drafts)
            assert at_once(len(REQUESTS), lambda i: answer_of(server, i)) == answers[drafts]  # noqa: B023
    assert answers[4] == answers[0]
    assert steps[4] < steps[0]
