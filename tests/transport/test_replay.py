"""Recorded traffic in place of the network."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import threading
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import (
    ConfigError,
    InvalidInputError,
    NotRecorded,
    RateLimited,
    StreamInterrupted,
)
from dragoman.transport.client import Client
from dragoman.transport.protocol import HttpRequest, Timeouts, read_body
from dragoman.transport.recordings import Exchange, read_recording
from dragoman.transport.replay import Mode, ReplayTransport, steps_of
from dragoman.transport.retries import Retries
from tests.transport.vendors import NONE, Came, Goes, failed, said, serving, streamed

TIMEOUTS = Timeouts()
HEAD = '{"dragoman_recording":1}\n'


class Spoken:
    """A reply made of given chunks."""

    def __init__(self, pieces: list[bytes], headers: Mapping[str, str], *, is_cut: bool) -> None:
        self.status = 200
        self.headers = headers
        self._pieces, self._is_cut = pieces, is_cut

    async def chunks(self) -> AsyncIterator[bytes]:
        """The chunks, one by one."""
        for piece in self._pieces:
            await asyncio.sleep(0)
            yield piece
        if self._is_cut:
            msg = "cut"
            raise StreamInterrupted(msg)

    async def close(self) -> None:
        """Nothing to do."""


class Network:
    """A transport with a fixed reply that counts its requests."""

    def __init__(
        self, *pieces: bytes, is_cut: bool = False, headers: Mapping[str, str] = NONE
    ) -> None:
        self.pieces = list(pieces) or [b"{}"]
        self.headers = headers
        self.is_cut = is_cut
        self.asked = 0
        self.is_closed = False

    async def open(self, request: HttpRequest, timeouts: Timeouts) -> Spoken:
        """The chunks for any request; the last one has the number of the request."""
        assert request.method, timeouts
        self.asked += 1
        pieces = [piece.replace(b"#", str(self.asked).encode()) for piece in self.pieces]
        return Spoken(pieces, self.headers, is_cut=self.is_cut)

    async def close(self) -> None:
        """Remember that it was closed."""
        self.is_closed = True


def post(body: Any = None, url: str = "https://api.example/v1/x", **headers: str) -> HttpRequest:
    """A request."""
    raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    return HttpRequest(url=url, headers=headers, body=raw)


async def ask(transport: ReplayTransport, request: HttpRequest) -> bytes:
    """The whole body of the reply."""
    reply = await transport.open(request, TIMEOUTS)
    try:
        return await read_body(reply, 10_000_000, None)
    finally:
        await reply.close()


async def record(path: Path, *requests: HttpRequest, network: Network | None = None) -> None:
    """Record these requests."""
    transport = ReplayTransport(path, "record", transport=network or Network(b"#"))
    for request in requests:
        await ask(transport, request)


# --- a client, recorded and replayed


async def test_a_recorded_conversation_plays_without_a_network(tmp_path: Path) -> None:
    """Plain and streamed, with errors and retries: the same answers, without a request."""
    moods = iter([failed(429, "rate_limit_exceeded", **{"Retry-After": "0"}), said("Plain")])

    def answer(came: Came) -> Goes:
        return streamed("Str", "eam", "ed") if came.json.get("stream") else next(moods)

    async def talk(transport: ReplayTransport, url: str) -> tuple[str, str, int]:
        async with Client(
            "openai:m",
            key="sk-secret",
            base_url=f"{url}/v1",
            transport=transport,
            retries=Retries(initial_delay=0, max_delay=0),
        ) as client:
            plain = await client.send("Hi")
            stream = client.stream("Hi")
            number = len([event async for event in stream])
            return plain.text, stream.response.text, number

    path = tmp_path / "deep" / "talk.jsonl"
    async with serving(answer) as vendor:
        recording = ReplayTransport(path, "record")
        first = await talk(recording, vendor.url)
        await recording.close()
        assert len(vendor.came) == 3
    replay = ReplayTransport(path)
    assert await talk(replay, "http://nowhere.invalid") == first
    assert first[:2] == ("Plain", "Streamed")
    assert replay.unplayed == 0
    assert "secret" not in path.read_text(encoding="utf-8").replace("hush: sk-secret", "")


async def test_errors_are_replayed_as_errors(tmp_path: Path) -> None:
    """Status and headers are the recorded ones, whatever their case."""
    once = Retries(attempts=1)
    path = tmp_path / "x.jsonl"
    async with serving(lambda _: failed(429, "x", **{"RETRY-after": "9"})) as vendor:
        modes: list[Mode] = ["record", "replay"]
        for mode in modes:
            transport = ReplayTransport(path, mode)
            client = Client("openai:m", key="k", base_url=vendor.url, transport=transport,
                            retries=once)  # fmt: skip
            with pytest.raises(RateLimited) as caught:
                await client.send("Hi")
            assert caught.value.retry_after == 9
            await transport.close()
        assert len(vendor.came) == 1


# --- matching


async def test_field_order_and_host_do_not_matter(tmp_path: Path) -> None:
    """Nor do headers, nor the order of the query."""
    path = tmp_path / "x.jsonl"
    await record(path, post({"a": 1, "b": [1, {"c": None}]}, "https://one.example/v1/x?p=1&q=2"))
    asked = post(b'{ "b": [1, {"c": null}], "a": 1 }', "http://two.example:99/v1/x?q=2&p=1", X="y")
    assert await ask(ReplayTransport(path), asked) == b"1"


@pytest.mark.parametrize(
    ("request_", "paths"),
    [
        (post({"a": 2, "b": [1]}), ("$.a",)),
        (post({"a": True, "b": [1]}), ("$.a",)),
        (post({"a": 1, "b": [1, 2]}), ("$.b (2 items in the request, 1 in the recording)",)),
        (post({"a": 1}), ("$.b (not in the request)",)),
        (post({"a": 1, "b": [1], "c": 0}), ("$.c (only in the request)",)),
        (post({"a": 1, "b": [1], "what she said": 0}), ("$.* (only in the request)",)),
        (post({"a": 1, "b": [1]}, "https://x/v1/y"), ("segment 2 of the URL path",)),
        (post({"a": 1, "b": [1]}, "https://x/v1"), ("the URL path",)),
        (post({"a": 1, "b": [1]}, "https://x/v1/x?alt=sse"), ("the query",)),
        (post(b"other"), ("$",)),
        (
            HttpRequest(url="https://x/v1/x", method="PUT", body=b'{"a":1,"b":[1]}'),
            ("the method",),
        ),
    ],
)
async def test_an_unknown_request_is_an_error_that_names_the_differences(
    tmp_path: Path, request_: HttpRequest, paths: tuple[str, ...]
) -> None:
    """It has the paths, not the values."""
    path = tmp_path / "x.jsonl"
    await record(path, post({"a": 1, "b": [1]}), post({"far": "away", "from": "it", "all": 1}))
    transport = ReplayTransport(path)
    with pytest.raises(NotRecorded) as caught:
        await transport.open(request_, TIMEOUTS)
    assert caught.value.paths == paths
    assert "number 0" in str(caught.value)
    assert paths[0] in str(caught.value)
    assert isinstance(caught.value, ConfigError)


async def test_no_content_is_in_the_error(tmp_path: Path) -> None:
    """Neither the request's nor the recording's; the number of paths is limited."""
    path = tmp_path / "x.jsonl"
    await record(path, post({"messages": [{"content": "hush"}], **{f"f{n}": 0 for n in range(9)}}))
    with pytest.raises(NotRecorded) as caught:
        await ask(ReplayTransport(path), post({"messages": [{"content": "psst"}]}))
    assert "hush" not in str(caught.value)
    assert "psst" not in str(caught.value)
    assert "$.messages[0].content" in str(caught.value)
    assert "and 5 others" in str(caught.value)


async def test_repeated_requests_are_answered_in_order(tmp_path: Path) -> None:
    """One more than were recorded is an error."""
    path = tmp_path / "x.jsonl"
    await record(path, post({"n": 1}), post({"n": 2}), post({"n": 1}))
    transport = ReplayTransport(path)
    assert transport.unplayed == 3
    assert await ask(transport, post({"n": 1})) == b"1"
    assert await ask(transport, post({"n": 1})) == b"3"
    assert await ask(transport, post({"n": 2})) == b"2"
    assert transport.unplayed == 0
    with pytest.raises(NotRecorded, match="2 times"):
        await ask(transport, post({"n": 1}))


async def test_order_is_that_of_the_requests_not_of_the_replies(tmp_path: Path) -> None:
    """Of two equal concurrent requests, the first may end last."""
    path = tmp_path / "x.jsonl"
    recording = ReplayTransport(path, "record", transport=Network(b"#"))
    replies = [await recording.open(post({}), TIMEOUTS) for _ in range(2)]
    for reply in reversed(replies):
        await read_body(reply, 100, None)
        await reply.close()
    transport = ReplayTransport(path)
    assert [await ask(transport, post({})) for _ in range(2)] == [b"1", b"2"]


async def test_ignored_paths_do_not_count(tmp_path: Path) -> None:
    """By path, with wildcards; everything else still counts."""
    path = tmp_path / "x.jsonl"
    ignore = ["metadata.user_id", "messages[*].id", "$.list[0]"]
    kept = {"metadata": {"user_id": 1, "k": 1}, "messages": [{"id": 1, "t": "a"}], "list": [1, 2]}
    other = {"metadata": {"k": 1}, "messages": [{"id": 2, "t": "a"}], "list": [9, 2]}
    await record(path, post(kept))
    assert await ask(ReplayTransport(path, ignore=ignore), post(other)) == b"1"
    with pytest.raises(NotRecorded) as caught:
        await ask(ReplayTransport(path, ignore=ignore), post({**other, "metadata": {"k": 2}}))
    assert caught.value.paths == ("$.metadata.k",)
    for bad in ("", "$", "a..b", "a[x]", "[", "a[*"):
        with pytest.raises(InvalidInputError):
            steps_of(bad)


async def test_invalid_unicode_and_bytes_are_compared_too(tmp_path: Path) -> None:
    """Bodies that aren't JSON, or hardly."""
    path = tmp_path / "x.jsonl"
    odd, form, none = b'{"b":"\\ud800","a":1}', b"\xff\x00form", None
    await record(path, post(odd), post(form), post(none), post(b"{broken"))
    transport = ReplayTransport(path)
    assert await ask(transport, post(b'{"a":1,"b":"\\ud800"}')) == b"1"
    assert [await ask(transport, post(body)) for body in (form, none, b"{broken")] == [
        b"2", b"3", b"4",
    ]  # fmt: skip


