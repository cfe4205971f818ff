"""A real `dragoman serve` in front of a server that misbehaves on request, and raw clients."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Generator
from contextlib import contextmanager
from http.client import HTTPResponse, IncompleteRead
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from tests.environment import PATIENCE
from tests.gateway.abuse.upstream import HostileUpstream
from tests.gateway.answers import KINDS, SAID
from tests.gateway.client_requests import Answer, body_for, path_for, text_in
from tests.gateway.operations.workers import Process, process

PROVIDER_KEY = "sk-provider-0123456789abcdef-SECRET"
CANARY = "canary-4711-of-the-client"
"""What a client wrote: no refusal may repeat it."""
MAX_BODY = 1024 * 1024
_LEAKS = re.compile(
    rf'Traceback|\.py\b|File "|{PROVIDER_KEY}|{CANARY}|site-packages|dragoman\.|127\.0\.0\.1:\d'
)
_LISTENS = re.compile(r"^VmRSS:\s+(\d+) kB", re.MULTILINE)
_PATHS = {"openai-chat": "/v1", "openai-responses": "/v1"}


def configuration(upstream: HostileUpstream, **server: Any) -> str:
    """A file in which models called `BACK.…` use that dialect, each with a price."""
    settings = {"log": "json", "traffic": "off", "max_body": MAX_BODY, **server}
    lines = ["[server]", *(f"{name} = {json.dumps(value)}" for name, value in settings.items())]
    for back, kind in KINDS.items():
        lines += [
            f"[providers.{back}-lab]", f'kind = "{kind}"', 'api_key_env = "ABUSE_KEY"',
            f'base_url = "{upstream.url}{_PATHS.get(back, "")}"', f'dialect = "{back}"',
            "retries = 0",
            'timeouts = { connect = "2s", first_byte = "2s", between_chunks = "1s" }',
            "[[routes]]", f'model = "{back}.*"', f'to = "{back}-lab"',
        ]  # fmt: skip
    lines += ["[[routes]]", 'model = "m"', 'to = "openai-chat-lab"']
    return "\n".join(lines) + "\n"


class Raw(NamedTuple):
    """The responses on a connection that was then closed, and the remaining bytes."""

    answers: list[Answer]
    rest: bytes


class Stage:
    """The gateway under attack, and the server behind it."""

    def __init__(self, running: Process, upstream: HostileUpstream, log: Path) -> None:
        self.running = running
        self.port = running.port
        self.upstream = upstream
        self._log = log
        self._served = 0

    def connect(self) -> socket.socket:
        """A connection to the gateway."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def send(self, data: bytes, *, half_closes: bool = False) -> Raw:
        """Send bytes, and read the responses until the gateway closes the connection."""
        with self.connect() as connection:
            try:
                connection.sendall(data)
                if half_closes:
                    connection.shutdown(socket.SHUT_WR)
            except OSError:  # it was rejected before all of it was sent
                pass
            return read_raw(connection)

    def post(self, front: str, body: Any, *headers: tuple[str, str], **options: Any) -> Answer:
        """One request on a new connection; the body may be any bytes."""
        path = options.pop("path", None) or path_for(front, **options)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        found = self.send(request(path, data, *headers))
        assert len(found.answers) == 1, found
        assert not found.rest, found.rest[:200]
        return found.answers[0]

    def ask(self, front: str, back: str = "openai-chat", how: str = "good", **options: Any) -> Any:
        """A valid request, for a model with some behaviour."""
        model = f"{back}.{how}"
        is_stream = options.pop("stream", False)
        body = {**body_for(front, CANARY, stream=is_stream, model=model), **options}
        answer = self.post(front, body, stream=is_stream, model=model)
        if b"could not be reached" in answer.body:  # on a connection that a server has just closed
            answer = self.post(front, body, stream=is_stream, model=model)
        return answer

    def serves(self, front: str = "openai-chat", back: str = "openai-chat") -> None:
        """The next valid request is served, alternately plain and streamed."""
        self._served += 1
        stream = bool(self._served % 2)
        answer = self.ask(front, back, stream=stream)
        assert answer.status == 200, answer
        assert text_in(front, answer, stream=stream) == SAID

    @property
    def memory(self) -> int:
        """The memory of the gateway, in bytes."""
        text = Path(f"/proc/{self.running.process.pid}/status").read_text()
        [found] = _LISTENS.findall(text)
        return int(found) * 1024

    def logged(self) -> list[dict[str, Any]]:
        """The complete lines of its log."""
        lines = self._log.read_text().split("\n")[:-1]
        return [json.loads(line) for line in lines]

    def check_silence(self) -> None:
        """There was no internal error, and neither log nor terminal contains a secret."""
        text = self._log.read_text() + "".join(self.running.screen)
        for secret in (PROVIDER_KEY, CANARY, "Traceback", "a request failed with"):
            assert secret not in text, text[max(0, text.index(secret) - 400) :][:800]


