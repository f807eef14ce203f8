#!/usr/bin/env python3
"""A driver of the native protocol, penstock.v1.Shard, for any number of ranks: greedy, ids in, ids out.

    protoc -I proto --python_out=. --grpc_out=. --plugin=protoc-gen-grpc=$(which grpc_python_plugin) \
        --experimental_allow_proto3_optional penstock/v1/shard.proto
    python3 native_v1.py SOCKET_PREFIX RANKS MAX_NEW_TOKENS TOKEN...
"""

import argparse
import time

import grpc
from penstock.v1 import shard_pb2 as pb
from penstock.v1 import shard_pb2_grpc

SECONDS = 60


def connect(path):
    channel = grpc.insecure_channel(f"unix:{path}",
                                    options=[("grpc.default_authority", "localhost")])
    return shard_pb2_grpc.ShardStub(channel)


class Group:
    def __init__(self, prefix, ranks):
        self.stubs = [connect(f"{prefix}-{rank}") for rank in range(ranks)]
        for stub in self.stubs:
            last = list(stub.WatchLoad(pb.WatchLoadRequest()))[-1]  # ends when it is loaded
            assert not last.error, last.error

    def all(self, method, requests):
        """One call on every rank at the same time: the ranks wait for each other."""
        futures = [getattr(stub, method).future(request, timeout=SECONDS)
                   for stub, request in zip(self.stubs, requests)]
        return [future.result() for future in futures]

    def form(self, max_length=1024):
        """Describe -> Configure -> Warmup -> Commit. The epoch must be above the last group's."""
        world = len(self.stubs)
        self.epoch = time.time_ns()
        facts = self.all("Describe", [pb.DescribeRequest()] * world)
        self.block_size = facts[0].block_size
        self.all("Configure", [pb.ConfigureRequest(
            epoch=self.epoch, world_size=world, rank=rank, fingerprint=facts[rank].fingerprint,
            rendezvous=f"example-{self.epoch}", limits=pb.Limits(
                max_step_tokens=512, max_sequences=8,
                max_sequence_length=min(max_length, facts[rank].max_position)))
            for rank in range(world)])
        warm = self.all("Warmup", [pb.WarmupRequest(epoch=self.epoch)] * world)
        # Without window_tables in the limits all KV groups have as many blocks.
        blocks = min(answer.blocks[0] for answer in warm)
        self.all("Commit", [pb.CommitRequest(epoch=self.epoch, blocks=[blocks])] * world)

    def plans(self, prompt, max_new_tokens):
        """The prompt, then one decode for each further token. Sent one by one here; a driver that
        wants speed keeps two under way."""
        first = pb.StepPlan(
            starts=[pb.SequenceStart(
                slot=0, sequence=1, prompt=prompt, prompt_length=len(prompt),
                max_new_tokens=max_new_tokens,
                sampling={"temperature": 1, "top_p": 1, "typical_p": 1, "repetition_penalty": 1})],
            block_ops=[pb.BlockOp(kind=pb.BLOCK_OP_KIND_APPEND, slot=0, dst=block) for block in
                       range(-(-(len(prompt) + max_new_tokens) // self.block_size))],
            segments=[pb.Segment(prompt=pb.PromptSegment(
                slot=0, count=len(prompt), logits=pb.LOGITS_WANTED_LAST))])
        decode = pb.StepPlan(segments=[pb.Segment(decode=pb.DecodeSegment(slot=0, max_rows=1))])
        for step, plan in enumerate([first] + [decode] * (max_new_tokens - 1), 1):
            plan.epoch, plan.step = self.epoch, step
            yield plan

    def generate(self, prompt, max_new_tokens):
        streams = [stub.Execute(self.plans(prompt, max_new_tokens)) for stub in self.stubs]
        tokens = []
        for results in zip(*streams):
            assert len({result.digest for result in results}) == 1, "the ranks are out of step"
            for sequence in results[0].sequences:  # rank 0 alone has them
                tokens += [token.token for token in sequence.tokens]
        return tokens


def main():
    parser = argparse.ArgumentParser(description="A driver of the native protocol.")
    parser.add_argument("prefix", metavar="SOCKET_PREFIX")
    parser.add_argument("ranks", type=int)
    parser.add_argument("max_new_tokens", type=int)
    parser.add_argument("prompt", metavar="TOKEN", type=int, nargs="+")
    arguments = parser.parse_args()
    group = Group(arguments.prefix, arguments.ranks)
    group.form()
    print(*group.generate(arguments.prompt, arguments.max_new_tokens))


if __name__ == "__main__":
    main()