# --- recording


async def test_bodies_are_recorded_chunk_by_chunk(tmp_path: Path) -> None:
    """They may be cut anywhere, even within a character."""
    pieces = [b"data: \xe2\x82", b"\xac\n\n", b"", b"\xff\xfe", b"end"]
    path = tmp_path / "x.jsonl"
    await record(path, post({"q": 1}), network=Network(*pieces))
    reply = await ReplayTransport(path).open(post({"q": 1}), TIMEOUTS)
    assert [piece async for piece in reply.chunks()] == pieces
    await reply.close()


async def test_keys_and_cookies_are_not_recorded(tmp_path: Path) -> None:
    """In headers of both directions and in the URL; other values stay readable."""
    path = tmp_path / "x.jsonl"
    come = {"Set-Cookie": "hush-1", "openai-organization": "hush-2", "x-request-id": "r1",
            "X-RateLimit-Remaining-Tokens": "9", "content-encoding": "gzip"}  # fmt: skip
    sent = {"Authorization": "Bearer hush-3", "x-api-key": "hush-4", "X-Mine": "hush-5",
            "anthropic-version": "2023-06-01"}  # fmt: skip
    url = "https://hush-6:hush-7@hush-8.example/v1/x?key=hush-9&access_token=hush-0&alt=sse&mine=hush-a"
    transport = ReplayTransport(
        path, "record", transport=Network(b"{}", headers=come), secrets=["Mine", "X-Mine"]
    )
    await ask(transport, post({"a": 1}, url, **sent))
    assert "hush" not in path.read_text(encoding="utf-8")
    (exchange,) = read_recording(path)
    assert exchange.request.place == "/v1/x?access_token=***&alt=sse&key=***&mine=***"
    assert exchange.request.headers["anthropic-version"] == "2023-06-01"
    assert exchange.reply.headers == {
        "set-cookie": "***", "openai-organization": "***", "x-request-id": "r1",
        "x-ratelimit-remaining-tokens": "9",
    }  # fmt: skip
    again = url.replace("hush-9", "other")
    assert await ask(ReplayTransport(path, secrets=["mine"]), post({"a": 1}, again)) == b"{}"
    assert "hush" not in f"{exchange!r}{transport!r}"


