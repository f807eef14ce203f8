"""The router as TGI's was configured for a recording, over a simulated shard that echoes."""

import json
import os
import pathlib
import socket
import tempfile
import threading
import time

from penstock_testing import BIN, Process
from tgi_recordings import fetch

LIMITS = {"d": {"max-input-tokens": 700, "max-total-tokens": 1400}}  # what its shard announced


def write_model(folder, configuration, shared):
    """A model folder with the recording's tokenizer and chat template."""
    source = shared / "tokenizers" / configuration["tokenizer"]
    folder.mkdir()
    for name in ("tokenizer.json", "special_tokens_map.json"):
        if (source / name).exists():
            (folder / name).symlink_to(source / name)
    facts = json.loads((source / "tokenizer_config.json").read_text())
    template = configuration["chat_template"]
    if template is None:
        facts.pop("chat_template", None)
    elif template != "tokenizer_config":
        text = (shared / "chat_templates" / template["file"]).read_text()
        if template["join_stripped_lines"]:
            text = "".join(line.strip() for line in text.splitlines())
        facts["chat_template"] = text
    (folder / "tokenizer_config.json").write_text(json.dumps(facts))
    flags = configuration["shard_flags"]
    eos = int(flags[flags.index("--eos-id") + 1])
    (folder / "config.json").write_text(
        json.dumps({**configuration["config_json"], "eos_token_id": eos}))


class StandIn:
    """Simulated shard and router of one configuration; `port` when ready."""

    def __init__(self, configuration, shared):
        self.configuration = configuration
        self._folder = tempfile.TemporaryDirectory(prefix="tgi-")
        root = self._folder.name
        self.model = configuration["model_folder"]
        write_model(pathlib.Path(root) / self.model, configuration, shared)
        self.root = root
        self.shards = []
        self.router = None
        self.holders = []
        self.start()

    # Configuration "a" stops shards. It has two groups, since a router ends with its only group.
    @property
    def groups(self):
        return 2 if self.configuration["name"] == "a" else 1

    def start(self):
        self.start_shards()
        self.router = Process(self.router_command(os.path.join(self.root, "shard")), cwd=self.root)
        self.port = int(self.router.wait_line(r"listening on [\d.]+:(\d+)").group(1))

    def start_shards(self):
        for group in range(self.groups):
            prefix = os.path.join(self.root, "shard" + (f"-{group}" if self.groups > 1 else ""))
            self.shards.append(Process(
                [BIN / "penstock-simshard", "--tokens", "echo", "--model-id",
                 os.path.join(self.root, self.model), "--shard-uds-path", prefix]))

    def set_shards(self, running):
        if running == bool(self.shards):
            return
        if running:
            self.start_shards()
        else:
            for shard in self.shards:
                shard.stop()
            self.shards = []
        self.wait_health(200 if running else 503)

    def wait_health(self, status):
        """Asks repeatedly with a deadline, because the router sends no notice."""
        deadline = time.monotonic() + 30
        while fetch(self.port, {"method": "GET", "path": "/health", "headers": []})[0] != status:
            assert time.monotonic() < deadline, self.router.output()

    def router_command(self, prefix):
        flags = {**LIMITS.get(self.configuration["name"], {}), **self.configuration["flags"]}
        command = [BIN / "penstock-router", "--api-profile", "tgi", "--port", "0", "--model-id",
                   self.model, "--num-replicas", str(self.groups), "--shard-uds-path", prefix, "--compute-type",
                   self.configuration["env"].get("COMPUTE_TYPE", "gpu+optimized")]
        flags.setdefault("payload-limit", 2_000_000)
        for name, value in flags.items():
            command += [f"--{name}"] if value is True else [f"--{name}", str(value)]
        return command

    def hold(self, count):
        """Keeps `count` requests running, those that run already included."""
        if len(self.holders) > count:
            while len(self.holders) > count:
                self.holders.pop().close()
            self.wait_free()
        while len(self.holders) < count:
            body = json.dumps({"inputs": "[[slow:80]][[loop]] hold", "parameters":
                               {"max_new_tokens": 220}})
            held = socket.create_connection(("127.0.0.1", self.port), 60)
            held.sendall((f"POST /generate_stream HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}"
                          f"\r\ncontent-type: application/json\r\n\r\n{body}").encode())
            held.recv(16)  # the head says that it has its permit
            self.holders.append(held)
            threading.Thread(target=_drain, args=(held,), daemon=True).start()

    def wait_free(self):
        """Asks until the router has noticed a closed connection and released its permit."""
        probe = {"method": "POST", "path": "/generate", "body": '{"inputs":"a"}',
                 "headers": [["content-type", "application/json"], *self.configuration["auth"]]}
        deadline = time.monotonic() + 10
        while fetch(self.port, probe)[0] == 429:
            assert time.monotonic() < deadline, self.router.output()

    def stop(self):
        self.hold(0)
        for process in filter(None, [self.router, *self.shards]):
            process.stop()
        self._folder.cleanup()


def _drain(connection):
    try:
        while connection.recv(65536):
            pass
    except OSError:
        pass
