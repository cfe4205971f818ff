"""What the largest allowed requests cost a gateway: CPU, memory, and how long others wait.

`python -m tests.gateway.abuse.worst` prints a table; with names, only of these shapes.
"""

from __future__ import annotations

import gzip
import re
import socket
import sys
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from dragoman.wire.ollama.services_context import encode_context
from tests.gateway.abuse.stage import Stage, request, staged
from tests.gateway.abuse.test_websockets import TEXT, frame, opened

MEBIBYTE = 1024 * 1024
MAX_BODY = 32 * MEBIBYTE
MAX_VALUES = 100_000
_ROOM = 2_000  # for what surrounds the values
_TOKENS = 450_000
"""Numbers of one or two digits."""


class Cost(NamedTuple):
    """What a request cost the gateway."""

    status: int
    cpu: float
    """CPU seconds in total."""
    delay: float
    """The longest time that `/health` took meanwhile, in CPU seconds of the gateway."""
    waited: float
    """The same in seconds of the clock, in which other programs run, too."""
    peak: int
    """Memory on top of what it had before, in bytes."""
    kept: int
    """Of this, what it still had some seconds later."""


class Shape(NamedTuple):
    """A request at the limits."""

    path: str
    body: Callable[[], bytes]
    headers: tuple[tuple[str, str], ...] = ()


def _joined(item: bytes, number: int) -> bytes:
    return b"[" + b",".join([item] * number) + b"]"


def _chat(messages: bytes, more: bytes = b"") -> bytes:
    return b'{"model":"openai-chat.good","messages":%b%b}' % (messages, more)


