"""A drill: a server under load, a fault at a moment, and a verdict on every token.

A seed draws the server, the load, the fault and its moment. The oracle is the same load on a server without faults:
answers depend neither on the batch nor on which group computes them.
"""

import asyncio
import contextlib
import dataclasses
import os
import pathlib
import random
import signal
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))

from load import Load, compare, make_requests  # noqa: E402
from penstock_testing import BIN, DEMO_MODEL, Attached, Process, Server, wait_gone  # noqa: E402
from proxy import Fault, Proxy  # noqa: E402

STREAMS = 32
POOL = 64
POOL_SEED = 31
MOST_TOKENS = 96
SECONDS = 90  # for all streams of a drill
OPTIONS = ["--max-total-tokens", "400", "--rank-timeout", "2s"]
SIMULATED = ["--step-time", "4ms"]
PROCESS_FAULTS = ("kill", "stop", "restart")
LINK_FAULTS = ("link-slow", "link-bytes", "link-cut", "link-half-open")
CLIENT_FAULTS = ("client-slow", "client-bytes", "client-cut", "client-half-open")
LOSSES = (*PROCESS_FAULTS, "link-cut", "link-half-open")


@dataclasses.dataclass(frozen=True)
class Drill:
    seed: int
    engine: str  # simulated or demo
    groups: int
    ranks: int
    options: tuple  # of the server
    fault: str
    times: int  # how often a process is harmed
    moment: float  # part of the load's events after which the fault comes
    victim: int  # process or link, by a number drawn

    @classmethod
    def draw(cls, seed):
        source = random.Random(seed)
        # Four of five harm processes, and of these four of five are simulated.
        kinds = source.choices((PROCESS_FAULTS, LINK_FAULTS, CLIENT_FAULTS), (80, 12, 8))[0]
        engine = source.choices(("simulated", "demo"), (4, 1))[0]
        options = [[], ["--prefix-caching=false"], ["--max-step-tokens", "64"],
                   ["--admission", "optimistic"]]
        if engine == "simulated":
            options.append(["--blocks", "128"])  # preempts
        return cls(seed=seed, engine="simulated" if kinds == LINK_FAULTS else engine, groups=source.randint(1, 2),
                   ranks=source.randint(1, 2), options=tuple(source.choice(options)),
                   fault=source.choice(kinds), times=source.choices((1, 2), (4, 1))[0],
                   moment=source.uniform(0.02, 0.7), victim=source.randrange(1 << 16))

    @property
    def attached(self):
        return self.fault in LINK_FAULTS


def pool():
    return make_requests(POOL_SEED, POOL, MOST_TOKENS)


class Launched:
    """A launcher with its router and shards."""

    def __init__(self, drill, options=()):
        program = ["--shard-program", BIN / "penstock-simshard", *SIMULATED] if drill.engine == "simulated" else []
        self.server = Server(*program, "--num-replicas", str(drill.groups), "--num-shard", str(drill.ranks), *OPTIONS,
                             *options)
        self.router = self.server
        self.processes = 1 + drill.groups * drill.ranks

    def shards(self):
        found = self.server.children().items()
        return sorted(pid for pid, command in found if pathlib.Path(command[0]).name != "penstock-router")

    def pids(self):
        return [self.server.popen.pid, *self.server.children()]

    def stop(self):
        code = self.server.stop()
        return [] if code == 0 else [f"the launcher ended with {code}"]


