"""The largest allowed requests: what they cost, and how long others wait meanwhile.

Time is the gateway's own CPU time: whatever else the machine does, it decides nothing here.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.gateway.abuse.stage import Stage, refused, request, staged
from tests.gateway.abuse.worst import MEBIBYTE, SHAPES, Server, serving

zstd = pytest.importorskip("backports.zstd")

DELAY = 0.25
"""What a request may take from others at most: CPU seconds before `/health` is answered."""
KEPT = 100 * MEBIBYTE
"""Of the memory that a request needs, what may stay with allocators and the store's caches."""
SAMPLE = (
    "messages, translated", "numbers in a tool", "long numbers", "quotes, translated",
    "compressed", "a bomb of numbers", "counting messages", "Ollama's context",
    "a context of millions", "a WebSocket's numbers", "few objects in a call", "names",
    "names to be folded", "a forged context",
)  # fmt: skip
REFUSED = {
    "a bomb of numbers",
    "a bomb of spaces",
    "a context of millions",
    "a WebSocket's numbers",
    "objects in a call",
    "numbers in a call",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A gateway with the default limits."""
    if not Path("/proc/self/schedstat").exists():
        pytest.skip("reads Linux's /proc")
    yield from serving(tmp_path_factory.mktemp("worst"))


@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=[] if each in SAMPLE else pytest.mark.thorough) for each in SHAPES],
)
def test_no_request_keeps_others_waiting(server: Server, name: str) -> None:
    """Whatever it holds, compressed or not, over HTTP or a WebSocket; `-s` prints the cost."""
    found = server.cost(SHAPES[name])
    print(f"{name}: {found}")  # noqa: T201 - the figures are a part of the result
    assert found.delay < DELAY, found
    assert found.kept < KEPT, found
    if name in REFUSED:
        assert found.status == 413, found
        assert found.cpu < DELAY, found


def _numbers(size: int) -> bytes:
    return b'{"model":"m","messages":[],"x":[' + b"1," * (size // 2) + b"1]}"


def _deflated(data: bytes, wbits: int) -> bytes:
    packer = zlib.compressobj(wbits=wbits)
    return packer.compress(data) + packer.flush()


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "identity": bytes,
    "gzip": gzip.compress,
    "gzip in parts": lambda data: b"".join(
        gzip.compress(data[at : at + len(data) // 8 + 1])
        for at in range(0, len(data), len(data) // 8 + 1)
    ),
    "deflate": lambda data: _deflated(data, zlib.MAX_WBITS),
    "raw deflate": lambda data: _deflated(data, -zlib.MAX_WBITS),
    "zstd": zstd.compress,
    "gzip of zstd": lambda data: gzip.compress(zstd.compress(data)),
}
_ENCODINGS = {
    "gzip in parts": "gzip", "raw deflate": "deflate", "gzip of zstd": "zstd, gzip",
}  # fmt: skip
_STREAMED = {"identity", "gzip", "deflate", "raw deflate"}
"""Encodings without blocks so large that only the last byte tells what is in them."""
LIMITS: dict[str, tuple[Callable[[], bytes], str]] = {
    "values": (lambda: _numbers(900_000), "max_values"),
    "size": (lambda: b'{"a":"' + bytes(range(32, 34)) * 600_000 + b'"}', "larger than"),
}


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A gateway with small limits."""
    folder = tmp_path_factory.mktemp("narrow")
    with staged(folder, max_body=MEBIBYTE, max_values=50_000, max_ratio=20) as stage:
        yield stage


@pytest.mark.parametrize("kind", PACKED)
@pytest.mark.parametrize("limit", ["values", "size"])
def test_limits_hold_however_the_bytes_arrive(narrow: Stage, kind: str, limit: str) -> None:
    """Slowly or fast, with a length or in chunks: the same refusal, and nothing reaches a provider.

    Slowly, the refusal comes before the body is complete.
    """
    made, said = LIMITS[limit]
    data = PACKED[kind](made())
    headers = [("content-encoding", _ENCODINGS.get(kind, kind))]
    asked = len(narrow.upstream.asked)
    path = "/v1/chat/completions"
    [whole] = narrow.send(request(path, data, *headers)).answers
    assert said in refused("openai-chat", whole, 413)
    chunks = [b"%x\r\n%b\r\n" % (len(each), each) for each in _cut(data, 40)]
    head = request(path, b"", *headers, ("transfer-encoding", "chunked"))
    [chunked] = narrow.send(head + b"".join(chunks) + b"0\r\n\r\n").answers
    assert said in refused("openai-chat", chunked, 413)
    if kind in _STREAMED:
        with narrow.connect() as connection:
            connection.sendall(head + b"".join(chunks[:-1]))  # the last one never arrives
            assert connection.recv(65536).startswith(b"HTTP/1.1 413 ")
    assert len(narrow.upstream.asked) == asked
    narrow.serves()


def _cut(data: bytes, pieces: int) -> list[bytes]:
    size = -(-len(data) // pieces)
    return [data[at : at + size] for at in range(0, len(data), size)]


@pytest.mark.parametrize("kind", ["gzip", "deflate", "zstd"])
def test_a_body_may_not_expand_too_much(tmp_path: Path, kind: str) -> None:
    """Beyond the first MiB, each compressed byte may stand for `max_ratio` bytes."""
    pytest.importorskip("backports.zstd")
    with staged(tmp_path, max_body=8 * MEBIBYTE, max_ratio=20) as stage:
        data = PACKED[kind](b" " * 4 * MEBIBYTE + b"{}")
        [answer] = stage.send(
            request("/v1/chat/completions", data, ("content-encoding", kind))
        ).answers
        assert "max_ratio" in refused("openai-chat", answer, 413)
        small = PACKED[kind](b" " * (MEBIBYTE - 100) + b"{}")
        [answer] = stage.send(
            request("/v1/chat/completions", small, ("content-encoding", kind))
        ).answers
        assert "max_ratio" not in refused("openai-chat", answer, 400, 404)


@pytest.mark.parametrize("shape", ["text", "messages"])
def test_bytes_may_arrive_one_by_one(narrow: Stage, shape: str) -> None:
    """A request in the smallest pieces costs no more than their number, and is served."""
    text = '"x' + "y" * 3000 + '"' if shape == "text" else '"x"'
    one = b'{"role":"user","content":%b}' % text.encode()
    data = b'{"model":"m","messages":[%b]}' % b",".join([one] * (1 if shape == "text" else 100))
    whole = request("/v1/chat/completions", data)
    with narrow.connect() as connection:
        for at in range(len(whole)):
            connection.sendall(whole[at : at + 1])
        assert connection.recv(64).startswith(b"HTTP/1.1 200 ")
