"""The openai package in a page of another origin, in headless Chromium: what CORS lets it do.

deploy/bootstrap --tests installs Chromium and the package; without one of them the test skips.
"""

import http.server
import json
import os
import pathlib
import queue
import shutil
import signal
import subprocess
import threading

import pytest

from penstock_testing import BIN, Server

FOLDER = pathlib.Path(__file__).parent / "node"
PACKAGE = FOLDER / "node_modules" / "openai"
BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")
SAID = 'The quick brown fox: "ja", naïve.'
PAGE = b"""<!DOCTYPE html><meta charset="utf-8">
<script>
const say = (text) => fetch("/seen", { method: "POST", body: JSON.stringify({ failed: String(text) }) });
addEventListener("error", (event) => say(event.message ?? "a module cannot be loaded"), true);
addEventListener("unhandledrejection", (event) => say(event.reason));
</script>
<script type="module" src="/page.mjs"></script>"""


class Site(http.server.ThreadingHTTPServer):
    """The origin of the page: serves it and the package, and takes what the page saw."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.settings = {}
        self.seen = queue.Queue()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def origin(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/":
            return self.answer("text/html", PAGE)
        if self.path == "/settings":
            return self.answer("application/json", json.dumps(self.server.settings).encode())
        file = FOLDER / "page.mjs" if self.path == "/page.mjs" else PACKAGE / self.path.removeprefix("/openai/")
        if file.suffix not in (".mjs", ".js") or not file.exists():
            return self.send_error(404)
        self.answer("text/javascript", file.read_bytes())

    def do_POST(self):
        self.server.seen.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.answer("text/plain", b"")

    def answer(self, kind, body):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def browse(tmp_path):
    """Opens a page in a browser; the page runs until the end of the test."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip("no Chromium on this machine (deploy/bootstrap --tests installs one)")
    if not PACKAGE.exists():
        pytest.skip("the package openai is not installed (npm could not reach a registry)")
    processes = []

    def start(url):
        with open(tmp_path / "browser.log", "wb") as log:
            processes.append(subprocess.Popen(
                [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 "--no-first-run", "--disable-background-networking", "--enable-logging=stderr",
                 f"--user-data-dir={tmp_path / 'profile'}", "--remote-debugging-port=0", url],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True))

    yield start
    for process in processes:  # its whole session: the command may be a script that waits for the browser
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)


def test_openai_in_a_page_of_another_origin(browse, tmp_path):
    if not (BIN / "penstock-launcher").exists():
        pytest.skip(f"binaries are not built in {BIN.parent.name}/bin")
    with Site() as site, Server(
            "--shard-program", BIN / "penstock-simshard", "--tokens", "echo", "--api-key", "secret",
            "--cors-allow-origin", site.origin) as server:
        site.settings = {"url": server.url, "key": "secret", "prompt": SAID}
        browse(site.origin)
        try:
            seen = site.seen.get(timeout=60)
        except queue.Empty:
            pytest.fail((tmp_path / "browser.log").read_text()[-3000:])
        finally:
            site.shutdown()
    assert seen == {
        "plain": [SAID, True], "streaming": [SAID, True], "headers_of_an_account": "of-the-page",
        "an_ignored_key": "temprature", "a_wrong_key": 401,
        "a_header_that_is_not_allowed": "APIConnectionError", "deleting": 200}
