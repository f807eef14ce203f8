#!/usr/bin/env python3
"""A client of generate.v3.TextGenerationService: what TGI's router does, in the fewest lines.

    protoc -I proto --python_out=. --grpc_out=. --plugin=protoc-gen-grpc=$(which grpc_python_plugin) \
        --experimental_allow_proto3_optional generate/v3/generate.proto
    python3 generate_v3.py SOCKET "Once upon a time" ["another prompt" ...]

SOCKET is that of rank 0; the other ranks are found through it. Every rank gets every call.
"""

import argparse

import grpc
from generate.v3 import generate_pb2 as pb
from generate.v3 import generate_pb2_grpc

SECONDS = 60


def connect(path):
    channel = grpc.insecure_channel(
        f"unix:{path}", options=[("grpc.default_authority", "localhost"),
                                 ("grpc.max_receive_message_length", 64 << 20)])
    return generate_pb2_grpc.TextGenerationServiceStub(channel)


class Ranks:
    """All ranks of a group, called at the same time with the same message."""

    def __init__(self, socket):
        urls = connect(socket).ServiceDiscovery(pb.ServiceDiscoveryRequest(), timeout=SECONDS).urls
        self.stubs = [connect(url.removeprefix("unix://")) for url in urls]

    def call(self, method, request, timeout=SECONDS):
        futures = [getattr(stub, method).future(request, timeout=timeout) for stub in self.stubs]
        return [future.result() for future in futures]

    def step(self, method, request, timeout=SECONDS):
        """(batch or None, generations of all ranks) of a Prefill or Decode."""
        answers = self.call(method, request, timeout)
        batch = answers[0].batch if answers[0].HasField("batch") else None
        return batch, [g for answer in answers for g in answer.generations]


def request(number, text, max_new_tokens, **more):
    """A greedy request; `more` are further fields of Request."""
    return pb.Request(
        id=number, inputs=text, input_chunks=pb.Input(chunks=[pb.InputChunk(text=text)]),
        truncate=0, add_special_tokens=True,
        stopping_parameters=pb.StoppingCriteriaParameters(max_new_tokens=max_new_tokens), **more)


def batch(number, requests):
    return pb.Batch(id=number, requests=requests, size=len(requests))


class Conversation:
    """Runs batches to their end and collects tokens and texts by request id."""

    def __init__(self, ranks):
        self.ranks = ranks
        self.ids = {}
        self.texts = {}

    def take(self, generations):
        for g in generations:
            self.ids.setdefault(g.request_id, []).extend(g.tokens.ids)
            if g.HasField("generated_text"):
                self.texts[g.request_id] = g.generated_text.text

    def live(self, cached):
        """The batch without those that have ended, or None: as TGI's router filters."""
        if cached is None:
            return None
        left = [i for i in cached.request_ids if i not in self.texts]
        if len(left) == len(cached.request_ids):
            return cached
        answers = self.ranks.call("FilterBatch", pb.FilterBatchRequest(
            batch_id=cached.id, request_ids=left))
        return answers[0].batch

    def prefill(self, new):
        cached, generations = self.ranks.step("Prefill", pb.PrefillRequest(batch=new))
        self.take(generations)
        return self.live(cached)

    def decode(self, *cached):
        """One step of several cached batches, which become one."""
        left, generations = self.ranks.step("Decode", pb.DecodeRequest(batches=cached))
        self.take(generations)
        return self.live(left)

    def finish(self, cached):
        while cached is not None:
            cached = self.decode(cached)


def main():
    parser = argparse.ArgumentParser(description="A client of generate.v3.TextGenerationService.")
    parser.add_argument("socket", help="of rank 0")
    parser.add_argument("prompts", metavar="PROMPT", nargs="+")
    arguments = parser.parse_args()
    prompts = arguments.prompts
    ranks = Ranks(arguments.socket)
    ranks.call("ClearCache", pb.ClearCacheRequest())
    conversation = Conversation(ranks)
    # The second batch joins the first after one step of it.
    first = conversation.prefill(batch(0, [request(0, prompts[0], 20)]))
    if first is not None:
        first = conversation.decode(first)
    rest = [request(i, text, 20) for i, text in enumerate(prompts[1:], 1)]
    second = conversation.prefill(batch(1, rest)) if rest else None
    both = [each for each in (first, second) if each is not None]
    if both:
        conversation.finish(conversation.decode(*both))
    for number, prompt in enumerate(prompts):
        print(f"{prompt!r} -> {conversation.texts[number]!r}")


if __name__ == "__main__":
    main()
