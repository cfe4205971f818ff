"""Network and server faults: each is a clear error, or no error at all."""

from __future__ import annotations

import asyncio
import gzip
import socket
import zlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dragoman import errors
from dragoman.errors import ConfigError, ConnectError, StreamInterrupted, TransportError, WireError
from dragoman.model.events import Event, PartStart, PartStop
from dragoman.transport.protocol import Timeouts
from dragoman.transport.retries import Retries
from tests.transport.answers import DIALECTS, TEXT, body, client, frames, kind, naps
from tests.transport.certificates import certified
from tests.transport.servers import Fault, Server, Step, chunk, head, plain, serving, streamed

pytestmark = pytest.mark.usefixtures("network")
_DIALECT = "openai-chat"
_OK = plain(body(_DIALECT))
_ONCE = Retries(attempts=1)


def _unused() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


# --- no connection


async def test_connection_refused() -> None:
    """The request was not sent, and is retried."""
    async with client(_DIALECT, _unused()) as made:
        with pytest.raises(ConnectError) as raised:
            await made.send("hi")
    assert raised.value.sent is False
    assert raised.value.__context__ is None
    assert len(naps(made)) == 2


async def test_unknown_host() -> None:
    """The error names the host, and not the rest of the URL, which may hold secrets."""
    url = "http://nobody.invalid:81/secret/v1"
    async with client(_DIALECT, url, retries=_ONCE) as made:
        with pytest.raises(ConnectError, match="name") as raised:
            await made.send("hi")
    assert "secret" not in str(raised.value)
    assert "at nobody.invalid:81]" in str(raised.value)
    assert raised.value.sent is False


