"""penstock-shard driven over its native protocol, without router or launcher."""

import json
import stat

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from native_client import Feeder, Group, Shard, solo_plans, start, tokens_of
from penstock_testing import BIN, DEMO_MODEL, Process, shared_data


def stories():
    return shared_data("models", "stories260K-hf")


def golden(model):
    return json.loads((model / "golden_greedy.json").read_text())["cases"]


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_greedy_ids_of_all_prompts_equal_the_goldens(ranks):
    """The empty prompt too, which is refused as text: it is the BOS token alone."""
    model = stories()
    with Group("--model-id", model, "--dtype", "float32", ranks=ranks) as group:
        group.form()
        for case in golden(model):
            prompt, wanted = case["prompt_ids"], case["greedy_ids"]
            plans = solo_plans(group.shards[0], group.epoch, prompt, len(wanted))
            results = group.run(plans)
            assert tokens_of(results[0]) == wanted, case["prompt"]
            for other in results[1:]:
                assert [r.digest for r in other] == [r.digest for r in results[0]]
                assert all(not r.sequences for r in other)
            group.form()  # a group may be formed again


def test_prompt_logprobs_equal_the_goldens_whole_and_in_chunks():
    model = stories()
    with Group("--model-id", model, "--dtype", "float32") as group:
        for case in golden(model):
            wanted = case.get("prompt_logprobs")
            if not wanted:
                continue
            for chunk in (None, 5):
                group.form()
                plans = solo_plans(group.shards[0], group.epoch, case["prompt_ids"], 1, chunk,
                                   "ALL")
                results = group.run(plans)[0]
                logprobs = [p for r in results for s in r.sequences for p in s.prompt_logprobs]
                expected = [p for p in wanted if p is not None]
                assert logprobs == pytest.approx(expected, abs=1e-3)


def test_sequences_join_and_leave_without_changing_others():
    """A long sequence runs, a short one joins and leaves: ids equal the solo runs."""
    with Group("--model-id", DEMO_MODEL, "--dtype", "float32") as group:
        prompt_a, prompt_b = list(range(5, 25)), list(range(30, 40))
        solo = []
        for prompt, steps in ((prompt_a, 24), (prompt_b, 5)):
            group.form()
            plans = solo_plans(group.shards[0], group.epoch, prompt, steps, ignore_eos=True)
            solo.append(tokens_of(group.run(plans)[0]))
        group.form()
        plans = solo_plans(group.shards[0], group.epoch, prompt_a, 24, ignore_eos=True)
        joined = plans[4]
        joined.MergeFrom(type(joined)(
            starts=[start(3, prompt_b, max_new_tokens=5, ignore_eos=True)],
            block_ops=[{"kind": "BLOCK_OP_KIND_APPEND", "slot": 3, "dst": 100}],
            segments=[{"prompt": {"slot": 3, "count": 10, "logits": "LOGITS_WANTED_LAST"}}]))
        for plan in plans[5:10]:
            plan.segments.add().decode.MergeFrom(
                type(plan.segments[0].decode)(slot=3, max_rows=1))
        plans[12].ends.append(3)
        results = group.run(plans)[0]
        by_slot = {0: [], 3: []}
        for result in results:
            for sequence in result.sequences:
                by_slot[sequence.slot] += [t.token for t in sequence.tokens]
        assert by_slot[0] == solo[0]
        assert by_slot[3] == solo[1]
        # Slot 3 reaches its length at plan 8. The result of its decode in plan 9 leaves it out.
        assert [len(r.sequences) for r in results[4:11]] == [2, 2, 2, 2, 2, 1, 1]
        assert results[8].sequences[1].finish == 2  # FINISH_LENGTH


def test_two_ranks_agree_on_sampled_tokens_and_repeat_them():
    with Group("--model-id", DEMO_MODEL, "--dtype", "float32", "--log-level", "debug",
               ranks=2) as group:
        runs = []
        for seed in (7, 7, 8):
            group.form()
            plans = solo_plans(group.shards[0], group.epoch, list(range(5, 25)), 20,
                               ignore_eos=True, sampling={
                                   "do_sample": True, "temperature": 1.5, "seed": seed})
            results = group.run(plans)
            assert [r.digest for r in results[0]] == [r.digest for r in results[1]]
            runs.append(tokens_of(results[0]))
        assert runs[0] == runs[1] != runs[2]
        for process in group.processes:
            process.wait_line("20 plans in, 20 results out, at most [12] in flight")


def test_min_new_tokens_delay_the_end_and_stop_tokens_end_the_output():
    model = stories()
    case = next(c for c in golden(model) if c["prompt"] == "")
    wanted = case["greedy_ids"]
    with Group("--model-id", model, "--dtype", "float32") as group:
        group.form()
        plans = solo_plans(group.shards[0], group.epoch, case["prompt_ids"], 12,
                           stop_token_ids=[wanted[6]])
        results = group.run(plans)[0]
        assert tokens_of(results) == wanted[:7]
        assert results[6].sequences[0].finish == 3  # FINISH_STOP_TOKEN
        group.form()
        plans = solo_plans(group.shards[0], group.epoch, case["prompt_ids"], 12,
                           stop_token_ids=[wanted[6]], min_new_tokens=12)
        tokens = tokens_of(group.run(plans)[0])
        assert len(tokens) == 12 and tokens[6] != wanted[6]


