"""gRPC sessions recorded from TGI's own programs, and a way to play them against our shards.

What the programs sent next depended on when requests ended and on the batches that they were given.
So each request runs to the length that it had in the recording (ignore_eos, no stop strings), each
CachedBatch is the one that our shard answered last for its id, and tokens are not compared. A call
that failed by injection in the recording is sent as well: ours may answer it.
"""

import base64
import gzip
import json
import pathlib

import proto_modules

pb = proto_modules.load("generate.v3.generate_pb2")

STEPS = ("Prefill", "Decode")
PER_RANK = ("Health", "ServiceDiscovery")


class Session:
    def __init__(self, path):
        self.name = pathlib.Path(path).name.split(".")[0]
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            records = [json.loads(line) for line in lines]
        self.head = records[0]
        self.ranks = self.head["shard"]["ranks"]
        calls = [c for c in records if c["kind"] == "call"]
        ranks = [sorted((c for c in calls if c["rank"] == rank), key=lambda c: c["n"])
                 for rank in range(self.ranks)]
        self.calls = ranks[0]
        self.generations = [self._merge(ranks, at) for at in self._places(ranks)]
        self.lengths = self._lengths(calls)
        self.drops = "--drop-stopped" in self.head["shard"]["flags"]

    @staticmethod
    def _places(ranks):
        """For each call of rank 0: the same call's index on every rank, None where it has none."""
        shared = [[i for i, c in enumerate(calls) if c["method"] not in PER_RANK]
                  for calls in ranks]
        by_first = {first: [mine[k] if k < len(mine) else None for mine in shared]
                    for k, first in enumerate(shared[0])}
        return [by_first.get(i) for i in range(len(ranks[0]))]

    @staticmethod
    def _merge(ranks, places):
        """Request ids that advanced in this call over all ranks, or None when one of them failed."""
        if places is None:
            return None
        found = []
        for calls, at in zip(ranks, places):
            if at is None or "response_b64" not in calls[at]:
                return None
            found += [int(g["requestId"]) if "requestId" in g else 0
                      for g in calls[at]["response"].get("generations", [])]
        return sorted(found)

    @staticmethod
    def _lengths(calls):
        """{(index of Prefill among those with the id, request id): tokens} is more than is needed:
        ids are unique in a router's session, and the benchmark's lengths are all alike."""
        lengths = {}
        for call in calls:
            for generation in call.get("response", {}).get("generations", []):
                if "generatedText" in generation:
                    request = int(generation.get("requestId", 0))
                    lengths[request] = generation["generatedText"]["generatedTokens"]
        return lengths