async def test_an_untrusted_certificate(tmp_path: Path) -> None:
    """The request was not sent, and is not retried: it would fail again."""
    context, _ = certified(tmp_path)
    async with serving(_OK, tls=context) as server, client(_DIALECT, server.url) as made:
        for asking in (made.send("hi"), made.stream("hi").collect()):
            with pytest.raises(ConnectError, match="certificate") as raised:
                await asking
            assert raised.value.sent is False
            assert not raised.value.retryable
    assert (server.seen, naps(made)) == ([], [])


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
async def test_the_environment_sets_the_trusted_certificates(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the usual variables."""
    context, authority = certified(tmp_path)
    monkeypatch.setenv(variable, str(authority))
    async with serving(_OK, tls=context) as server, client(_DIALECT, server.url) as made:
        assert (await made.send("hi")).text == TEXT


async def test_an_invalid_certificate_file_is_a_config_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names the variable."""
    (tmp_path / "none.pem").write_text("nothing")
    for path in (tmp_path / "none.pem", tmp_path / "absent.pem"):
        monkeypatch.setenv("SSL_CERT_FILE", str(path))
        async with client(_DIALECT, "https://127.0.0.1:1") as made:
            with pytest.raises(ConfigError, match="SSL_CERT_FILE"):
                await made.send("hi")


async def test_a_server_without_tls() -> None:
    """The error differs from that of an untrusted certificate."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(head(400, {"Content-Length": "0"}))
        writer.close()

    listening = await asyncio.start_server(connected, "127.0.0.1", 0)
    url = f"https://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    async with client(_DIALECT, url, retries=_ONCE) as made:
        with pytest.raises(ConnectError, match="TLS") as raised:
            await made.send("hi")
    listening.close()
    assert raised.value.sent is False


async def test_a_connect_timeout() -> None:
    """A server whose queue is full does not answer the handshake."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
        url = f"http://127.0.0.1:{full.getsockname()[1]}"
        timeouts = Timeouts(connect=0.1, first_byte=0.3)
        async with client(_DIALECT, url, retries=_ONCE, timeouts=timeouts) as made:
            with pytest.raises(errors.TimeoutError) as raised:
                await made.send("hi")
        for filler in fillers:
            filler.close()
    assert isinstance(raised.value, TimeoutError)


# --- no answer


@pytest.mark.parametrize("fault", [Fault.CLOSE, Fault.RESET])
async def test_a_connection_that_closes_before_the_head(fault: Fault) -> None:
    """The request may have been processed; it is still retried."""
    async with serving([fault], [fault], _OK) as server, client(_DIALECT, server.url) as made:
        assert (await made.send("hi")).text == TEXT
    async with serving([fault]) as server, client(_DIALECT, server.url, retries=_ONCE) as made:
        with pytest.raises(ConnectError) as raised:
            await made.send("hi")
    assert raised.value.sent is True


@pytest.mark.parametrize("fault", [Fault.CLOSE, Fault.RESET])
async def test_a_connection_that_closes_within_the_body(fault: Fault) -> None:
    """A plain answer is requested again; a truncated one is never accepted."""
    half: list[Step] = [head(200, {"Content-Length": "1000"}) + b'{"choices": [', fault]
    async with serving(half, _OK) as server, client(_DIALECT, server.url) as made:
        assert (await made.send("hi")).text == TEXT
    async with serving(half) as server, client(_DIALECT, server.url, retries=_ONCE) as made:
        with pytest.raises(StreamInterrupted):
            await made.send("hi")


async def test_a_server_that_never_answers() -> None:
    """Our timeout, which is also the builtin one; the connection is closed."""
    timeouts = Timeouts(first_byte=0.05)
    async with (
        serving([Fault.HANG]) as server,
        client(_DIALECT, server.url, retries=_ONCE, timeouts=timeouts) as made,
    ):
        with pytest.raises(errors.TimeoutError, match="respond") as raised:
            await made.send("hi")
        await server.until_idle()
    assert raised.value.sent is True


async def test_a_slow_head_is_accepted() -> None:
    """A head that arrives byte by byte is read to its end."""
    raw = b"".join(step for step in _OK if isinstance(step, bytes))
    steps: list[Step] = [raw[place : place + 1] for place in range(len(raw))]
    async with serving([*steps, Fault.KEEP]) as server, client(_DIALECT, server.url) as made:
        assert (await made.send("hi")).text == TEXT


async def test_a_body_that_stalls() -> None:
    """In plain answers, too."""
    half: list[Step] = [head(200, {"Content-Length": "1000"}) + b"{", Fault.HANG]
    timeouts = Timeouts(between_chunks=0.05)
    async with (
        serving(half) as server,
        client(_DIALECT, server.url, retries=_ONCE, timeouts=timeouts) as made,
    ):
        with pytest.raises(errors.TimeoutError, match="stopped sending"):
            await made.send("hi")
        await server.until_idle()


async def test_an_error_with_a_truncated_body_is_still_that_error() -> None:
    """The status is enough."""
    half: list[Step] = [head(401, {"Content-Length": "1000"}) + b"{", Fault.CLOSE]
    async with serving(half) as server, client(_DIALECT, server.url) as made:
        with pytest.raises(errors.AuthenticationError):
            await made.send("hi")
    assert len(server.seen) == 1


# --- invalid HTTP


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x00\x01\x02\x03\r\n\r\n",
        b"SSH-2.0-OpenSSH_9\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nNo colon here\r\n\r\n",
        head(200, {"X-Huge": "x" * 200_000}),
        head(200, {f"X-{number}": "x" for number in range(5000)}),
    ],
    ids=["bytes", "ssh", "status", "header", "huge header", "many headers"],
)
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
async def test_invalid_http_is_reported(garbage: bytes, stream: bool) -> None:
    """It is not retried."""
    reply: list[Step] = [garbage, Fault.CLOSE]
    async with serving(reply) as server, client(_DIALECT, server.url) as made:
        with pytest.raises(TransportError) as raised:
            await (made.stream("hi").collect() if stream else made.send("hi"))
    assert type(raised.value) is TransportError
    assert raised.value.sent is True
    assert "OpenSSH" not in str(raised.value)
    assert len(server.seen) == 1