class Linked:
    """A router without a launcher: a proxy stands before each shard."""

    def __init__(self, drill, folder, options=()):
        self.drill = drill
        names = [f"{g}-{r}" if drill.groups > 1 else f"{r}" for g in range(drill.groups) for r in range(drill.ranks)]
        self.links = [Proxy(f"{folder}/s-{name}", unix=f"{folder}/p-{name}") for name in names]
        blocks = options if options[:1] == ["--blocks"] else []
        self.shard = Process([BIN / "penstock-simshard", "--model-id", DEMO_MODEL, "--shard-uds-path", f"{folder}/s",
                              "--num-groups", str(drill.groups), "--world-size", str(drill.ranks), *SIMULATED, *blocks])
        self.shard.wait_line("listening on", 30)
        self.options = [x for x in options if x not in blocks]
        self.router = None
        self.processes = 0

    def start_router(self):
        paths = [f"unix:{link.unix}" for link in self.links]
        ranks = self.drill.ranks
        groups = [",".join(paths[at:at + ranks]) for at in range(0, len(paths), ranks)]
        self.router = Attached(";".join(groups), *OPTIONS, *self.options).wait_ready()

    def pids(self):
        return [self.shard.popen.pid, self.router.popen.pid]

    def stop(self):
        code = self.router.stop() if self.router else 0
        self.shard.stop()
        return [] if code == 0 else [f"the router ended with {code}"]


@contextlib.asynccontextmanager
async def serving(drill):
    """(server, its links): ready, with all groups up."""
    async with contextlib.AsyncExitStack() as stack:
        if drill.attached:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-"))
            server = Linked(drill, folder, list(drill.options))
            for link in server.links:
                await stack.enter_async_context(link)
        else:
            server = Launched(drill, drill.options)
        problems = []
        try:
            if drill.attached:
                await asyncio.to_thread(server.start_router)
            await wait_up(server, drill)
            yield server, problems
        finally:
            pids = server.pids()
            problems += await asyncio.to_thread(server.stop)
            problems += [f"process {pid} is left" for pid in await asyncio.to_thread(wait_gone, pids, 5)]


async def wait_up(server, drill):
    for group in range(drill.groups):
        await asyncio.to_thread(server.router.wait_metric, f'penstock_group_up{{group="{group}"}}',
                                lambda value: value == 1, 60)


async def undisturbed(engine, ranks):
    """The answers to the pool, by its order."""
    drill = Drill(0, engine, 1, ranks, (), "none", 0, 0, 0)
    async with serving(drill) as (server, problems):
        readings = await Load(server.router.host, server.router.port).read_all(pool())
    assert not problems and all(reading.ended for reading in readings), problems
    return [reading.answer() for reading in readings]


# ---- faults ----

async def harm(drill, server, load, expected_events, clients):
    """Waits for the moment of the fault, and does it. Returns when it began."""
    await load.wait_events(max(1, int(drill.moment * expected_events)))
    began = time.monotonic()
    if drill.fault in PROCESS_FAULTS:
        await harm_processes(drill, server, load)
    elif drill.fault in LINK_FAULTS:
        link = server.links[drill.victim % len(server.links)]
        link.fault = fault_of(drill, both=True)
    else:
        clients.fault = fault_of(drill, both=drill.fault != "client-cut")
    return began


async def harm_processes(drill, server, load):
    how = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "restart": signal.SIGTERM}[drill.fault]
    for time_ in range(drill.times):
        shards = server.shards()
        if not shards:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(shards[(drill.victim + time_) % len(shards)], how)
        if time_ + 1 < drill.times:
            await load.wait_events(load.events + 1 + drill.victim % 200)


def fault_of(drill, both):
    kind = drill.fault.split("-", 1)[1]
    return Fault(kind, delay=0.001 * (1 + drill.victim % 20), after=drill.victim % 3000, both=both, once=drill.attached)


# ---- verdict ----