async def test_an_interrupted_stream_is_interrupted_again(tmp_path: Path) -> None:
    """After the same bytes."""
    path = tmp_path / "x.jsonl"
    with pytest.raises(StreamInterrupted):
        await record(path, post({}), network=Network(b"half", is_cut=True))
    reply = await ReplayTransport(path).open(post({}), TIMEOUTS)
    heard: list[bytes] = []
    with pytest.raises(StreamInterrupted, match="was lost"):
        heard.extend([piece async for piece in reply.chunks()])
    with pytest.raises(StreamInterrupted):
        await read_body(await ReplayTransport(path).open(post({}), TIMEOUTS), 10, None)


async def test_a_stream_that_was_closed_early_is_not_replayed_as_complete(tmp_path: Path) -> None:
    """The unread rest isn't in the recording."""
    path = tmp_path / "x.jsonl"
    transport = ReplayTransport(path, "record", transport=Network(b"one", b"two"))
    reply = await transport.open(post({}), TIMEOUTS)
    async for _ in reply.chunks():
        break
    await reply.close()
    (exchange,) = read_recording(path)
    assert (exchange.reply.chunks, exchange.reply.end) == (("one",), "left")
    with pytest.raises(StreamInterrupted, match="reader stopped"):
        await ask(ReplayTransport(path), post({}))


