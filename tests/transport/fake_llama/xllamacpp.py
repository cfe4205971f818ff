# ruff: noqa: INP001 - it is imported from sys.path, like the real one
"""A stand-in for xllamacpp: the same names, and a server with one answer.

The model file says how it behaves, after the four letters of GGUF.
"""

from __future__ import annotations

import ctypes
import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any


class CommonParams:
    """Accepts any attribute."""

    def __init__(self) -> None:
        self.model = SimpleNamespace(path="")
        self.cpuparams = SimpleNamespace()
        self.cpuparams_batch = SimpleNamespace()
        self.api_keys: list[str] = []

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


class Server:
    """Listens as soon as it is created."""

    def __init__(self, params: CommonParams) -> None:
        if (
            params.endpoint_slots or params.webui
        ):  # both must be turned off, because other users could read them
            msg = "it shows what is said"
            raise RuntimeError(msg)
        told = Path(params.model.path).read_bytes()[4:].partition(b"\0")[0].decode()
        if told == "unloadable":
            msg = "Failed to init server"
            raise RuntimeError(msg)
        if told == "missing":
            raise ImportError
        if told == "strange":
            raise AttributeError
        if told == "slow":
            ctypes.PyDLL(None).sleep(60)  # holds the GIL, as the real one does
        if told == "crash":
            os._exit(3)
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._http.daemon_threads = True
        self._http.key = params.api_keys[0]  # type: ignore[attr-defined]  # for the handler
        Thread(target=self._http.serve_forever, daemon=True).start()

    @property
    def listening_address(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self._http.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
        pass

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key = self.server.key  # type: ignore[attr-defined]  # as above
        if self.headers.get("Authorization") != f"Bearer {key}":
            self._reply(401, {"error": {"message": "Invalid API Key", "code": 401}})
            return
        if asked["messages"][-1]["content"] == "die":
            os._exit(7)
        message = {"role": "assistant", "content": str(os.getpid())}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        self._reply(
            200, {"model": asked["model"], "choices": [choice], "object": "chat.completion"}
        )

    def _reply(self, status: int, body: dict[str, Any]) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(raw)
