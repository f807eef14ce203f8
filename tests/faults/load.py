"""Streams of a server that one event loop reads, and what an undisturbed run answers to them."""

import asyncio
import contextlib
import dataclasses
import json
import random
import time

STORIES = ["Once upon a time there was a little dog who lived near the sea. ", "The cat", "Tom and his dog",
           "One two three. One two three. One two", "Lily saw a", "A bird"]


def make_requests(seed, count, most_tokens):
    """Bodies of /generate_stream, all with an answer that depends on the body alone."""
    source = random.Random(seed)
    requests = []
    for number in range(count):
        parameters = {"max_new_tokens": source.randint(most_tokens // 4, most_tokens), "details": True}
        if source.random() < 0.6:
            parameters |= {"do_sample": True, "seed": source.randrange(1 << 30), "temperature": 1.1}
        if source.random() < 0.3:
            parameters |= {"repetition_penalty": 1.2}
        if source.random() < 0.2:
            parameters |= {"top_n_tokens": 2}
        if source.random() < 0.2:
            parameters |= {"stop": ["elephant"]}
        inputs = source.choice(STORIES) * source.randint(1, 3) + (f" {number}" if source.random() < 0.5 else "")
        requests.append({"inputs": inputs, "parameters": parameters})
    return requests


@dataclasses.dataclass
class Reading:
    """What one stream has sent."""

    request_id: str
    tokens: list = dataclasses.field(default_factory=list)  # (index, id, logprob)
    times: list = dataclasses.field(default_factory=list)
    text: str | None = None  # of the last event
    error: str | None = None
    ended: bool = False

    def answer(self):
        return {"tokens": self.tokens, "text": self.text}


class Load:
    """Reads streams; `events` counts those of all, and wait_events returns when there are so many."""

    def __init__(self, host, port):
        self.host, self.port = host, port
        self.events = 0
        self._reached = asyncio.Condition()

    async def wait_events(self, count):
        async with self._reached:
            await self._reached.wait_for(lambda: self.events >= count)

    async def read(self, body, request_id, address=None):
        reading = Reading(request_id)
        with contextlib.suppress(ConnectionError):
            await self._read(reading, json.dumps(body).encode(), address or (self.host, self.port))
        return reading

    async def _read(self, reading, body, address):
        reader, writer = await asyncio.open_connection(*address)
        try:
            head = (f"POST /generate_stream HTTP/1.1\r\nHost: {self.host}\r\nContent-Type: application/json\r\n"
                    f"X-Request-Id: {reading.request_id}\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n")
            writer.write(head.encode() + body)
            while line := await reader.readline():
                if line.startswith(b"data:"):
                    self.take(reading, json.loads(line[5:]))
                    async with self._reached:
                        self.events += 1
                        self._reached.notify_all()
                elif line.startswith(b"HTTP/1.1 ") and b" 200 " not in line:
                    reading.error = line.decode().strip()
        finally:
            writer.transport.abort()

    @staticmethod
    def take(reading, event):
        reading.times.append(time.monotonic())
        if "error" in event:
            reading.error = event["error"]
            return
        reading.tokens.append([event["index"], event["token"]["id"], event["token"]["logprob"]])
        if event.get("generated_text") is not None:
            reading.text = event["generated_text"]
            reading.ended = True

    async def read_all(self, bodies, prefix="u"):
        return await asyncio.gather(*(self.read(body, f"{prefix}-{i}") for i, body in enumerate(bodies)))


def compare(reading, expected):
    """{kind: count} of the tokens that are not those of the undisturbed run."""
    indexes = [index for index, _, _ in reading.tokens]
    repeated = len(indexes) - len(set(indexes))
    by_index = {index: token for index, *token in reading.tokens}
    want = {index: token for index, *token in expected["tokens"]}
    return {"lost": len(want.keys() - by_index.keys()), "repeated": repeated,
            "differing": sum(by_index[i] != want.get(i) for i in by_index) + (
                reading.ended and reading.text != expected["text"]) + (indexes != sorted(indexes))}
