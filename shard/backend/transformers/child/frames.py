"""Frames on the socket to the shard.

A frame is the size of the header (4 bytes), the size of the body (8 bytes), both little-endian, a
JSON object as header, and the bytes of the body. shard/backend/transformers/frame.h is the other end.
"""

import json
import os
import struct
import threading

SIZES = struct.Struct("<IQ")
MOST_HEADER = 1 << 24


class Connection:
    def __init__(self, socket: int):
        self._requests = open(socket, "rb", closefd=False)
        self._replies = socket
        self._lock = threading.Lock()  # progress comes from another thread

    def read(self):
        """(header, body) of the next request; None once the shard has closed its end."""
        sizes = self._requests.read(SIZES.size)
        if len(sizes) < SIZES.size:
            return None
        header_size, body_size = SIZES.unpack(sizes)
        if header_size > MOST_HEADER:
            raise ValueError(f"a frame with a header of {header_size} bytes")
        header = self._requests.read(header_size)
        body = self._requests.read(body_size)
        if len(header) < header_size or len(body) < body_size:
            return None
        return json.loads(header), body

    def write(self, header: dict, body=b""):
        text = json.dumps(header).encode()
        body = memoryview(body).cast("B")
        with self._lock:
            self._write_all(SIZES.pack(len(text), len(body)) + text)
            self._write_all(body)

    def _write_all(self, data):
        data = memoryview(data)
        while len(data) > 0:
            data = data[os.write(self._replies, data):]
