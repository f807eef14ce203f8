"""generate.v3.TextGenerationService on real and simulated shards, as a direct client uses it.

PENSTOCK_LONG_TESTS=1 generates 512 tokens instead of 24.
"""

import concurrent.futures
import json
import os
import random
import re
import shutil
import threading
import time

import grpc
import pytest
from generate_group import GenerateGroup, generate_v3, pb
from grpc_health.v1 import health_pb2, health_pb2_grpc
from native_client import Shard, solo_plans
from penstock_testing import DEMO_MODEL, Server

FLOAT = ("--dtype", "float32", "--kv-cache-memory", "96MB")
TOKENS = 512 if os.environ.get("PENSTOCK_LONG_TESTS") else 24
ROWS = 32


@pytest.fixture(scope="module")
def endless(tmp_path_factory):
    """The demo model with an end token that it never generates, so every request runs to its length."""
    model = tmp_path_factory.mktemp("model") / "endless"
    shutil.copytree(DEMO_MODEL, model)
    for name in ("config.json", "generation_config.json"):
        values = json.loads((model / name).read_text())
        values["eos_token_id"] = 0
        (model / name).write_text(json.dumps(values))
    return model


@pytest.fixture(scope="module")
def two_ranks(endless):
    with GenerateGroup("--model-id", endless, *FLOAT, ranks=2) as group:
        yield group


@pytest.fixture
def group(request, endless):
    """The group of `ranks` shards: that of all tests, or one of its own."""
    if request.param == 2:
        yield request.getfixturevalue("two_ranks")
        return
    with GenerateGroup("--model-id", endless, *FLOAT, ranks=request.param) as own:
        yield own


def prompts():
    words = ["The cat", "Once upon a time", "Hello", "A small boat", "The old man", "My friend"]
    return [f"{words[i % len(words)]} {words[i * 5 % 6].lower()} {i}" for i in range(ROWS)]


