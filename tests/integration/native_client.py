"""A small driver of the native shard protocol: what the router does, in the fewest lines.

Messages come from the shard's own reflection service, so nothing is generated at build time.
"""

import pathlib
import tempfile

import grpc
from google.protobuf import descriptor_pool, message_factory
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)
from penstock_testing import BIN, Process

SERVICE = "penstock.v1.Shard"
SECONDS = 60
BLOCK = 16


class Shard:
    """Client of one rank's socket."""

    def __init__(self, socket):
        self.channel = grpc.insecure_channel(
            f"unix:{socket}", options=[("grpc.default_authority", "localhost")])
        grpc.channel_ready_future(self.channel).result(SECONDS)
        self.reflection = ProtoReflectionDescriptorDatabase(self.channel)
        self.pool = descriptor_pool.DescriptorPool(self.reflection)
        self.service = self.pool.FindServiceByName(SERVICE)

    def message(self, name):
        descriptor = self.pool.FindMessageTypeByName(f"penstock.v1.{name}")
        return message_factory.GetMessageClass(descriptor)

    def _types(self, method):
        found = self.service.methods_by_name[method]
        return (message_factory.GetMessageClass(found.input_type),
                message_factory.GetMessageClass(found.output_type))

    def call(self, method, **fields):
        request, response = self._types(method)
        call = self.channel.unary_unary(f"/{SERVICE}/{method}",
                                        request_serializer=request.SerializeToString,
                                        response_deserializer=response.FromString)
        return call.future(request(**fields), timeout=SECONDS)

    def watch_load(self):
        request, response = self._types("WatchLoad")
        call = self.channel.unary_stream(f"/{SERVICE}/WatchLoad",
                                         request_serializer=request.SerializeToString,
                                         response_deserializer=response.FromString)
        return list(call(request(), timeout=SECONDS))

    def execute(self, plans, timeout=SECONDS):
        """The stream of results; `plans` is an iterator that may block."""
        request, response = self._types("Execute")
        call = self.channel.stream_stream(f"/{SERVICE}/Execute",
                                          request_serializer=request.SerializeToString,
                                          response_deserializer=response.FromString)
        return call(plans, timeout=timeout)

    def close(self):
        self.channel.close()


class Group:
    """Ranks as processes, formed and committed when the constructor returns."""

    def __init__(self, *options, ranks=1, program="penstock-shard", limits=None):
        self.folder = tempfile.TemporaryDirectory(prefix="penstock-test-")
        prefix = pathlib.Path(self.folder.name) / "sockets" / "shard"
        self.processes = [
            Process([BIN / program, "--shard-uds-path", prefix, "--rank", str(rank),
                     "--world-size", str(ranks), *options], {"OMP_WAIT_POLICY": "passive"})
            for rank in range(ranks)]
        self.prefix = prefix
        self.epoch = 0
        self.limits = {"max_step_tokens": 64, "max_sequences": 8, "max_sequence_length": 512,
                       **(limits or {})}
        self.shards = []
        try:
            for rank, process in enumerate(self.processes):
                process.wait_line("listening on")
                self.shards.append(Shard(f"{prefix}-{rank}"))
            for shard in self.shards:
                last = shard.watch_load()[-1]
                assert last.done and not last.error, last.error
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.stop()

    def stop(self):
        for shard in self.shards:
            shard.close()
        codes = [process.stop() for process in self.processes]
        self.folder.cleanup()
        return codes

    def all(self, method, fields=lambda rank: {}):
        """One call on every rank at the same time."""
        futures = [shard.call(method, **fields(rank)) for rank, shard in enumerate(self.shards)]
        return [future.result() for future in futures]

    def form(self):
        self.epoch += 1
        facts = self.all("Describe")
        self.all("Configure", lambda rank: {
            "epoch": self.epoch, "world_size": len(self.shards), "rank": rank,
            "rendezvous": f"{pathlib.Path(self.folder.name).name}-{self.epoch}",
            "fingerprint": facts[rank].fingerprint, "limits": self.limits})
        warm = self.all("Warmup", lambda _: {"epoch": self.epoch})
        blocks = min(w.blocks[0] for w in warm)
        self.all("Commit", lambda _: {"epoch": self.epoch, "blocks": [blocks]})
        return facts[0], warm[0]

    def run(self, plans):
        """Results of `plans` per rank, with two plans in flight."""
        outputs = [[] for _ in self.shards]
        streams = [Feeder(shard, plans) for shard in self.shards]
        for _ in plans:
            for stream, results in zip(streams, outputs):
                results.append(stream.next())
        for stream in streams:
            stream.end()
        return outputs


class Feeder:
    """Sends the plans; at most `depth` wait for their result."""

    def __init__(self, shard, plans, depth=2):
        import queue
        self.queue = queue.Queue()
        self.rest = iter(plans)
        for _ in range(depth):
            self._send()
        self.results = shard.execute(iter(self.queue.get, None))

    def _send(self):
        plan = next(self.rest, None)
        self.queue.put(plan)

    def next(self):
        result = next(self.results)
        self._send()
        return result

    def end(self):
        self.queue.put(None)
        assert list(self.results) == []


SAMPLING = {"temperature": 1, "top_p": 1, "typical_p": 1, "repetition_penalty": 1}


def start(slot, prompt, sampling=None, **fields):
    return {"slot": slot, "sequence": 1000 + slot, "prompt": prompt, "prompt_length": len(prompt),
            "sampling": {**SAMPLING, **(sampling or {})}, **fields}


def blocks_for(slot, tokens, first):
    """Append operations for `tokens` positions, taking blocks from `first` on."""
    return [{"kind": "BLOCK_OP_KIND_APPEND", "slot": slot, "dst": first + i}
            for i in range(-(-tokens // BLOCK))]


def solo_plans(shard, epoch, prompt, steps, chunk=None, logits="LAST", sampling=None, **fields):
    """One sequence alone in slot 0: its prompt, whole or in chunks, then decodes."""
    plan = shard.message("StepPlan")
    plans = []
    chunk = chunk or len(prompt)
    for first in range(0, len(prompt), chunk):
        count = min(chunk, len(prompt) - first)
        last = first + count == len(prompt)
        wanted = "ALL" if logits == "ALL" else ("LAST" if last else "NONE")
        plans.append(plan(segments=[{"prompt": {
            "slot": 0, "first": first, "count": count, "logits": f"LOGITS_WANTED_{wanted}"}}]))
    plans[0].MergeFrom(plan(starts=[start(0, prompt, sampling, **fields)],
                            block_ops=blocks_for(0, len(prompt) + steps, 0)))
    plans += [plan(segments=[{"decode": {"slot": 0, "max_rows": 1}}]) for _ in range(steps - 1)]
    for step, one in enumerate(plans, 1):
        one.epoch, one.step = epoch, step
    return plans


def tokens_of(results):
    return [token.token for result in results for sequence in result.sequences
            for token in sequence.tokens]
