"""`dragoman mcp` as a process: over standard input and output, and over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from dragoman import ChatHistory, SessionIdentity
from dragoman.errors import ConfigError
from dragoman.mcp.serving.http import Place, checked_token
from tests.mcp.serving.clients import MODES, call
from tests.mcp.serving.processes import INITIALIZE, listening, over_stdio, started

SECRET = "xyzzy-the-secret"
ONE = SessionIdentity(agent="chat", chat="one")
TOKEN = "a-token-that-is-long-enough"


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store with a conversation."""
    url = f"sqlite:///{tmp_path}/chats.db"
    with ChatHistory.open_sync(ONE, url) as history:
        history.extend([f"Where is {SECRET}?", "There."])
    return url


# --- standard input and output


@pytest.mark.parametrize("mode", MODES)
async def test_the_official_client_over_stdio(url: str, mode: str) -> None:
    """With both generations of the protocol."""
    async with Client(stdio_client(over_stdio("--store", url)), mode=mode) as client:
        (listed,) = (await call(client, "list_sessions"))["sessions"]
        assert listed["id"] == ONE.digest
        assert len((await client.list_resources()).resources) == 1


def test_it_ends_when_standard_input_does(url: str) -> None:
    """Without output."""
    with started("--store", url) as spoken:
        assert spoken.shake_hands()["serverInfo"]["name"] == "dragoman"
        assert spoken.leave() == (0, b"", b"")


def test_it_ends_when_its_client_is_gone(url: str) -> None:
    """A client that died, or gave up, reads no answer: that is no bug of ours to report."""
    with started("--store", url) as spoken:
        assert spoken.process.stdin is not None
        assert spoken.process.stdout is not None
        assert spoken.process.stderr is not None
        spoken.process.stdout.close()
        spoken.send(json.dumps(INITIALIZE).encode())
        spoken.process.stdin.close()
        assert spoken.process.wait(60) == 0
        assert spoken.process.stderr.read() == b""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_at_once(url: str, number: signal.Signals) -> None:
    """Even while it waits for input: with the exit code of the signal, and one line."""
    with started("--store", url) as spoken:
        spoken.shake_hands()
        spoken.process.send_signal(number)
        assert spoken.process.wait(60) == 128 + number
        assert spoken.process.stdout is not None
        assert spoken.process.stderr is not None
        assert spoken.process.stdout.read() == b""
        word = {signal.SIGINT: b"interrupted", signal.SIGTERM: b"terminated"}[number]
        assert spoken.process.stderr.read() == b"dragoman: %b\n" % word


def test_hostile_lines_do_not_end_it(url: str) -> None:
    """Standard output has only the protocol, and the log has none of their content."""
    deep = b'{"a":' * 200 + b"1" + b"}" * 200
    with started("--store", url, "--write") as spoken:
        spoken.shake_hands()
        for line in (
            SECRET.encode(), b"\xff\xfe", b"null", b"[1]", b"[" * 100_000, b'{"id": 1}', b"",
            b'{"jsonrpc": "2.0", "id": 90, "method": "tools/call", "params": {"name": "check",'
            b' "arguments": {"target": "anthropic", "body": ' + deep * 20 + b"}}}",
        ):  # fmt: skip
            spoken.send(line)
        spoken.ask("tools/call", {"name": SECRET})
        assert spoken.line()["error"]["code"] == -32602
        spoken.ask("tools/call", {"name": "check", "arguments": [SECRET]})
        assert spoken.line()["error"]["code"] == -32602
        spoken.ask(SECRET, {})
        assert spoken.line()["error"]["code"] == -32601
        arguments = {"target": "gemini", "source": "openai-chat"}
        body = {"model": "m", "top_p": float("nan"), "messages": [{"role": "user", "content": ""}]}
        result = spoken.call("translate", **arguments, body=body)  # as `NaN`, which is not JSON
        assert "out of range" in result["content"][0]["text"]
        result = spoken.call("list_sessions")
        assert result["structuredContent"]["sessions"][0]["messages"] == 2
        code, out, err = spoken.leave()
        assert (code, out) == (0, b"")
        assert SECRET.encode() not in err