async def run(drill, oracle):
    """The result of a drill as a flat record. `problems` is empty where it passed."""
    source = random.Random(drill.seed * 7919 + 1)
    chosen = [source.randrange(POOL) for _ in range(STREAMS)]
    bodies = [pool()[number] for number in chosen]
    through_proxy = {i for i in range(STREAMS) if drill.fault in CLIENT_FAULTS and i % 4 == 0}
    began = time.monotonic()
    async with serving(drill) as (server, problems):
        address = (server.router.host, server.router.port)
        files = await open_files(server)
        async with Proxy(address) as clients:
            load = Load(*address)
            tasks = [asyncio.create_task(load.read(body, f"d{i}", (address[0], clients.port) if i in through_proxy
                                                   else None)) for i, body in enumerate(bodies)]
            total = sum(len(oracle[number]["tokens"]) for number in chosen)
            fault = asyncio.create_task(harm(drill, server, load, total, clients))
            readings, hung = await finish(tasks, drill, through_proxy)
            fault.cancel()
            moment = (await asyncio.gather(fault, return_exceptions=True))[0]
        result = judge(drill, readings, [oracle[number] for number in chosen], through_proxy)
        result |= {"hung": hung, "pauses_ms": []}
        if not isinstance(moment, float):
            problems.append("the fault had no moment")
        elif drill.fault in LOSSES:
            result["pauses_ms"] = await pauses(server, readings, moment)
        problems += await leaks(server, drill, files)
    problems += [f"{result[what]} {what} tokens" for what in ("lost", "repeated", "differing") if result[what]]
    problems += [f"{result[what]} {what} streams" for what in ("failed", "hung") if result[what]]
    if problems:
        result["output"] = server.router.lines[-40:]
    return {**dataclasses.asdict(drill), **result, "problems": problems,
            "seconds": round(time.monotonic() - began, 2)}


async def finish(tasks, drill, through_proxy):
    """(readings, number of those that hung). A client that fell silent is left alone, and ends with its proxy."""
    silent = through_proxy if drill.fault == "client-half-open" else set()
    awaited = [task for i, task in enumerate(tasks) if i not in silent]
    _, late = await asyncio.wait(awaited, timeout=SECONDS)
    for task in tasks:
        task.cancel()
    done = await asyncio.gather(*tasks, return_exceptions=True)
    return [reading if not isinstance(reading, BaseException) else None for reading in done], len(late)


def judge(drill, readings, expected, through_proxy):
    result = {"lost": 0, "repeated": 0, "differing": 0, "failed": 0, "errors": []}
    cut = through_proxy if drill.fault in ("client-cut", "client-half-open") else set()
    for i, reading in enumerate(readings):
        if reading is None:
            continue
        wrong = compare(reading, expected[i])
        if i in cut:
            wrong["lost"] = 0  # its client left
        elif reading.error or not reading.ended:
            result["failed"] += 1
            result["errors"].append(reading.error or "the stream was cut")
        for what, count in wrong.items():
            result[what] += count
    return result


async def pauses(server, readings, moment):
    """Milliseconds that each stream of a lost group stood still."""
    found = []
    for reading in readings:
        if reading is None or not reading.times or reading.times[-1] < moment:
            continue
        record = await asyncio.to_thread(server.router.request, "GET", f"/requests/{reading.request_id}")
        if b'"losses":0' in record[2].replace(b" ", b"") or record[0] != 200:
            continue
        gaps = [b - max(a, moment) for a, b in zip(reading.times, reading.times[1:], strict=False) if b > moment]
        found += [round(1000 * max(gaps))] if gaps else []
    return sorted(found)


async def open_files(server):
    metrics = await asyncio.to_thread(server.router.metrics)
    return metrics["process_open_fds"]


async def leaks(server, drill, files):
    """What is left of the load once all groups are up again."""
    problems = []
    try:
        await wait_up(server, drill)
        for group in range(drill.groups):
            for state in ("used", "retiring"):
                await asyncio.to_thread(server.router.wait_metric,
                                        f'penstock_group_kv_blocks{{group="{group}",state="{state}"}}',
                                        lambda value: value == 0, 20)
        await asyncio.to_thread(server.router.wait_metric, "penstock_requests_running", lambda value: value == 0)
        await asyncio.to_thread(server.router.wait_metric, "process_open_fds", lambda value: value <= files + 4, 20)
    except AssertionError as error:
        problems.append("leak: " + str(error).split("\n", 1)[0])
    if server.processes and len(server.pids()) != 1 + server.processes:
        problems.append(f"{len(server.pids())} processes, not {1 + server.processes}")
    return problems
