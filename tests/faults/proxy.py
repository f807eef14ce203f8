"""A proxy between two processes that harms the bytes between them: delay, a cut after n bytes, writes of one byte,
silence with open sockets (half-open).

It is Python with asyncio, as the driver is: a link carries some hundred kilobytes a second, no speed is measured
through it, and a drill sets the fault by a call. One thread: the event loop of the driver.
"""

import asyncio
import contextlib
import dataclasses


@dataclasses.dataclass
class Fault:
    """What a link does from now on to the bytes towards the client, or with `both` in both directions."""

    kind: str = "none"  # none, slow, bytes, cut, half-open
    delay: float = 0.0  # slow: seconds before each piece, times 0.5 to 1.5 by the connection
    after: int = 0  # cut, half-open: bytes that still pass
    both: bool = False
    once: bool = False  # cut, half-open: of one connection; later ones pass


class Proxy:
    """Listens on `unix` or on a free loopback port, and connects each client to `target`, (host, port) or a path."""

    def __init__(self, target, unix=None):
        self.target, self.unix = target, unix
        self.fault = Fault()
        self.struck = 0  # connections that were cut or fell silent
        self.port = None
        self._server = None
        self._tasks = set()
        self._writers = set()

    async def __aenter__(self):
        if self.unix:
            self._server = await asyncio.start_unix_server(self._accept, self.unix)
        else:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
            self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exception):
        self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connect(self):
        if isinstance(self.target, tuple):
            return await asyncio.open_connection(*self.target)
        return await asyncio.open_unix_connection(self.target)

    async def _accept(self, reader, writer):
        task = asyncio.current_task()
        self._tasks.add(task)
        try:
            far_reader, far_writer = await self._connect()
        except OSError:
            writer.transport.abort()
            self._tasks.discard(task)
            return
        link = Link(self, len(self._tasks), (writer, far_writer))
        self._writers |= {writer, far_writer}
        try:
            await asyncio.gather(link.carry(reader, far_writer, towards_client=False),
                                 link.carry(far_reader, writer, towards_client=True))
        except asyncio.CancelledError:
            pass  # the proxy ends; asyncio would report the task of the connection
        finally:
            self._writers -= {writer, far_writer}
            self._tasks.discard(task)


class Link:
    """One connection, in both directions."""

    def __init__(self, proxy, number, writers):
        self.proxy, self.writers = proxy, writers
        self.jitter = 0.5 + number % 5 / 4  # so that connections overtake each other
        self.over = asyncio.Event()
        self.passed = 0  # bytes that the present fault has seen
        self.seen = None  # that fault
        self.silent = False  # half-open: what comes is dropped until one side closes

    async def carry(self, reader, writer, towards_client):
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while data := await reader.read(1 << 16):
                if not await self.pass_on(data, writer, towards_client):
                    break
        if self.silent and towards_client:
            await self.over.wait()  # nothing tells the client that the other side has gone
        self.close(writer)

    def close(self, writer):
        """Ends one direction; a cut and a silent link end both."""
        if self.silent:
            self.abort()
        elif not self.over.is_set() and writer.can_write_eof():
            with contextlib.suppress(OSError, RuntimeError):
                writer.write_eof()

    def abort(self):
        self.over.set()
        for writer in self.writers:
            writer.transport.abort()

    async def pass_on(self, data, writer, towards_client):
        if self.silent:
            return True
        fault = self.proxy.fault
        if fault is not self.seen:
            self.seen, self.passed = fault, 0
        if not towards_client and not fault.both:
            fault = Fault()
        if fault.kind == "slow":
            await self.wait(fault.delay * self.jitter)
        elif fault.kind in ("cut", "half-open"):
            room = max(0, fault.after - self.passed)
            self.passed += len(data)
            if len(data) >= room:
                return await self.strike(fault, data[:room], writer)
        if fault.kind == "bytes":
            for at in range(len(data)):
                writer.write(data[at:at + 1])
                await writer.drain()
        else:
            writer.write(data)
            await writer.drain()
        return not self.over.is_set()

    async def strike(self, fault, rest, writer):
        """Whether the link still reads."""
        self.proxy.struck += 1
        if fault.once:
            self.proxy.fault = Fault()
        writer.write(rest)
        await writer.drain()
        self.silent = fault.kind == "half-open"
        if not self.silent:
            self.abort()
        return self.silent

    async def wait(self, seconds):
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.over.wait(), seconds)