async def test_long_headers_are_accepted() -> None:
    """Some gateways put whole traces there."""
    reply = plain(body(_DIALECT), headers={"X-Trace": "x" * 60_000})
    async with serving(reply) as server, client(_DIALECT, server.url) as made:
        assert (await made.send("hi")).text == TEXT


@pytest.mark.parametrize(
    "ending", [b"5\r\nabc", b"zz\r\n", b"-1\r\n\r\n", b"ffffffffffffffffff\r\n"]
)
async def test_invalid_chunks_are_an_interruption(ending: bytes) -> None:
    """After the events that came before them."""
    pieces = frames(_DIALECT)
    start = streamed(*pieces[:3], Fault.CLOSE)[:-1]
    reply: list[Step] = [*start, ending, Fault.CLOSE]
    async with serving(reply) as server, client(_DIALECT, server.url, retries=_ONCE) as made:
        with pytest.raises(TransportError) as raised:
            await made.stream("hi").collect()
    if isinstance(raised.value, StreamInterrupted):
        assert TEXT.startswith(raised.value.partial.text)


async def test_trailers_are_skipped() -> None:
    """A chunked body may be followed by headers."""
    start = streamed(*frames(_DIALECT), Fault.KEEP)[:-1]
    reply: list[Step] = [*start, b"0\r\nX-Trailer: 1\r\nX-More: 2\r\n\r\n", Fault.KEEP]
    async with serving(reply) as server, client(_DIALECT, server.url) as made:
        for _ in range(2):
            assert (await made.stream("hi").collect()).text == TEXT
    assert server.connections == 1


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
async def test_http_1_0_ends_with_the_connection(stream: bool) -> None:
    """Old and simple servers close the connection."""
    raw = b"".join(frames(_DIALECT)) if stream else b"".join(
        step for step in _OK if isinstance(step, bytes)).partition(b"\r\n\r\n")[2]  # fmt: skip
    reply: list[Step] = [head(200, {"Content-Type": "x/y"}, version="1.0"), raw, Fault.CLOSE]
    async with serving(reply) as server, client(_DIALECT, server.url) as made:
        for _ in range(2):
            found = await (made.stream("hi").collect() if stream else made.send("hi"))
            assert found.text == TEXT
    assert server.connections == 2


async def test_an_interim_head_is_skipped() -> None:
    """100 and 103 come before the answer."""
    raw = b"".join(step for step in _OK if isinstance(step, bytes))
    reply: list[Step] = [head(103, {"Link": "x"}), raw, Fault.KEEP]
    async with serving(reply) as server, client(_DIALECT, server.url) as made:
        assert (await made.send("hi")).text == TEXT


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
async def test_redirects_are_not_followed(status: int, stream: bool) -> None:
    """A key would be sent to another host."""
    async with serving(_OK) as elsewhere:
        reply = plain({}, status, {"Location": f"{elsewhere.url}/secret"})
        async with serving(reply) as server, client(_DIALECT, server.url) as made:
            with pytest.raises(TransportError, match="base_url") as raised:
                await (made.stream("hi").collect() if stream else made.send("hi"))
        assert elsewhere.seen == []
    assert "secret" not in str(raised.value)
    assert len(server.seen) == 1


# --- sizes


async def test_a_body_that_is_too_big() -> None:
    """It is not read to its end, and the connection is closed."""
    huge: list[Step] = [head(200, {"Content-Length": "1000000000"}), b"x" * 100_000, Fault.HANG]
    async with serving(huge) as server, client(_DIALECT, server.url, max_bytes=50_000) as made:
        with pytest.raises(TransportError, match="max_bytes"):
            await made.send("hi")
        await server.until_idle()
    assert len(server.seen) == 1