def test_a_reflection_client_lists_the_services_and_health_follows_loading():
    with Group("--model-id", DEMO_MODEL) as group:
        shard = group.shards[0]
        services = set(shard.reflection.get_services())
        assert {"penstock.v1.Shard", "grpc.health.v1.Health"} <= services
        health = health_pb2_grpc.HealthStub(shard.channel)
        answer = health.Check(health_pb2.HealthCheckRequest(service="penstock.v1.Shard"))
        assert answer.status == health_pb2.HealthCheckResponse.SERVING


def test_describe_tells_the_model_and_the_sockets_are_private():
    with Group("--model-id", DEMO_MODEL, "--dtype", "fp32", ranks=2) as group:
        facts, warm = group.form()
        config = json.loads((DEMO_MODEL / "config.json").read_text())
        assert facts.loaded and facts.world_size == 2
        assert facts.vocabulary == config["vocab_size"]
        assert facts.dtype == "float32" and facts.device == "cpu"
        assert facts.parameters > 1_000_000
        assert {(s.prefill_tokens > 0, s.decode_rows) for s in warm.step_times} == {
            (True, 0), (False, 1), (False, 8), (True, 8)}
        assert all(s.nanoseconds > 0 for s in warm.step_times)
        socket = f"{group.prefix}-1"
        folder = group.prefix.parent
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE((folder / "shard-1").stat().st_mode) == 0o600
        assert group.stop() == [0, 0]
        assert not folder.exists(), socket


def test_the_plan_is_printed_before_loading_and_the_cache_size_is_obeyed():
    with Group("--model-id", DEMO_MODEL, "--dtype", "float32", "--kv-cache-memory",
               "8MiB") as group:
        facts, warm = group.form()
        block_bytes = facts.kv_groups[0].bytes_per_token * facts.block_size
        assert list(warm.blocks) == [(8 << 20) // block_bytes]
        output = group.processes[0].output()
        assert output.index("memory plan of rank 0") < output.index("read and packed in")
        assert "computes in float32" in output
        assert output.index("warm-up: times steps") < output.index("step times measured")


def test_an_invalid_plan_ends_the_stream_by_name():
    with Group("--model-id", DEMO_MODEL) as group:
        group.form()
        plans = solo_plans(group.shards[0], group.epoch, [5, 6], 1)
        plans[0].segments[0].prompt.first = 1
        with pytest.raises(grpc.RpcError) as error:
            list(group.shards[0].execute(iter(plans)))
        assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert "`segments.prompt.first` must be 0" in error.value.details()


def test_a_lost_rank_ends_the_step_of_its_group():
    with Group("--model-id", DEMO_MODEL, ranks=2) as group:
        group.form()
        plans = solo_plans(group.shards[0], group.epoch, [5, 6, 7], 1)
        group.processes[1].popen.kill()
        group.processes[1].wait_exit()
        group.processes[0].popen.terminate()  # interrupts the wait for rank 1
        with pytest.raises(grpc.RpcError):
            list(group.shards[0].execute(iter(plans)))
        assert group.processes[0].wait_exit() == 0


@pytest.mark.parametrize("options, code, message", [
    (["--device", "cuda"], 2, "penstock-shard-cuda"),
    (["--world-size", "3"], 2, "--num-shard 3: must be a divisor"),
    (["--kv-cache-memory", "1000TiB"], 4, "does not fit"),
])
def test_impossible_options_are_refused_with_one_line(tmp_path, options, code, message):
    process = Process([BIN / "penstock-shard", "--model-id", DEMO_MODEL,
                       "--shard-uds-path", tmp_path / "s" / "shard", *options])
    assert process.wait_exit() == code
    assert message in process.output().splitlines()[-1]


def test_a_folder_that_is_no_model_is_named(tmp_path):
    process = Process([BIN / "penstock-shard", "--model-id", tmp_path,
                       "--shard-uds-path", tmp_path / "s" / "shard"])
    assert process.wait_exit() == 3
    assert str(tmp_path) in process.output().splitlines()[-1]


def test_simshard_hosts_all_ranks_in_one_process(tmp_path):
    prefix = tmp_path / "s" / "shard"
    process = Process([BIN / "penstock-simshard", "--shard-uds-path", prefix, "--world-size", "2",
                       "--tokens", "echo", "--model-id", DEMO_MODEL])
    try:
        for rank in (0, 1):
            process.wait_line(f"listening on .*-{rank}")
        ranks = []
        for rank in (0, 1):
            shard = Shard(f"{prefix}-{rank}")
            shard.watch_load()
            ranks.append(shard.call("Describe").result().rank)
            shard.close()
        assert ranks == [0, 1]
    finally:
        assert process.stop() == 0


def test_simshard_dies_or_hangs_at_its_step():
    limits = {"max_sequence_length": 64}
    for option, code in (("--fail-at-step", 1), ("--hang-at-step", 0)):
        with Group(option, "2", program="penstock-simshard", limits=limits) as group:
            group.form()
            plans = solo_plans(group.shards[0], group.epoch, [5, 6, 7], 2)
            # The second plan is sent after the first result: a shard that ends may lose what it has not sent.
            results = Feeder(group.shards[0], plans, depth=1)
            assert tokens_of([results.next()])
            if code == 0:  # hangs until it is told to stop
                group.processes[0].popen.terminate()
            assert group.processes[0].wait_exit() == code
            with pytest.raises(grpc.RpcError):
                results.next()
