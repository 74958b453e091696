"""A hub on this machine: enough of its HTTP interface for huggingface_hub to list and download files.

Source of the interface: huggingface_hub 2.4 (hf_api, file_download, utils/_http).
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

LARGE = 200  # bytes: from here on a file is kept in large file storage, known by its sha256


class FakeHub:
    """The repositories under `folder` (<org>/<name>/), all datasets, each with one commit.

    `asked` holds the paths of all requests so far.  `gated` names repositories that need leave.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.asked = folder, list[str]()
        self.gated: set[str] = set()
        self.endpoint = ""

    def commit(self, repository: str) -> str:
        """The id of its only commit: it follows the files."""
        total = hashlib.sha1(repository.encode())
        for path in self.files(repository):
            total.update(path.read_bytes())
        return total.hexdigest()

    def files(self, repository: str) -> list[Path]:
        return sorted(path for path in (self.folder / repository).rglob("*") if path.is_file())

    @contextmanager
    def serve(self) -> Iterator[FakeHub]:
        """Answer at `endpoint` inside the block."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body for a path such as /api/datasets/org/name/revision/main."""
        parts = unquote(urlsplit(path).path).strip("/").split("/")
        api = parts[0] == "api"
        _, organisation, name, what, revision, *rest = parts[api:]
        repository = f"{organisation}/{name}"
        if not (self.folder / repository).is_dir():
            return 404, {"X-Error-Code": "RepoNotFound"}, b""
        if repository in self.gated:
            return 403, {"X-Error-Code": "GatedRepo"}, b""
        commit = self.commit(repository)
        if revision not in ("main", commit):
            return 404, {"X-Error-Code": "RevisionNotFound"}, b""
        if api and what == "revision":
            return self._json({"id": repository, "sha": commit, "siblings": []})
        if api and what == "tree":
            return self._json([self._entry(repository, path) for path in self.files(repository)])
        file = self.folder / repository / "/".join(rest)
        if not file.is_file():
            return 404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit}, b""
        entry = self._entry(repository, file)
        etag = entry["lfs"]["oid"] if "lfs" in entry else entry["oid"]
        return 200, {"X-Repo-Commit": commit, "ETag": f'"{etag}"'}, file.read_bytes()

    def _entry(self, repository: str, path: Path) -> dict:
        data = path.read_bytes()
        oid = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
        name = path.relative_to(self.folder / repository).as_posix()
        entry = {"type": "file", "path": name, "size": len(data), "oid": oid}
        if len(data) >= LARGE:
            sha256 = hashlib.sha256(data).hexdigest()
            entry["lfs"] = {"oid": sha256, "size": len(data), "pointerSize": 130}
        return entry

    def _json(self, value: object) -> tuple[int, dict[str, str], bytes]:
        return 200, {"Content-Type": "application/json"}, json.dumps(value).encode()


def _handler(hub: FakeHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            hub.asked.append(self.path)
            status, headers, body = hub.answer(self.path)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            """Be silent."""

    return Handler