def test_two_assistants_write_to_one_store(url: str) -> None:
    """Each from its own process, concurrently: every message is stored once."""
    count = 40
    with started("--store", url, "--write") as one, started("--store", url, "--write") as two:
        for spoken in (one, two):
            spoken.shake_hands()
        for number in range(count):
            for name, spoken in (("one", one), ("two", two)):
                arguments = {"session": "one", "text": f"{name} {number}"}
                spoken.ask("tools/call", {"name": "append_message", "arguments": arguments})
        for spoken in (one, two):
            for _ in range(count):
                assert spoken.line()["result"]["isError"] is False
    with ChatHistory.open_sync(ONE, url) as history:
        texts = [message.text for message in history.messages()][2:]
    assert sorted(texts) == sorted(f"{name} {n}" for name in ("one", "two") for n in range(count))


def test_acknowledged_messages_survive_a_kill(url: str) -> None:
    """With `kill -9` during many writes."""
    acknowledged: list[str] = []
    for round_ in range(2):
        with started("--store", url, "--write") as spoken:
            spoken.shake_hands()
            for number in range(100):
                arguments = {"session": "one", "text": f"{round_} {number}"}
                spoken.ask("tools/call", {"name": "append_message", "arguments": arguments})
            for _ in range(5 + 30 * round_):
                result = spoken.line()["result"]
                acknowledged.append(result["structuredContent"]["message_id"])
            spoken.process.kill()
    with ChatHistory.open_sync(ONE, url) as history:
        stored = [message.id for message in history.messages()]
        assert set(acknowledged) <= set(stored)
        assert len(stored) == len(set(stored))
        assert history.damaged == ()


# --- HTTP


@pytest.mark.parametrize("mode", MODES)
async def test_the_official_client_over_http(url: str, mode: str) -> None:
    """With both generations of the protocol, and notifications."""
    with listening("--store", url, "--write", "--http", "127.0.0.1:0") as (_, address):
        async with Client(address, mode=mode) as client:
            (listed,) = (await call(client, "list_sessions"))["sessions"]
            assert listed["id"] == ONE.digest
            if mode == "legacy":
                return
            uri = f"dragoman://session/{ONE.digest}"
            async with asyncio.timeout(60), client.listen(resource_subscriptions=[uri]) as events:
                await call(client, "append_message", session="one", text="more")
                assert (await anext(aiter(events))).uri == uri  # type: ignore[union-attr]  # a ResourceUpdated


async def test_a_signal_ends_listeners_too(url: str) -> None:
    """Their streams end by the protocol, and nothing is logged."""
    with listening("--store", url, "--http", "127.0.0.1:0") as (process, address):
        async with Client(address) as client, client.listen(resources_list_changed=True) as events:
            process.send_signal(signal.SIGTERM)
            assert [event async for event in events] == []
            assert await asyncio.to_thread(process.wait, 60) == 128 + signal.SIGTERM
        assert process.stderr is not None
        assert process.stderr.read() == b"dragoman: terminated\n"


def posted(address: str, *more: tuple[str, str], **headers: str) -> int:
    """The status of a handshake with these headers."""
    usual = {"accept": "application/json, text/event-stream"}
    sent = [*{**usual, **headers}.items(), *more]
    return httpx2.post(address, json=INITIALIZE, headers=sent).status_code