def _text(unit: bytes, size: int) -> bytes:
    return unit * (size // len(unit))


_USER = b'{"role":"user","content":"x"}'
_FILL = MAX_BODY - 4096
_CHAT, _ANTHROPIC, _RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
_GZIP = (("content-encoding", "gzip"),)


def _called(unit: bytes) -> bytes:
    """A call whose arguments are a list of such values, as text."""
    call = b'{"id":"a","type":"function","function":{"name":"f","arguments":"{\\"a\\":[%b]}"}}'
    made = call % _text(unit, _FILL)[:-1]
    result = b'{"role":"tool","tool_call_id":"a","content":""}'
    return b'[%b,{"role":"assistant","tool_calls":[%b]},%b]' % (_USER, made, result)


def _forged_context(turns: int) -> list[int]:
    """Our own form of Ollama's context, which is not signed."""
    data = zlib.compress(_joined(b'["user",""]', turns))
    padded = data + bytes(-len(data) % 3)
    numbers = [int.from_bytes(padded[at : at + 3], "big") for at in range(0, len(padded), 3)]
    return [*encode_context([])[:2], len(data), *numbers]


def _said(unit: bytes) -> bytes:
    return b'[{"role":"user","content":"%b"}]' % _text(unit, _FILL)


def _crossed(messages: bytes, more: bytes = b"") -> bytes:
    """For a provider of another API."""
    return b'{"model":"gemini.good","max_tokens":9,"messages":%b%b}' % (messages, more)


def _logged() -> bytes:
    """Text that compresses to a tenth, as logs do."""
    lines = [b"%d: the line of a log that says nothing new\\n" % (n * 7919) for n in range(600_000)]
    return b"".join(lines)[:_FILL].rstrip(b"\\")


SHAPES: dict[str, Shape] = {
    "messages": Shape(_CHAT, lambda: _chat(_joined(_USER, 19_000))),
    "messages, translated": Shape(_CHAT, lambda: _crossed(_joined(_USER, 19_000))),
    "messages to Anthropic's API": Shape(_ANTHROPIC, lambda: _crossed(_joined(_USER, 19_000))),
    "results without calls": Shape(
        _CHAT, lambda: _crossed(_joined(b'{"role":"tool","tool_call_id":"a"}', 19_000))
    ),
    "empty objects": Shape(
        _CHAT, lambda: _crossed(_joined(_USER, 1), b',"x":' + _joined(b"{}", MAX_VALUES - _ROOM))
    ),
    "parts": Shape(
        _ANTHROPIC,
        lambda: _crossed(b'[{"role":"user","content":%b}]' % _joined(
            b'{"type":"text","text":""}', MAX_VALUES // 6)),
    ),
    "tools": Shape(
        _CHAT,
        lambda: _crossed(_joined(_USER, 1), b',"tools":' + b"[" + b",".join(
            b'{"type":"function","function":{"name":"f%d","parameters":{"type":"object"}}}' % each
            for each in range(MAX_VALUES // 13)) + b"]"),
    ),
    "properties": Shape(
        _CHAT,
        lambda: _crossed(_joined(_USER, 1), b',"tools":[{"type":"function","function":{"name":"f",'
        b'"parameters":{"type":"object","properties":{' + b",".join(
            b'"k%d":{}' % each for each in range(MAX_VALUES // 2 - _ROOM)) + b"}}}}]"),
    ),
    "numbers": Shape(
        _CHAT, lambda: _crossed(_joined(_USER, 1), b',"x":' + _joined(b"1", _TOKENS))
    ),
    "longer numbers": Shape(
        _CHAT, lambda: _crossed(_joined(_USER, 1), b',"x":' + _joined(b"1" * 4000, 2300))
    ),
    "long numbers": Shape(
        _CHAT, lambda: _crossed(_joined(_USER, 1), b',"x":' + _joined(b"1" * 60, _TOKENS // 4))
    ),
    "numbers in a tool": Shape(
        _CHAT,
        lambda: _crossed(_joined(_USER, 1), b',"tools":[{"type":"function","function":{"name":"f",'
        b'"parameters":{"enum":%b}}}]' % _joined(b"1.5", _TOKENS)),
    ),
    "objects in a call": Shape(_CHAT, lambda: _crossed(_called(b"{},"))),
    "numbers in a call": Shape(_CHAT, lambda: _crossed(_called(b"1,"))),
    "few objects in a call": Shape(
        _CHAT, lambda: _crossed(_called(b" " * 46 + b"{},"))
    ),
    "names": Shape(
        _CHAT, lambda: _crossed(_joined(_USER, 1), b"," + b",".join(
            b'"k%d":1' % each for each in range(80_000))),
    ),
    "names to be folded": Shape(
        _CHAT, lambda: _crossed(_joined(_USER, 1), b"," + b",".join(
            b'"%b%d":1' % ("\ufdfa".encode() * 250, each) for each in range(900))),
    ),
    "text": Shape(_CHAT, lambda: _chat(_said(b"word "))),
    "text, translated": Shape(_CHAT, lambda: _crossed(_said(b"word "))),
    "lines, translated": Shape(_CHAT, lambda: _crossed(_said(b"a\\n"))),
    "escapes, translated": Shape(_CHAT, lambda: _crossed(_said(b"\\u00e4"))),
    "quotes, translated": Shape(_CHAT, lambda: _crossed(_said(b'\\"'))),
    "commas, translated": Shape(_CHAT, lambda: _crossed(_said(b",{["))),
    "text to Anthropic's API": Shape(_ANTHROPIC, lambda: _crossed(_said(b"\xc3\xa4 "))),
    "text, counted": Shape("/v1/messages/count_tokens", lambda: _chat(_said(b"word, "))),
    "white space": Shape(_CHAT, lambda: _chat(b" " * _FILL + _joined(_USER, 1))),
    "compressed": Shape(
        _CHAT, lambda: gzip.compress(_crossed(b'[{"role":"user","content":"%b"}]' % _logged()), 1),
        _GZIP,
    ),
    "a bomb of numbers": Shape(
        _CHAT,
        lambda: gzip.compress(_chat(_joined(_USER, 1), b',"x":' + _joined(b"1", 16_000_000))),
        _GZIP,
    ),
    "a bomb of spaces": Shape(_CHAT, lambda: gzip.compress(b" " * MAX_BODY), _GZIP),
    "counting messages": Shape(
        "/v1/messages/count_tokens", lambda: _chat(_joined(_USER, 19_800))
    ),
    "counting input": Shape(
        "/v1/responses/input_tokens",
        lambda: b'{"model":"openai-chat.good","input":%b}' % _joined(_USER, 19_800),
    ),
    "Ollama's context": Shape(
        "/api/generate",
        lambda: b'{"model":"ollama.good","prompt":"x","context":%b}' % _joined(b"1", _TOKENS),
    ),
    "a forged context": Shape(
        "/api/generate",
        lambda: b'{"model":"gemini.good","prompt":"x","context":%b}' % b"".join(
            str(_forged_context(1_300_000)).encode().split()),
    ),
    "a context of millions": Shape(
        "/api/generate",
        lambda: b'{"model":"ollama.good","prompt":"x","context":%b}' % _joined(b"1", 5_000_000),
    ),
    "prompts": Shape(
        "/v1/completions",
        lambda: b'{"model":"gemini.good","prompt":%b}' % _joined(b'"x"', 90_000),
    ),
    "embeddings of tokens": Shape(
        "/v1/embeddings", lambda: b'{"model":"m","input":%b}' % _joined(_joined(b"1", 44), 9_500)
    ),
    "embeddings of texts": Shape(
        "/v1/embeddings", lambda: b'{"model":"m","input":%b}' % _joined(b'"x"', 10_000)
    ),
    "embeddings of one text": Shape(
        "/v1/embeddings", lambda: b'{"model":"m","input":"%b"}' % _text(b"a, ", _FILL)
    ),
    "Gemini's embeddings": Shape(
        "/v1beta/models/m:batchEmbedContents",
        lambda: b'{"requests":%b}' % _joined(b'{"content":{"parts":[{"text":"x"}]}}', 9_900),
    ),
    "a stored response": Shape(
        _RESPONSES,
        lambda: b'{"model":"gemini.good","store":true,"input":%b}' % _joined(_USER, 19_000),
    ),
    "a stored response, long": Shape(
        _RESPONSES,
        lambda: b'{"model":"gemini.good","store":true,"input":"%b"}' % _text(b"a\\n", _FILL),
    ),
    "a session": Shape(
        _CHAT, lambda: _crossed(_joined(_USER + b',{"role":"assistant","content":"y"}', 9_500)),
        (("x-dragoman-session", "s"),),
    ),
    "a session again": Shape(
        _CHAT, lambda: _crossed(_joined(_USER + b',{"role":"assistant","content":"y"}', 9_500)),
        (("x-dragoman-session", "s"),),
    ),
    "a session, long": Shape(
        _CHAT, lambda: _crossed(_said(b"a\\n")), (("x-dragoman-session", "l"),)
    ),
    "a conversation": Shape(
        "/v1/conversations",
        lambda: b'{"items":[{"type":"message","role":"user","content":%b}]}' % _joined(
            b'{"type":"input_text","text":""}', MAX_VALUES // 6),
    ),
    "a conversation, long": Shape(
        "/v1/conversations",
        lambda: b'{"items":[{"type":"message","role":"user","content":"%b"}]}' % _text(
            b"a\\n", _FILL),
    ),
    "metadata": Shape(
        "/v1/conversations",
        lambda: b'{"metadata":{%b}}' % b",".join(
            b'"%d":""' % each for each in range(MAX_VALUES // 2 - _ROOM)),
    ),
    "Ollama's show": Shape(
        "/api/show", lambda: b'{"model":"m","x":%b}' % _joined(b"{}", MAX_VALUES - _ROOM)
    ),
    "a WebSocket's turn": Shape(
        "websocket",
        lambda: b'{"type":"response.create","model":"gemini.good","input":%b}' % _joined(
            _USER, 19_000),
    ),
    "a WebSocket's text": Shape(
        "websocket",
        lambda: b'{"type":"response.create","model":"gemini.good","input":"%b"}' % _text(
            b"a\\n", _FILL),
    ),
    "a WebSocket's numbers": Shape(
        "websocket",
        lambda: b'{"type":"response.create","model":"m","x":%b}' % _joined(b"1", 16_000_000),
    ),
}  # fmt: skip


class Server:
    """A gateway with the default limits, and what it does meanwhile."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._process = Path(f"/proc/{stage.running.process.pid}")

    def cpu(self) -> float:
        """CPU seconds of the gateway so far."""
        spent = 0
        for thread in self._process.glob("task/*/schedstat"):
            try:
                spent += int(thread.read_text().split()[0])
            except OSError:  # it has just ended
                continue
        return spent / 1e9

    def memory(self, name: str = "VmRSS") -> int:
        """Its memory in bytes, or another of the kernel's figures."""
        for line in (self._process / "status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
        raise AssertionError(name)

    def cost(self, shape: Shape, *, pieces: int = 1) -> Cost:
        """Send a request, asking for `/health` all the time."""
        body = shape.body()
        (self._process / "clear_refs").write_text("5")  # the peak starts anew
        before, began = self.memory(), self.cpu()
        statuses: list[int] = []
        sending = threading.Thread(target=lambda: statuses.append(self._send(shape, body, pieces)))
        delays = [self._health()]
        sending.start()
        while sending.is_alive():
            delays.append(self._health())
        delays.append(self._health())
        spent, peak = self.cpu() - began, self.memory("VmHWM") - before
        for _ in range(50):
            kept = self.memory() - before
            if kept < 8 * MEBIBYTE:
                break
            threading.Event().wait(0.1)
        delay, waited = max(each[0] for each in delays), max(each[1] for each in delays)
        return Cost(statuses[0], spent, delay, waited, peak, kept)

    def _health(self) -> tuple[float, float]:
        began, cpu = perf_counter(), self.cpu()
        connection = HTTPConnection("127.0.0.1", self._stage.port, timeout=120)
        connection.request("GET", "/health")
        assert connection.getresponse().read()
        connection.close()
        return self.cpu() - cpu, perf_counter() - began

    def _send(self, shape: Shape, body: bytes, pieces: int) -> int:
        if shape.path == "websocket":
            return self._turn(body)
        with self._stage.connect() as connection:
            connection.settimeout(120)
            data = request(shape.path, body, *shape.headers)
            size = -(-len(data) // pieces)
            try:
                for begin in range(0, len(data), size):
                    connection.sendall(data[begin : begin + size])
            except OSError:  # refused before all of it was sent
                pass
            return int(_first_line(connection).split()[1])

    def _turn(self, body: bytes) -> int:
        with opened(self._stage) as connection:
            connection.settimeout(120)
            try:
                connection.sendall(frame(TEXT, body))
            except OSError:
                return 0
            received = b""
            while piece := connection.recv(65536):
                received += piece
                if b'"response.completed"' in received:
                    return 200
                found = re.search(rb'"type":"error","status":(\d+)', received)
                if found is not None:
                    return int(found[1])
            return 0


def _first_line(connection: socket.socket) -> bytes:
    received = b""
    while b"\r\n" not in received:
        piece = connection.recv(4096)
        if not piece:
            raise AssertionError(received)
        received += piece
    return received.partition(b"\r\n")[0]


def serving(folder: Path) -> Iterator[Server]:
    """A gateway, until the generator is closed."""
    history = f"sqlite:///{folder / 'chats.db'}"
    with staged(folder, max_body=MAX_BODY, history=history) as stage:
        stage.serves()
        yield Server(stage)


def main(names: list[str]) -> None:
    """Print what each shape costs."""
    say = partial(print, flush=True)
    say(f"{'request':28} {'MB':>5} {'status':>6} {'CPU s':>6} {'delay ms':>8}"
        f" {'waited ms':>9} {'peak MB':>7} {'kept MB':>7}")  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        for server in serving(Path(folder)):
            for name in names or SHAPES:
                found = server.cost(SHAPES[name])
                size = len(SHAPES[name].body()) / 1e6
                say(f"{name:28} {size:5.1f} {found.status:6} {found.cpu:6.2f}"
                    f" {found.delay * 1e3:8.0f} {found.waited * 1e3:9.0f}"
                    f" {found.peak / 1e6:7.0f} {found.kept / 1e6:7.0f}")  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
