"""The built site in a headless Chromium: a server on loopback, a page that records what goes wrong."""

from __future__ import annotations

import functools
import http.server
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}


def missing() -> str:
    """Why no browser can be driven here; an empty text where one can."""
    try:
        import axe_playwright_python  # noqa: F401
        import playwright  # noqa: F401
    except ImportError as error:
        return f"{error.name} is not installed (requirements-browser.lock)"
    return "" if shutil.which("chromium") else "no chromium (Debian: apt-get install chromium)"


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a plain web server of `folder` on loopback."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, *_: Any) -> None:
            """A page that is left while it loads ends its connections: nobody's fault."""

    handler = functools.partial(Quiet, directory=str(folder))
    server = Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def browser() -> Iterator[Any]:
    """A headless Chromium, the one of the system."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        chromium = play.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
        )
        try:
            yield chromium
        finally:
            chromium.close()


class Visit:
    """A page, and what went wrong on it since `open`."""

    def __init__(
        self, chromium: Any, root: str, *, scheme: str = "light", size: Any = DESK
    ) -> None:
        self.root = root
        self.context = chromium.new_context(viewport=size, color_scheme=scheme)
        self.page = self.context.new_page()
        self.faults: list[str] = []
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("requestfailed", self._failed)
        self.page.on("request", self._request)
        self.page.on("response", self._response)

    def open(self, path: str) -> list[str]:
        """Open a page; returns its faults."""
        self.faults.clear()
        self.page.goto(f"{self.root}/{path}", wait_until="load")
        return [f"{path}: {fault}" for fault in self.faults]

    def close(self) -> None:
        self.context.close()

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"console: {message.text}")

    def _failed(self, request: Any) -> None:
        if request.failure != "net::ERR_ABORTED":  # an icon that the page before was still loading
            self.faults.append(f"failed: {request.url}: {request.failure}")

    def _request(self, request: Any) -> None:
        if not request.url.startswith((self.root, "data:", "blob:")):
            self.faults.append(f"outside: {request.url}")

    def _response(self, response: Any) -> None:
        if response.status >= 400:
            self.faults.append(f"{response.status}: {response.url}")