def test_web_pages_are_rejected(url: str) -> None:
    """DNS rebinding: other host names and other origins are rejected, also of this machine."""
    with listening("--store", url, "--http", "127.0.0.1:0") as (process, address):
        assert posted(address) == 200
        for host in ("evil.example", "127.0.0.1.evil.example:80", "localhost.evil.example:1"):
            assert posted(address, host=host) == 421
        for origin in ("http://evil.example", "null", "http://127.0.0.1.evil.example:1"):
            assert posted(address, origin=origin) == 403
        own = address.removesuffix("/mcp")
        for name in ("127.0.0.1", "localhost", "[::1]"):
            assert posted(address, origin=own.replace("127.0.0.1", name)) == 200
            for other in (f"http://{name}:1", f"http://{name}", f"https://{name}", f"{own}0"):
                assert posted(address, origin=other) == 403, other
        plain = httpx2.post(address, content=b"{}", headers={"content-type": "text/plain"})
        assert plain.status_code == 400
        assert httpx2.get(address.removesuffix("/mcp")).status_code == 404
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 128 + signal.SIGINT
        assert process.stdout is not None
        assert process.stdout.read() == b""


async def test_remote_clients_need_the_token(url: str) -> None:
    """The exact one, in one header; the official client sends it."""
    env = {"DRAGOMAN_MCP_TOKEN": TOKEN}
    with listening("--store", url, "--http", "0.0.0.0:0", env=env) as (process, given):
        address = given.replace("//0.0.0.0:", "//127.0.0.1:")
        assert posted(address) == 401
        for sent in (TOKEN, f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN}x", f"Basic {TOKEN}", "Bearer"):
            assert posted(address, authorization=sent) == 401
        assert (
            posted(address, ("authorization", "Bearer x"), authorization=f"Bearer {TOKEN}") == 401
        )
        assert posted(address, authorization=f"Bearer {TOKEN}") == 200
        headers = {"authorization": f"bearer {TOKEN}"}
        async with httpx2.AsyncClient(headers=headers) as http:
            transport = streamable_http_client(address, http_client=http)
            async with Client(transport) as client:
                assert (await call(client, "list_sessions"))["sessions"]
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
        assert process.stderr is not None
        assert TOKEN.encode() not in process.stderr.read()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("8000", ("127.0.0.1", 8000)),
        ("127.0.0.1:8000", ("127.0.0.1", 8000)),
        ("localhost:0", ("localhost", 0)),
        ("[::1]:8000", ("::1", 8000)),
        ("0.0.0.0:80", ("0.0.0.0", 80)),  # noqa: S104 - what people write
    ],
)
def test_addresses(text: str, place: tuple[str, int]) -> None:
    """In the forms people write."""
    assert Place.parse(text) == place


@pytest.mark.parametrize(
    "text",
    ["", ":", "host", "host:", ":80", "host:99999", "::1:80", "[::1", "h:1/x", "u@h:1", "-1"],
)
def test_invalid_addresses(text: str) -> None:
    """The error shows the valid form."""
    with pytest.raises(ConfigError, match=r"127\.0\.0\.1:8000"):
        Place.parse(text)


@pytest.mark.parametrize(
    ("host", "token", "problem"),
    [
        ("127.0.0.1", None, None),
        ("127.3.2.1", None, None),
        ("::1", None, None),
        ("localhost", None, None),
        ("127.0.0.1", TOKEN, None),
        ("0.0.0.0", TOKEN, None),  # noqa: S104 - refused without a token
        ("0.0.0.0", None, "bearer token"),  # noqa: S104 - as above
        ("::", None, "bearer token"),
        ("192.168.1.1", None, "bearer token"),
        ("localhost.evil.example", None, "bearer token"),
        ("0.0.0.0", "short", "16 ASCII characters"),  # noqa: S104 - as above
        ("127.0.0.1", "\u00e9" * 20, "16 ASCII characters"),
    ],
)
def test_when_a_token_is_needed(host: str, token: str | None, problem: str | None) -> None:
    """Everywhere except on loopback; it must not be guessable."""
    place = Place(host, 1)
    if problem is None:
        assert checked_token(place, token) == token
        return
    with pytest.raises(ConfigError, match=problem) as caught:
        checked_token(place, token)
    told: Any = caught.value
    assert token is None or token not in str(told)
