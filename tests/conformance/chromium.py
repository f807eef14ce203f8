"""Headless Chromium, driven over a pipe by its debugging protocol: no package is needed."""

import base64
import json
import os
import queue
import shutil
import signal
import subprocess
import threading

NAMES = ("chromium-headless-shell", "chromium", "google-chrome")


def find():
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One browser with one page. It keeps what the page logged and what it asked for."""

    def __init__(self, profile, width=1280, height=800, dark=False):
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()

        def place():  # the protocol's pipes are 3 and 4
            read, write = os.dup(to_read), os.dup(to_write)
            os.dup2(read, 3)
            os.dup2(write, 4)

        self._process = subprocess.Popen(
            [find(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-background-networking", "--remote-debugging-pipe",
             f"--user-data-dir={profile}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            close_fds=False, preexec_fn=place, start_new_session=True)
        os.close(to_read)
        os.close(to_write)
        self.errors = []
        self.requests = []
        self._answers = queue.Queue()
        self._last = 0
        self._session = None
        threading.Thread(target=self._listen, daemon=True).start()
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 500)
        scheme = "dark" if dark else "light"
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(30)

    def _listen(self):
        rest = b""
        while data := os.read(self._read, 1 << 16):
            *messages, rest = (rest + data).split(b"\0")
            for message in map(json.loads, messages):
                if "id" in message:
                    self._answers.put(message)
                else:
                    self._note(message.get("method"), message.get("params", {}))

    def _note(self, method, params):
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.errors.append(str(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.errors.append(str(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")

    def call(self, method, **params):
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._answers.get(timeout=60)
            if answer["id"] == self._last:
                assert "error" not in answer, answer
                return answer["result"]

    def open(self, url):
        self.call("Page.navigate", url=url)

    def run(self, script):
        """The value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait(self, script):
        """Waits for a change of the page that makes the expression true, and returns it."""
        return self.run("""new Promise((done) => {
            const look = () => {
                let value;
                try { value = %s; } catch { return; }  // not there yet
                if (value) { observer.disconnect(); done(value); }
            };
            const observer = new MutationObserver(look);
            observer.observe(document, {attributes: true, childList: true, characterData: true, subtree: true});
            look();
        })""" % script)

    def text(self):
        return self.run("document.body.innerText")

    def type(self, text):
        self.call("Input.insertText", text=text)

    def press(self, key, modifiers=0):
        code = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowRight": 39}[key]
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                      windowsVirtualKeyCode=code, modifiers=modifiers)

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))
