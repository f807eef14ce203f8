"""Runs programs in the root folder of another system, and asks servers that run there."""

import json
import subprocess
import urllib.request

from penstock_testing import ADDRESS, Process

INSIDE = ["--proc", "/proc", "--dev", "/dev", "--chdir", "/", "--clearenv", "--setenv", "PATH",
          "/usr/sbin:/usr/bin:/sbin:/bin"]


def inside(root, *options):
    """The words to put before a command, so that it runs in the folder `root`, as this user."""
    return ["bwrap", "--die-with-parent", "--bind", str(root), "/", *INSIDE, *options]


def run_inside(root, *command, seconds=1200):
    done = subprocess.run([*inside(root, "--cap-add", "ALL", "--setenv", "DEBIAN_FRONTEND", "noninteractive"),
                           *command], capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


class Started(Process):
    """A server that any command starts; `ask` posts JSON to it."""

    def __init__(self, arguments, **settings):
        super().__init__(arguments, **settings)
        try:
            self.port = int(self.wait_line(ADDRESS).group(2))
        except AssertionError:
            self.stop()
            raise

    def ask(self, path, body):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as response:
            return json.load(response)

    def generate(self):
        answer = self.ask("/generate", {"inputs": "Once upon a time", "parameters": {"max_new_tokens": 5}})
        return answer["generated_text"]