async def test_recording_replaces_the_file_with_the_first_exchange(tmp_path: Path) -> None:
    """Not before: a run that fails at once destroys nothing."""
    path = tmp_path / "x.jsonl"
    await record(path, post({"old": 1}))
    transport = ReplayTransport(path, "record", transport=Network(b"new"))
    assert len(read_recording(path)) == 1
    await ask(transport, post({"new": 1}))
    await ask(transport, post({"new": 2}))
    found = [json.loads(str(exchange.request.body)) for exchange in read_recording(path)]
    assert found == [{"new": 1}, {"new": 2}]
    assert os.listdir(tmp_path) == ["x.jsonl"]  # noqa: PTH208 - pathlib's would wait, says ruff


async def test_auto_only_sends_unrecorded_requests(tmp_path: Path) -> None:
    """They are added with the next number."""
    path = tmp_path / "x.jsonl"
    network = Network(b"#")
    first = ReplayTransport(path, "auto", transport=network)
    assert await ask(first, post({"n": 1})) == b"1"
    second = ReplayTransport(path, "auto", transport=network)
    assert [await ask(second, post({"n": n})) for n in (1, 2, 1)] == [b"1", b"2", b"3"]
    third = ReplayTransport(path)
    assert [await ask(third, post({"n": n})) for n in (1, 1, 2)] == [b"1", b"3", b"2"]
    assert network.asked == 3
    await second.close()
    assert not network.is_closed  # it was passed in


async def test_concurrent_recording_from_several_threads(tmp_path: Path) -> None:
    """Every exchange is recorded on its own line."""
    path = tmp_path / "x.jsonl"
    transports = [ReplayTransport(path, "auto", transport=Network(b"x" * 5000)) for _ in range(2)]

    async def many(transport: ReplayTransport, start: int) -> None:
        await asyncio.gather(*(ask(transport, post({"n": start + n})) for n in range(20)))

    def run(number: int) -> None:
        asyncio.run(many(transports[number % 2], number * 20))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    assert len(read_recording(path)) == 80
    replay = ReplayTransport(path)
    await asyncio.gather(*(ask(replay, post({"n": n})) for n in range(80)))
    assert replay.unplayed == 0