async def test_an_error_that_is_too_big_is_still_that_error() -> None:
    """Whatever the client's limit."""
    huge: list[Step] = [head(403, {"Content-Length": "1000000000"}), b"x" * 3_000_000, Fault.HANG]
    async with serving(huge) as server, client(_DIALECT, server.url) as made:
        with pytest.raises(errors.PermissionDenied):
            await made.send("hi")
        await server.until_idle()


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
async def test_the_limit_counts_decompressed_bytes(encoding: str, stream: bool) -> None:
    """A decompression bomb doesn't fill the memory."""
    bomb = b": " + b"x" * 60_000_000
    packed = gzip.compress(bomb) if encoding == "gzip" else zlib.compress(bomb)
    reply = plain(packed, headers={"Content-Encoding": encoding}, kind="text/event-stream")
    import tracemalloc

    async with serving(reply) as server, client(_DIALECT, server.url, max_bytes=1_000_000) as made:
        del bomb
        tracemalloc.start()
        with pytest.raises(TransportError, match="max_bytes"):
            await (made.stream("hi").collect() if stream else made.send("hi"))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 20_000_000


async def test_compressed_answers_are_read() -> None:
    """Servers may compress answers."""
    raw = b"".join(step for step in _OK if isinstance(step, bytes)).partition(b"\r\n\r\n")[2]
    reply = plain(gzip.compress(raw), headers={"Content-Encoding": "gzip"})
    packed = gzip.compress(b"".join(frames(_DIALECT)))
    stream = streamed(packed[:50], packed[50:], headers={"Content-Encoding": "gzip"})
    async with serving(reply, stream) as server, client(_DIALECT, server.url) as made:
        assert (await made.send("hi")).text == TEXT
        assert (await made.stream("hi").collect()).text == TEXT


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
async def test_invalid_compression_is_an_error(stream: bool) -> None:
    """It is a `TransportError` or `WireError`."""
    reply = plain(b"nothing of the kind", headers={"Content-Encoding": "gzip"})
    async with serving(reply) as server, client(_DIALECT, server.url, retries=_ONCE) as made:
        with pytest.raises((TransportError, WireError)):
            await (made.stream("hi").collect() if stream else made.send("hi"))


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_stream_may_arrive_byte_by_byte(dialect: str) -> None:
    """Each byte in its own chunk."""
    raw = b"".join(frames(dialect))
    reply = streamed(*(raw[place : place + 1] for place in range(len(raw))), kind=kind(dialect))
    async with serving(reply) as server, client(dialect, server.url) as made:
        assert (await made.stream("hi").collect()).text == TEXT


# --- proxies


@asynccontextmanager
async def _proxy(server: Server) -> AsyncGenerator[tuple[str, list[str]]]:
    """A proxy that forwards everything to a server and records the targets."""
    asked: list[str] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            lines = (await reader.readuntil(b"\r\n\r\n")).decode()
            asked.append(lines)
            method, target, _ = lines.split("\r\n")[0].split(" ")
            there, back = await asyncio.open_connection("127.0.0.1", server.port)
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
            else:
                back.write(lines.replace(target, "/" + target.split("/", 3)[3], 1).encode())
            await asyncio.gather(_pump(reader, back), _pump(there, writer))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    listening = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{listening.sockets[0].getsockname()[1]}", asked
    finally:
        listening.close()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while data := await source.read(65536):
        sink.write(data)
    sink.close()