class Player:
    """Plays one session. `ranks` has call(method, request) -> one answer of each rank.

    `echo`: the shard repeats prompts as the recorded one did, so requests go as they are, and
    tokens, texts and reasons must be those of the recording.
    """

    def __init__(self, session, ranks, restart, echo=False):
        self.session = session
        self.echo = echo
        self.ranks = ranks
        self.restart = restart
        self.capabilities = ranks.capabilities()
        self.batches = {}   # id -> our last answer
        self.stopped = set()
        self.requests = {}  # id -> pb.Request as we sent it
        self.ids = {}       # id -> generated ids of the last request with it
        self.finished = []  # (request, ids)
        self.compared = 0

    def play(self):
        for call, generations in zip(self.session.calls, self.session.generations):
            request = getattr(pb, call["method"] + "Request").FromString(
                base64.b64decode(call["request_b64"]))
            died = call.get("status", {}).get("code") == "none"
            if died:
                self.restart()
                self.batches.clear()
                continue
            getattr(self, "play_" + call["method"])(call, request, generations)
        return self.compared

    def call(self, method, request):
        return self.ranks.call(method, request)

    # --- what concerns a rank alone

    def play_Health(self, call, request, _):
        self.call("Health", request)

    def play_ServiceDiscovery(self, call, request, _):
        answer = self.ranks.first("ServiceDiscovery", request)
        assert len(answer.urls) == self.session.ranks
        assert all(url.startswith("unix://") for url in answer.urls)

    def play_Info(self, call, request, _):
        for info in self.call("Info", request):
            assert info.block_size >= 1 and not info.requires_padding
            assert not info.support_chunking and not info.use_prefix_caching
            assert info.dtype.startswith("torch.") and info.device_type and info.attention_impl

    def play_Warmup(self, call, request, _):
        answers = self.call("Warmup", request)
        for answer in answers:
            for field in ("max_input_tokens", "max_total_tokens"):
                if request.HasField(field):
                    assert getattr(answer, field) == getattr(request, field)
            assert 0 < answer.max_input_tokens < answer.max_total_tokens
            assert answer.max_supported_total_tokens >= answer.max_total_tokens
            assert answer == answers[0]

    # --- batches

    def play_ClearCache(self, call, request, _):
        self.call("ClearCache", request)
        if request.HasField("id"):
            self.batches.pop(request.id, None)
        else:
            self.batches.clear()

    def play_FilterBatch(self, call, request, _):
        answers = self.call("FilterBatch", request)
        self.check_batch(call, answers, [answer.batch for answer in answers])

    def play_Prefill(self, call, request, generations):
        for each in request.batch.requests:
            self.requests[each.id] = each
            self.ids[each.id] = []
            self.stopped.discard(each.id)
            if self.echo:
                continue
            each.stopping_parameters.ignore_eos_token = True
            del each.stopping_parameters.stop_sequences[:]
            if "watermark" not in self.capabilities:
                each.parameters.watermark = False
            # It decides when a request ends: test_generate_v3 has it.
            each.parameters.grammar = ""
            each.parameters.grammar_type = pb.GRAMMAR_TYPE_NONE
            if length := self.session.lengths.get(each.id):
                each.stopping_parameters.max_new_tokens = length
        if request.HasField("cached_batch"):
            request.cached_batch.CopyFrom(self.batches.pop(request.cached_batch.id))
        self.batches.pop(request.batch.id, None)
        self.step(call, request, generations)

    def play_Decode(self, call, request, generations):
        for batch in request.batches:
            batch.CopyFrom(self.batches.pop(batch.id))
        self.step(call, request, generations)

    def step(self, call, request, generations):
        answers = self.call(call["method"], request)
        for answer in answers:
            assert answer.total_ns >= answer.forward_ns + answer.decode_ns
        advanced = [g for answer in answers for g in answer.generations]
        for generation in advanced:
            if self.echo:
                self.compare_generation(call, generation)
            else:
                self.check_generation(generation)
        if generations is None:  # it failed in the recording; what it named is gone there
            for answer in answers[:1]:
                if answer.HasField("batch"):
                    self.batches[answer.batch.id] = answer.batch
            return
        assert sorted(g.request_id for g in advanced) == generations
        self.compared += 1
        self.check_batch(call, answers, [a.batch if a.HasField("batch") else None for a in answers])

    def check_generation(self, generation):
        tokens, request = generation.tokens, self.requests[generation.request_id]
        assert len(tokens.ids) == len(tokens.logprobs) == len(tokens.texts) == 1
        assert len(tokens.is_special) == 1 and tokens.logprobs[0] <= 0
        ids = self.ids[generation.request_id]
        first = not ids
        ids += tokens.ids
        assert generation.HasField("prefill_tokens") == (first and request.prefill_logprobs)
        if generation.HasField("prefill_tokens"):
            prompt = generation.prefill_tokens
            assert len(prompt.ids) == len(prompt.logprobs) == len(prompt.texts)
            assert prompt.logprobs[0] != prompt.logprobs[0] and not prompt.is_special
            assert all(logprob <= 0 for logprob in prompt.logprobs[1:])
        assert len(generation.top_tokens) == (1 if request.top_n_tokens else 0)
        for top in generation.top_tokens:
            assert top.ids  # filters leave fewer than were asked for, as in TGI
            assert len(top.ids) >= request.top_n_tokens or self.filters(request.parameters)
            assert list(top.logprobs) == sorted(top.logprobs, reverse=True)
        limit = request.stopping_parameters.max_new_tokens
        assert generation.HasField("generated_text") == (len(ids) == limit)
        if len(ids) == limit:
            end = generation.generated_text
            assert end.generated_tokens == limit
            assert end.finish_reason == pb.FINISH_REASON_LENGTH
            assert end.HasField("seed") == self.samples(request.parameters)
            self.stopped.add(generation.request_id)
            self.finished.append((request, list(ids)))

    def compare_generation(self, call, mine):
        if "response_b64" not in call:
            return
        cls = getattr(pb, call["method"] + "Response")
        recorded = cls.FromString(base64.b64decode(call["response_b64"])).generations
        theirs = next((g for g in recorded if g.request_id == mine.request_id), None)
        if theirs is None:  # another rank reported it
            return
        if mine.HasField("generated_text"):
            self.stopped.add(mine.request_id)
        assert list(mine.tokens.ids) == list(theirs.tokens.ids)
        assert list(mine.tokens.texts) == list(theirs.tokens.texts)
        assert list(mine.tokens.is_special) == list(theirs.tokens.is_special)
        assert mine.HasField("generated_text") == theirs.HasField("generated_text")
        # The recorder decoded the generated ids alone, which eats the space in front.
        if mine.generated_text.text == " " + theirs.generated_text.text:
            mine.generated_text.text = theirs.generated_text.text
        assert mine.generated_text == theirs.generated_text
        assert mine.HasField("prefill_tokens") == theirs.HasField("prefill_tokens")
        assert list(mine.prefill_tokens.ids) == list(theirs.prefill_tokens.ids)
        assert list(mine.prefill_tokens.texts) == list(theirs.prefill_tokens.texts)
        assert len(mine.top_tokens) == len(theirs.top_tokens)

    @staticmethod
    def samples(p):
        return (p.do_sample or p.temperature != 1 or p.top_k != 0 or p.top_p < 1
                or p.typical_p < 1)

    @staticmethod
    def filters(p):
        return p.top_k != 0 or p.top_p < 1 or p.typical_p < 1

    def check_batch(self, call, answers, batches):
        for batch in batches:
            assert batch == batches[0], "the ranks answer different batches"
        mine = batches[0]
        if "response" not in call:
            theirs = None
        else:
            cls = getattr(pb, call["method"] + "Response")
            theirs = cls.FromString(base64.b64decode(call["response_b64"]))
            theirs = theirs.batch if theirs.HasField("batch") else None
        if mine is not None:
            self.batches[mine.id] = mine
        if "response" not in call:
            return
        assert (mine is None) == (theirs is None), (call["n"], mine, theirs)
        if mine is None:
            return
        ids = list(mine.request_ids)
        assert mine.size == len(ids)
        if self.session.drops:
            ids = [i for i in ids if i not in self.stopped]
        assert (mine.id, ids) == (theirs.id, list(theirs.request_ids)), call["n"]
        if not self.session.drops:
            assert mine.current_tokens == theirs.current_tokens, call["n"]