# --- files


async def test_a_line_cut_by_a_crash_is_ignored(tmp_path: Path) -> None:
    """The next line doesn't continue it."""
    path = tmp_path / "x.jsonl"
    await record(path, post({"n": 1}))
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"number":1,"request":{"meth')
    assert len(read_recording(path)) == 1
    await ask(ReplayTransport(path, "auto", transport=Network()), post({"n": 2}))
    assert path.read_bytes().startswith(whole + b'{"number":1,"request":{"method"')
    assert len(read_recording(path)) == 2


async def test_a_full_disk_leaves_no_partial_line(tmp_path: Path) -> None:
    """Earlier lines stay intact, and the error says why."""
    path = tmp_path / "x.jsonl"
    await record(path, post({"n": 1}))
    whole = path.read_bytes()
    transport = ReplayTransport(path, "auto", transport=Network(b"x" * 5000))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 100, hard))
    try:
        with pytest.raises(ConfigError, match="can't be written"):
            await ask(transport, post({"n": 2}))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == whole


async def test_a_file_that_can_not_be_replaced_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No temporary file remains beside it."""

    def refuse(_self: Path, _target: Path) -> Path:
        raise PermissionError(1, "not permitted")

    path = tmp_path / "x.jsonl"
    await record(path, post({"n": 1}))
    whole = path.read_bytes()
    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(ConfigError, match="not permitted"):
        await record(path, post({"n": 2}))
    assert path.read_bytes() == whole
    assert os.listdir(tmp_path) == ["x.jsonl"]  # noqa: PTH208 - as above


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"dragoman_recording":2}\n', "version 2"),
        ('{"something":"else"}\n', "is not a recording"),
        ("hush\n", "is not a recording"),
        (HEAD + '{"request":{"method":"hush"}}\n', "line 2"),
        (HEAD + "hush\n", "line 2"),
    ],
)
def test_an_invalid_recording_is_reported(tmp_path: Path, content: str, problem: str) -> None:
    """With the number of the line, unquoted."""
    path = tmp_path / "x.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=problem) as caught:
        ReplayTransport(path)
    assert "hush" not in str(caught.value)


async def test_missing_and_empty_files(tmp_path: Path) -> None:
    """Replaying needs a file; one without exchanges matches no request."""
    with pytest.raises(ConfigError, match="can't be read"):
        ReplayTransport(tmp_path / "none.jsonl")
    for content in ("", HEAD):
        (tmp_path / "x.jsonl").write_text(content, encoding="utf-8")
        with pytest.raises(NotRecorded, match="and no others"):
            await ask(ReplayTransport(tmp_path / "x.jsonl"), post({}))
    with pytest.raises(InvalidInputError):
        ReplayTransport(tmp_path / "x.jsonl", "rewind")  # type: ignore[arg-type]
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match="can't be written"):
        await record(tmp_path / "file" / "x.jsonl", post({}))


async def test_the_format_is_as_documented(tmp_path: Path) -> None:
    """Recordings written by hand work as well."""
    path = tmp_path / "x.jsonl"
    line: dict[str, Any] = {
        "request": {"method": "POST", "place": "/v1/x", "body": '{"n":1}'},
        "reply": {"status": 201, "chunks": ["a", {"base64": "/w=="}]},
    }
    path.write_text(f"{HEAD}{json.dumps(line)}\n\n", encoding="utf-8")
    assert await ask(ReplayTransport(path), post({"n": 1})) == b"a\xff"
    (exchange,) = read_recording(path)
    assert isinstance(exchange, Exchange)
    line["reply"]["chunks"] = [{"base64": "?"}]
    path.write_text(f"{HEAD}{json.dumps(line)}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="base64"):
        await ask(ReplayTransport(path), post({"n": 1}))
