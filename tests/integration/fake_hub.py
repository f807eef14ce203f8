"""A Hugging Face hub on 127.0.0.1 that serves one repository, and misbehaves on demand."""

import hashlib
import http.server
import json
import threading
import urllib.parse

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def etag_of(name, content):
    """As the hub does: SHA-256 for large files, git's SHA-1 for the others."""
    if name.endswith(".safetensors"):
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class FakeHub:
    """with FakeHub("org/name", {"config.json": b"..."}) as hub: hub.url

    `trouble` maps a file's name to a function (handler, start, end, content) that answers in place
    of the hub and returns True, or returns False to let it go on.
    """

    def __init__(self, repo, files, token=None):
        self.repo = repo
        self.files = files
        self.token = token            # what a client must show; None: anybody may read
        self.listed = None            # names in the description, if not those of `files`
        self.ranges = True
        self.content_host = None      # where contents are, if not here: redirects go there
        self.renamed_from = None      # a former repo id, answered by a redirect
        self.trouble = {}
        self.api_answers = []         # (code, headers) to give before the description
        self.served = 0               # bytes of contents that were sent
        self.requests = []            # (method, path, authorization)
        self.lock = threading.Lock()
        hub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments):
                pass

            def do_HEAD(self):
                hub.answer(self, head=True)

            def do_GET(self):
                hub.answer(self, head=False)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.server.shutdown()
        self.server.server_close()

    # --- answers

    def answer(self, handler, head):
        path = urllib.parse.urlsplit(handler.path).path
        with self.lock:
            self.requests.append((handler.command, path, handler.headers.get("Authorization")))
        if path.startswith("/content/"):
            return self.content(handler, path.removeprefix("/content/"))
        if self.token and handler.headers.get("Authorization") != f"Bearer {self.token}":
            return self.refuse(handler, 401, "GatedRepo")
        if path == f"/api/models/{self.repo}/revision/main" or path.endswith(COMMIT):
            return self.describe(handler)
        if path.startswith(f"/api/models/{self.repo}/"):
            return self.refuse(handler, 404, "RevisionNotFound")
        for repo in filter(None, (self.repo, self.renamed_from)):
            for revision in (COMMIT, "main"):
                prefix = f"/{repo}/resolve/{revision}/"
                if path.startswith(prefix):
                    return self.resolve(handler, repo, path.removeprefix(prefix), head)
        self.refuse(handler, 401, "RepoNotFound")

    def refuse(self, handler, code, reason=None, headers=()):
        handler.send_response(code)
        if reason:
            handler.send_header("X-Error-Code", reason)
        for name, value in headers:
            handler.send_header(name, value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    def describe(self, handler):
        with self.lock:
            trouble = self.api_answers.pop(0) if self.api_answers else None
        if trouble:
            return self.refuse(handler, trouble[0], headers=trouble[1])
        names = self.files if self.listed is None else self.listed
        body = json.dumps({"id": self.repo, "sha": COMMIT,
                           "siblings": [{"rfilename": name} for name in names]}).encode()
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def resolve(self, handler, repo, name, head):
        if repo == self.renamed_from:
            target = f"/{self.repo}/resolve/{COMMIT}/{name}"
            return self.refuse(handler, 307, headers=[("Location", target)])
        if name not in self.files:
            return self.refuse(handler, 404, "EntryNotFound")
        content = self.files[name]
        if not head and not self.content_host:
            return self.content(handler, name)
        handler.send_response(302 if self.content_host else 200)
        if self.content_host:
            handler.send_header("Location", f"{self.content_host}/content/{name}")
        handler.send_header("X-Repo-Commit", COMMIT)
        if name.endswith(".safetensors"):
            handler.send_header("X-Linked-Etag", f'"{etag_of(name, content)}"')
            handler.send_header("X-Linked-Size", str(len(content)))
            handler.send_header("Content-Length", "0" if self.content_host else str(len(content)))
        else:
            handler.send_header("ETag", f'"{etag_of(name, content)}"')
            handler.send_header("X-Linked-Size", str(len(content)))
            handler.send_header("Content-Length", "0" if self.content_host else str(len(content)))
        handler.end_headers()

    def content(self, handler, name):
        content = self.files[name]
        start, end = 0, len(content)
        asked = handler.headers.get("Range")
        if asked and self.ranges:
            first, last = asked.removeprefix("bytes=").split("-")
            start, end = int(first), int(last) + 1
        trouble = self.trouble.get(name)
        if trouble and trouble(handler, start, end, content):
            return
        self.send_content(handler, start, end, content)

    def send_content(self, handler, start, end, content, only=None, wrong=False):
        """Sends bytes [start, end) of the content; closes the connection after `only` bytes."""
        partial = self.ranges and handler.headers.get("Range")
        handler.send_response(206 if partial else 200)
        if partial:
            handler.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(content)}")
        handler.send_header("Content-Length", str(end - start))
        handler.end_headers()
        part = content[start:end]
        if wrong:
            part = bytes(byte ^ 1 for byte in part[:64]) + part[64:]
        if only is not None:
            part = part[:only]
            handler.close_connection = True
        handler.wfile.write(part)
        with self.lock:
            self.served += len(part)
