"""Shards driven through generate.v3, without router or launcher."""

import pathlib
import tempfile

import proto_modules
from native_client import Shard
from penstock_testing import BIN, Process

generate_v3 = proto_modules.load("generate_v3")
pb = generate_v3.pb


class GenerateGroup(generate_v3.Ranks):
    """Ranks as processes (a simulated group: one process), called all at once."""

    def __init__(self, *options, ranks=1, program="penstock-shard"):
        self.folder = tempfile.TemporaryDirectory(prefix="penstock-test-")
        self.prefix = pathlib.Path(self.folder.name) / "sockets" / "shard"
        common = [BIN / program, "--shard-uds-path", self.prefix, "--world-size", str(ranks),
                  *options]
        if program == "penstock-simshard":
            self.commands = [common]
        else:
            self.commands = [common + ["--rank", str(rank), "--local-ranks", str(ranks)]
                             for rank in range(ranks)]
        self.ranks = ranks
        self.processes = []
        self.start()

    def start(self):
        self.processes = [Process(command, {"OMP_WAIT_POLICY": "passive"})
                          for command in self.commands]
        try:
            for process in self.processes:
                count = self.ranks if len(self.processes) == 1 else 1
                for _ in range(count):
                    process.wait_line("listening on")
            self.connect_all()
        except BaseException:
            self.stop()
            raise

    def connect_all(self):
        super().__init__(f"{self.prefix}-0")

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.stop()
        self.folder.cleanup()

    def stop(self):
        return [process.stop() for process in self.processes]

    def restart(self):
        """All processes die without notice and come back on the same sockets."""
        for process in self.processes:
            process.popen.kill()
            process.wait_exit()
        self.start()

    def restart_rank(self, rank):
        self.processes[rank].popen.kill()
        self.processes[rank].wait_exit()
        self.processes[rank] = Process(self.commands[rank], {"OMP_WAIT_POLICY": "passive"})
        self.processes[rank].wait_line("listening on")
        self.connect_all()

    def capabilities(self):
        shard = Shard(f"{self.prefix}-0")
        try:
            return set(shard.call("Describe").result().capabilities)
        finally:
            shard.close()

    def first(self, method, request):
        return getattr(self.stubs[0], method)(request, timeout=generate_v3.SECONDS)

    def clear(self):
        self.call("ClearCache", pb.ClearCacheRequest())
