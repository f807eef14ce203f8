"""Streams that a benchmark reads on the same processors as the server. The calling thread reads all of them and does
not parse events, so that reading takes little time."""

import json
import selectors
import socket
import struct
import time

EVENT = b"\ndata:"  # its begin, and nothing else: line ends within JSON are escaped
RESET_WHEN_CLOSED = struct.pack("ii", 1, 0)  # SO_LINGER


class Reading:
    """One stream, and when each of its events came."""

    def __init__(self, connection):
        self.connection = connection
        self.began = time.monotonic()
        self.times = []
        self.ended = False
        self.tail = b""

    def take(self):
        data = self.connection.sock.recv(1 << 16)
        self.ended = not data
        if not self.times and b"HTTP/1.1" in data and b"HTTP/1.1 200" not in data:
            raise SystemExit(f"refused: {data.decode(errors='replace')}")
        data = self.tail + data
        self.times += [time.monotonic()] * data.count(EVENT)
        self.tail = data[-len(EVENT) + 1:]

    def gaps(self, begin, end):
        inside = [t for t in self.times if begin <= t <= end]
        return [b - a for a, b in zip(inside, inside[1:])]


class Streams:
    """Opens streams of a server and reads all of them while the caller waits for events."""

    def __init__(self, server):
        self.server = server
        self.selector = selectors.DefaultSelector()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for key in list(self.selector.get_map().values()):
            self.close(key.data)
        self.selector.close()

    def open(self, path, body, headers=None):
        connection = self.server.connect()
        reading = Reading(connection)
        asked = {"Content-Type": "application/json", "Connection": "close", **(headers or {})}
        connection.request("POST", path, json.dumps(body), asked)
        self.selector.register(connection.sock, selectors.EVENT_READ, reading)
        return reading

    def wait(self, readings, count, seconds=300):
        """Reads until each of these streams has `count` events or has ended."""
        deadline = time.monotonic() + seconds
        while any(len(reading.times) < count and not reading.ended for reading in readings):
            ready = self.selector.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                raise SystemExit(f"only {min(len(reading.times) for reading in readings)} events after {seconds} s")
            for key, _ in ready:
                key.data.take()
                if key.data.ended:
                    self.close(key.data)

    def close(self, reading):
        """Resets the connection, as a killed client does."""
        self.selector.unregister(reading.connection.sock)
        reading.connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_WHEN_CLOSED)
        reading.connection.close()