def lengths():
    """Some end on the way, so that batches are filtered."""
    return [TOKENS if i % 4 else TOKENS // 2 + i for i in range(ROWS)]


def over_http(model, ranks):
    def ask(case):
        text, length = case
        answer = server.generate(text, max_new_tokens=length)
        return [token["id"] for token in answer["details"]["tokens"]]

    with Server(*FLOAT, "--num-shard", str(ranks), model=model) as server:
        with concurrent.futures.ThreadPoolExecutor(ROWS) as pool:
            return list(pool.map(ask, zip(prompts(), lengths())))


@pytest.mark.parametrize("group", [1, 2], indirect=True)
def test_joined_and_filtered_batches_give_the_text_of_http(endless, group):
    requests = [generate_v3.request(i, text, length)
                for i, (text, length) in enumerate(zip(prompts(), lengths()))]
    conversation = generate_v3.Conversation(group)
    first = conversation.prefill(generate_v3.batch(0, requests[:ROWS // 2]))
    for _ in range(3):
        first = conversation.decode(first)
    second = conversation.prefill(generate_v3.batch(1, requests[ROWS // 2:]))
    both = conversation.decode(first, second)
    assert both.id == 0 and both.size == ROWS
    conversation.finish(both)
    assert [len(conversation.ids[i]) for i in range(ROWS)] == lengths()
    assert [conversation.ids[i] for i in range(ROWS)] == over_http(endless, group.ranks)


def error_of(future):
    with pytest.raises(grpc.RpcError) as raised:
        future.result()
    return raised.value.code(), raised.value.details()


def one(number, text="The cat", length=3, batch=7):
    return pb.PrefillRequest(batch=generate_v3.batch(batch, [
        generate_v3.request(number, text, length)]))


def test_a_call_to_one_rank_only_times_out_and_both_ranks_continue(two_ranks):
    kept, _ = two_ranks.step("Prefill", one(1, length=30, batch=1))
    for rank, stub in enumerate(two_ranks.stubs):
        begin = time.monotonic()
        code, text = error_of(stub.Prefill.future(one(2), timeout=1))
        assert code == grpc.StatusCode.DEADLINE_EXCEEDED
        assert f"came to rank {rank}, not to rank {1 - rank} of 2" in text
        assert time.monotonic() - begin < 1
    # One Generation over both ranks, and earlier batches continue.
    batch, generations = two_ranks.step("Prefill", one(2))
    assert [g.request_id for g in generations] == [2]
    both, generations = two_ranks.step("Decode", pb.DecodeRequest(batches=[kept, batch]))
    assert [g.request_id for g in generations] == [1, 2]
    two_ranks.call("ClearCache", pb.ClearCacheRequest(id=both.id))


def test_ranks_that_get_calls_in_another_order_run_them_in_one(two_ranks):
    """As the health check's Prefill, which TGI's router sends while a step runs."""
    batch, _ = two_ranks.step("Prefill", one(1, length=20))
    decode = pb.DecodeRequest(batches=[batch])
    calls = [("Decode", decode), ("Prefill", one(9, length=1, batch=2**64 - 1))]
    futures = []
    for stub, order in zip(two_ranks.stubs, (calls, calls[::-1])):
        for method, request in order:
            futures.append(getattr(stub, method).future(request, timeout=30))
    advanced = [g.request_id for future in futures for g in future.result().generations]
    assert sorted(advanced) == [1, 9]
    two_ranks.clear()


def test_ranks_agree_after_a_cancelled_call(two_ranks):
    futures = [stub.Prefill.future(one(1, length=20), timeout=30) for stub in two_ranks.stubs]
    for future in futures:
        future.cancel()
    two_ranks.clear()
    conversation = generate_v3.Conversation(two_ranks)
    conversation.finish(conversation.prefill(one(2, length=5).batch))
    assert len(conversation.ids[2]) == 5


def test_a_restarted_rank_joins_a_new_group(two_ranks):
    batch, _ = two_ranks.step("Prefill", one(1, length=20))
    two_ranks.restart_rank(1)
    lost = [stub.Decode.future(pb.DecodeRequest(batches=[batch]), timeout=20)
            for stub in two_ranks.stubs]
    for future in lost:
        assert error_of(future)[0] == grpc.StatusCode.INTERNAL
    conversation = generate_v3.Conversation(two_ranks)
    conversation.finish(conversation.prefill(one(2, length=5).batch))
    assert len(conversation.ids[2]) == 5


def test_errors_are_those_of_tgi_and_the_shard_continues(two_ranks):
    def refused(method, request):
        futures = [getattr(stub, method).future(request, timeout=20) for stub in two_ranks.stubs]
        answers = {error_of(future) for future in futures}
        assert len(answers) == 1
        return answers.pop()

    internal = grpc.StatusCode.INTERNAL
    missing = pb.DecodeRequest(batches=[pb.CachedBatch(id=99)])
    assert refused("Decode", missing) == (internal, "Batch ID 99 not found in cache.")
    assert refused("Decode", pb.DecodeRequest()) == (internal, "Must provide at least one batch")
    assert refused("FilterBatch", pb.FilterBatchRequest(batch_id=99, request_ids=[1])) == (
        internal, "Batch ID 99 not found in cache.")
    code, text = refused("Prefill", one(1, length=100000))
    assert code == grpc.StatusCode.INVALID_ARGUMENT and "`max_new_tokens`" in text
    code, text = refused("Warmup", pb.WarmupRequest(max_total_tokens=10**6))
    assert code == grpc.StatusCode.INVALID_ARGUMENT and "`max_total_tokens`" in text
    two_ranks.call("ClearCache", pb.ClearCacheRequest(id=99))
    assert two_ranks.step("Prefill", one(1, length=1))[1][0].request_id == 1


def test_native_driver_and_generate_v3_exclude_each_other(two_ranks):
    natives = [Shard(f"{two_ranks.prefix}-{rank}") for rank in range(2)]
    configure = {"epoch": 1, "world_size": 2, "fingerprint": natives[0].call("Describe").result(
    ).fingerprint, "rendezvous": f"penstock-test-{os.getpid()}-seat",
        "limits": {"max_step_tokens": 64, "max_sequences": 8, "max_sequence_length": 128}}

    def all_native(method, **fields):
        return [shard.call(method, **{**fields, **({"rank": rank} if method == "Configure" else {})})
                for rank, shard in enumerate(natives)]

    two_ranks.step("Prefill", one(1, length=20))
    code, text = error_of(all_native("Configure", **configure)[0])
    assert code == grpc.StatusCode.FAILED_PRECONDITION and "generate.v3 drives this shard" in text
    two_ranks.clear()
    for method, fields in (("Configure", configure), ("Warmup", {"epoch": 1}),
                           ("Commit", {"epoch": 1, "blocks": [8]})):
        [future.result() for future in all_native(method, **fields)]
    plans, release = solo_plans(natives[0], 1, [5, 6, 7], 1), threading.Event()

    def feed():
        yield plans[0]
        release.wait(30)

    streams = [shard.execute(feed()) for shard in natives]
    for stream in streams:
        next(stream)
    code, text = error_of(two_ranks.stubs[0].Prefill.future(one(2), timeout=20))
    assert code == grpc.StatusCode.FAILED_PRECONDITION and "one driver at a time" in text
    release.set()
    for stream in streams:
        assert list(stream) == []
    for shard in natives:
        shard.close()
    assert two_ranks.step("Prefill", one(2, length=1))[1][0].request_id == 2


def test_grammars_hold_or_are_refused_by_name(two_ranks):
    """TGI's router sends every grammar as REGEX. It converts JSON schemas before."""
    request = one(1, length=40)
    request.batch.requests[0].parameters.grammar = "(yes|no), [0-9]{3}"
    request.batch.requests[0].parameters.grammar_type = pb.GRAMMAR_TYPE_REGEX
    if "grammar" not in two_ranks.capabilities():
        for future in [stub.Prefill.future(request, timeout=20) for stub in two_ranks.stubs]:
            assert error_of(future) == (
                grpc.StatusCode.UNIMPLEMENTED,
                "request 1: `grammar` is not supported by this shard")
        return
    conversation = generate_v3.Conversation(two_ranks)
    conversation.finish(conversation.prefill(request.batch))
    assert re.fullmatch("(yes|no), [0-9]{3}", conversation.texts[1]), conversation.texts
    # One that cannot be compiled ends its own call alone: the first that finds it so. Rank 0 compiles, and knows why.
    request.batch.requests[0].parameters.grammar = "("
    futures = [stub.Prefill.future(request, timeout=20) for stub in two_ranks.stubs]
    while all(future.exception() is None for future in futures):
        again = pb.DecodeRequest(batches=[futures[0].result().batch])
        futures = [stub.Decode.future(again, timeout=20) for stub in two_ranks.stubs]
    code, text = [error_of(future) for future in futures][0]
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert text.startswith("request 1: grammar: ")
    assert two_ranks.step("Prefill", one(2, length=1))[1][0].request_id == 2


def test_reflection_and_health_name_the_service(two_ranks):
    service = "generate.v3.TextGenerationService"
    shard = Shard(f"{two_ranks.prefix}-0")
    assert {service, "penstock.v1.Shard"} <= set(shard.reflection.get_services())
    health = health_pb2_grpc.HealthStub(shard.channel)
    answer = health.Check(health_pb2.HealthCheckRequest(service=service))
    assert answer.status == health_pb2.HealthCheckResponse.SERVING
    shard.close()
    for stub in two_ranks.stubs:
        stub.Health(pb.HealthRequest(), timeout=10)
        assert stub.Info(pb.InfoRequest(), timeout=10).block_size == 16


def test_many_calls_that_are_cancelled_or_reach_one_rank_only():
    """Each client's calls are interrupted at random, and the ranks still agree."""
    seed = random.randrange(2**32)
    print("seed", seed)

    def client(number):
        dice = random.Random(seed + number)
        done = 0
        for batch_id in range(number * 100, number * 100 + 8):
            cached, _ = group.step("Prefill", one(batch_id, length=dice.randint(2, 10),
                                                  batch=batch_id))
            while cached is not None:
                decode = pb.DecodeRequest(batches=[cached])
                chance = dice.random()
                if chance < 0.1:
                    error_of(dice.choice(group.stubs).Decode.future(decode, timeout=0.1))
                elif chance < 0.2:
                    for stub in group.stubs:
                        stub.Decode.future(decode, timeout=20).cancel()
                    group.call("ClearCache", pb.ClearCacheRequest(id=batch_id))
                    break
                else:
                    cached, _ = group.step("Decode", decode)
            done += 1
        return done

    with GenerateGroup("--model-id", DEMO_MODEL, ranks=2, program="penstock-simshard") as group:
        group.step("Prefill", one(1, length=1))
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            assert list(pool.map(client, range(1, 5))) == [8] * 4
        group.clear()
        assert group.step("Prefill", one(2, length=1))[1][0].request_id == 2


def test_a_failed_step_ends_its_batches_and_the_next_prefill_works():
    with GenerateGroup("--model-id", DEMO_MODEL, "--faults", "fail at=3 times=1",
                       program="penstock-simshard") as group:
        batch, _ = group.step("Prefill", one(1, length=20))
        batch, _ = group.step("Decode", pb.DecodeRequest(batches=[batch]))
        decode = pb.DecodeRequest(batches=[batch])
        code, text = error_of(group.stubs[0].Decode.future(decode, timeout=20))
        assert code == grpc.StatusCode.INTERNAL and "fails as asked" in text
        assert "not found in cache" in error_of(group.stubs[0].Decode.future(decode, timeout=20))[1]
        conversation = generate_v3.Conversation(group)
        conversation.finish(conversation.prefill(one(2, length=5).batch))
        assert len(conversation.ids[2]) == 5


def test_each_rank_logs_the_trace_of_the_prefill(endless):
    """As in the native protocol. A malformed header is ignored."""
    good = [f"00-{number:032x}-00f067aa0ba902b7-01" for number in (1, 2)]
    later = f"cc-{3:032x}-00f067aa0ba902b7-00"
    bad = [f"00-{0:032x}-00f067aa0ba902b7-01", f"00-{4:032x}-00f067aa0ba902b7-01-more",
           f"00-{5:032X}-00F067AA0BA902B7-01", "5" * 4000]
    with GenerateGroup("--model-id", endless, *FLOAT, "--log-level", "debug", ranks=2) as group:
        for number, values in enumerate([(bad[0],) * 2, (bad[1],) * 2, (bad[2],) * 2, (bad[3],) * 2,
                                         good, (later + "-more",) * 2]):
            futures = [stub.Prefill.future(one(number, length=1), timeout=30,
                                           metadata=[("traceparent", value)])
                       for stub, value in zip(group.stubs, values)]
            assert [g.request_id for f in futures for g in f.result().generations] == [number]
        for process, mine in zip(group.processes, good):
            process.wait_said(f"starts sequence .* of {later}$")
            starts = [line.split()[-1] for line in process.lines if "starts sequence" in line]
            assert starts == [mine, later]


def test_a_simulated_shard_without_a_tokenizer_says_so():
    with GenerateGroup(program="penstock-simshard") as group:
        code, text = error_of(group.stubs[0].Prefill.future(one(1), timeout=20))
        assert code == grpc.StatusCode.FAILED_PRECONDITION and "--model-id" in text