@contextmanager
def staged(folder: Path, **server: Any) -> Generator[Stage]:
    """A gateway in a separate process, until the block ends."""
    with HostileUpstream() as upstream:
        text = configuration(upstream, **server)
        with process(folder, text, env={"ABUSE_KEY": PROVIDER_KEY}) as running:
            made = Stage(running, upstream, folder / "requests.log")
            yield made
            assert running.process.poll() is None, running.screen
        made.check_silence()


# --- requests and responses as bytes


def request(path: str, body: bytes = b"", *headers: tuple[str, str], method: str = "POST") -> bytes:
    """A request after which the connection closes; headers given replace those made here."""
    given = {name.lower() for name, _ in headers}
    usual = [
        ("host", "127.0.0.1"), ("connection", "close"), ("content-type", "application/json"),
        ("content-length", str(len(body))),
    ]  # fmt: skip
    if "transfer-encoding" in given:
        given.add("content-length")
    kept = [each for each in usual if each[0] not in given] + list(headers)
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in kept), "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def read_raw(connection: socket.socket) -> Raw:
    """Everything until the other side closes, as responses."""
    data = bytearray()
    try:
        while piece := connection.recv(1 << 20):
            data += piece
    except ConnectionResetError:
        pass
    return parsed(bytes(data))


def parsed(data: bytes) -> Raw:
    """The responses in some bytes; an incomplete one is returned as the rest."""
    answers: list[Answer] = []
    stream = BytesIO(data)
    while data[stream.tell() :].startswith(b"HTTP/1."):
        begun = stream.tell()
        reply = HTTPResponse(_Bytes(stream))  # type: ignore[arg-type]
        reply.begin()
        try:
            body = reply.read()
        except (IncompleteRead, ValueError):
            return Raw(answers, data[begun:])
        headers = {name.lower(): value for name, value in reply.getheaders()}
        answers.append(Answer(reply.status, headers, body))
    return Raw(answers, data[stream.tell() :])


class _Bytes:
    """Received bytes, in the form that `http.client` expects of a socket."""

    def __init__(self, stream: BytesIO) -> None:
        self._stream = stream

    def makefile(self, *_: Any) -> _Bytes:
        return self

    def read(self, *size: int) -> bytes:
        return self._stream.read(*size)

    def readline(self, *size: int) -> bytes:
        return self._stream.readline(*size)

    def readinto(self, buffer: Any) -> int:
        return self._stream.readinto(buffer)

    def flush(self) -> None:
        """Nothing is written."""

    def close(self) -> None:
        """The bytes after this response are still needed."""


def refused(front: str, answer: Answer, *statuses: int) -> str:
    """Check that a response is an error in the front's form; returns its text."""
    where = (front, answer.status, answer.body[:600])
    assert answer.status in statuses, where
    assert answer.headers["content-type"].startswith("application/json"), where
    body = answer.json
    match front:
        case "anthropic":
            assert body["type"] == "error", where
            assert isinstance(body["error"]["type"], str), where
            text = body["error"]["message"]
        case "gemini":
            assert body["error"]["code"] == answer.status, where
            assert isinstance(body["error"]["status"], str), where
            text = body["error"]["message"]
        case "ollama":
            text = body["error"]
        case _:
            assert {"message", "type", "param", "code"} <= body["error"].keys(), where
            assert "status" not in body["error"], where
            text = body["error"]["message"]
    assert isinstance(text, str), where
    assert text, where
    leak = _LEAKS.search(answer.body.decode() + repr(answer.headers))
    assert leak is None, (leak, where)
    return text