async def test_plain_requests_go_through_the_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With its user and password, if it has them; a scheme is optional."""
    async with serving(_OK) as server, _proxy(server) as (proxy, asked):
        for text in (f"http://{proxy}", proxy, f"http://me:pass@{proxy}"):
            monkeypatch.setenv("HTTP_PROXY", text)
            async with client(_DIALECT, "http://api.test/v1") as made:
                assert (await made.send("hi")).text == TEXT
    assert all(each.startswith("POST http://api.test/v1/chat/completions ") for each in asked)
    assert "Proxy-Authorization: Basic " in asked[2]


async def test_tls_goes_through_a_tunnel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy only sees the host and port."""
    context, authority = certified(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    async with serving(_OK, tls=context) as server, _proxy(server) as (proxy, asked):
        monkeypatch.setenv("HTTPS_PROXY", f"http://{proxy}")
        async with client(_DIALECT, "https://api.test/v1") as made:
            assert (await made.send("hi")).text == TEXT
    assert len(asked) == 1
    assert asked[0].startswith("CONNECT api.test:443 ")
    assert "sk-test" not in asked[0]


@pytest.mark.parametrize("exception", ["api.invalid", ".invalid", "other.test,api.invalid", "*"])
async def test_no_proxy_names_exceptions(exception: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests to them are sent directly."""
    async with serving(_OK) as server, _proxy(server) as (proxy, asked):
        monkeypatch.setenv("ALL_PROXY", f"http://{proxy}")
        async with client(_DIALECT, "http://api.invalid/v1", retries=_ONCE) as made:
            assert (await made.send("hi")).text == TEXT
        monkeypatch.setenv("NO_PROXY", exception)
        async with client(_DIALECT, "http://api.invalid/v1", retries=_ONCE) as made:
            with pytest.raises(ConnectError, match="name"):
                await made.send("hi")
    assert len(asked) == 1


async def test_loopback_never_uses_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Local models would be unreachable."""
    monkeypatch.setenv("ALL_PROXY", _unused())
    async with serving(_OK) as server:
        for host in ("127.0.0.1", "localhost"):
            async with client(_DIALECT, f"http://{host}:{server.port}") as made:
                assert (await made.send("hi")).text == TEXT


async def test_an_unreachable_proxy_is_named_as_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The request was not sent."""
    monkeypatch.setenv("ALL_PROXY", _unused())
    for url in ("http://api.test", "https://api.test"):
        async with client(_DIALECT, url, retries=_ONCE) as made:
            with pytest.raises(ConnectError, match="proxy") as raised:
                await made.send("hi")
        assert raised.value.sent is False


async def test_a_proxy_that_refuses_the_tunnel(monkeypatch: pytest.MonkeyPatch) -> None:
    """The request was not sent."""
    refused: list[Step] = [head(407, {"Content-Length": "0"}), Fault.CLOSE]
    async with serving(refused) as server:
        monkeypatch.setenv("HTTPS_PROXY", server.url)
        async with client(_DIALECT, "https://api.test", retries=_ONCE) as made:
            with pytest.raises(ConnectError, match="proxy") as raised:
                await made.send("hi")
    assert raised.value.sent is False


async def test_a_proxy_of_another_kind_is_a_config_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The request isn't sent without the proxy instead."""
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")
    async with client(_DIALECT, "http://api.test") as made:
        with pytest.raises(ConfigError, match="proxy"):
            await made.send("hi")


def test_chunks_of_the_test_server_are_valid() -> None:
    """Size, CRLF, data, CRLF."""
    assert chunk(b"abc") == b"3\r\nabc\r\n"


@pytest.mark.parametrize("dialect", ["ollama", "openai-chat"])
async def test_an_interrupted_part_is_closed_before_the_error(dialect: str) -> None:
    """Each started part has its end event, before the error is raised."""
    events: list[Event] = []

    async def read(url: str) -> None:
        async with client(dialect, url, retries=_ONCE) as made:
            async for event in made.stream("hi"):
                events.append(event)  # noqa: PERF401 - those before the error count

    async with serving(streamed(*frames(dialect)[:-2], Fault.CLOSE)) as server:
        with pytest.raises(StreamInterrupted):
            await read(server.url)
    begun = [event.index for event in events if isinstance(event, PartStart)]
    ended = [event.index for event in events if isinstance(event, PartStop)]
    assert begun
    assert ended == begun
