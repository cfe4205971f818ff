"""Guessing keys: every wrong key gets the same error, and guessing is rate-limited."""

from __future__ import annotations

import asyncio
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.gateway.keys import Keys, Spent
from dragoman.gateway.keys.secret_form import new_id, new_secret
from dragoman.gateway.keys.urls import store_at
from tests.gateway.abuse.stage import CANARY, Stage, refused, request, staged
from tests.gateway.abuse.test_websockets import TEXT, frame, opened
from tests.gateway.client_requests import FRONTS, body_for


class Locked:
    """A gateway with keys."""

    def __init__(self, folder: Path, stage: Stage) -> None:
        self.stage = stage
        url = self.url = f"sqlite:///{folder / 'keys.db'}"
        made = subprocess.run(
            [sys.executable, "-m", "dragoman.cli", "keys", "create", "--store", url],
            capture_output=True, text=True, check=True, env=dict(os.environ),
        )  # fmt: skip
        self.secret = made.stdout.strip()


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Locked]:
    """A separate gateway: guessing is blocked for a minute."""
    if not Path("/proc/self/status").exists():
        pytest.skip("reads Linux's /proc")
    with staged(tmp_path, keys=f"sqlite:///{tmp_path / 'keys.db'}") as made:
        yield Locked(tmp_path, made)


def _wrong(secret: str) -> dict[str, tuple[str, str]]:
    id = secret.split("_")[1]
    return {
        "none": ("x-nothing", "x"),
        "empty": ("authorization", "Bearer "),
        "no scheme": ("authorization", secret),
        "basic": ("authorization", f"Basic {secret}"),
        "two in one": ("authorization", f"Bearer x {secret}"),
        "cut": ("authorization", f"Bearer {secret[:-1]}"),
        "longer": ("authorization", f"Bearer {secret}x"),
        "very long": ("x-api-key", "x" * 30_000),
        "other case": ("authorization", f"Bearer {secret.swapcase()}"),
        "right id, other secret": ("x-api-key", new_secret(id)),
        "unknown id": ("x-goog-api-key", new_secret(new_id())),
        "bytes": ("api-key", "\xff\xfe" * 20),
        "NUL escaped": ("x-api-key", f"{secret}%00"),
        "SQL": ("x-api-key", "drg_' OR 1=1 --"),
        "cookie": ("cookie", f"authorization={secret}"),
        "forwarded": ("x-forwarded-authorization", f"Bearer {secret}"),
    }


def test_wrong_keys_get_the_same_error(locked: Locked) -> None:
    """Whatever is wrong with a key, the text is the same, and never says what would be right."""
    stage = locked.stage
    ways = _wrong(locked.secret)
    for number, (kind, header) in enumerate(ways.items()):
        front = FRONTS[number % len(FRONTS)]
        answer = stage.post(front, body_for(front, CANARY), header)
        text = refused(front, answer, 401)
        assert locked.secret not in text, kind
    assert not stage.upstream.asked
    good = ("authorization", f"Bearer {locked.secret}")
    for front in FRONTS:
        assert stage.post(front, body_for(front, CANARY), good).status == 200


def test_guessing_is_rate_limited(locked: Locked) -> None:
    """After twenty wrong keys in a minute, others from the address are refused, on every front.

    A key that exists works, although the gateway has not seen it before.
    """
    stage = locked.stage
    good = ("x-api-key", locked.secret)
    for _ in range(20):
        stage.post("anthropic", body_for("anthropic"), ("x-api-key", new_secret(new_id())))
    for front in FRONTS:
        guess = ("authorization", f"Bearer {new_secret(new_id())}")
        answer = stage.post(front, body_for(front, CANARY), guess)
        refused(front, answer, 429)
        assert int(answer.headers["retry-after"]) > 0
    assert stage.post("anthropic", body_for("anthropic"), good).status == 200


def test_clients_behind_a_proxy_are_told_apart(tmp_path: Path) -> None:
    """One that guesses doesn't slow down the others, nor can it pose as one of them."""
    if not Path("/proc/self/status").exists():
        pytest.skip("reads Linux's /proc")
    keys = f"sqlite:///{tmp_path / 'keys.db'}"
    with staged(tmp_path, keys=keys, trusted_proxies=["127.0.0.1", "10.0.0.0/8"]) as stage:

        def guess(*headers: tuple[str, str]) -> int:
            wrong = ("x-api-key", new_secret(new_id()))
            return stage.post("anthropic", body_for("anthropic"), wrong, *headers).status

        for number in range(20):
            invented = f"203.0.113.{number}, 2001:db8::{number:x}, 10.0.0.2"
            assert guess(("x-forwarded-for", invented)) == 401
        assert guess(("x-forwarded-for", "203.0.113.99, 2001:db8::ffff")) == 429
        assert guess(("x-forwarded-for", "2001:db8:0:1::1")) == 401
        assert guess(("forwarded", 'for=198.51.100.1;proto=https, for="[2001:db8::7]:80"')) == 429
        assert guess() == 401


def test_rejected_before_the_body(locked: Locked) -> None:
    """Without a key, the gateway reads, decompresses and parses nothing."""
    stage = locked.stage
    for front in FRONTS:
        refused(front, stage.post(front, b"[" * 500_000), 401)
        refused(front, stage.post(front, b"x", ("content-encoding", "gzip")), 401)


SPENT = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "prompt": "/api/generate",
    "embeddings": "/v1/embeddings",
    "token counts": "/v1/messages/count_tokens",
}


async def _spent(url: str) -> str:
    """A key that has used its one request of this minute."""
    async with Keys(store_at(url)) as keys:
        key, secret = await keys.create(requests_per_minute=1)
        await keys.settle(await keys.reserve(key, "m", 1, None), Spent(tokens_in=1))
        return secret


def test_a_spent_key_is_refused_before_its_message_is_read(locked: Locked) -> None:
    """On a WebSocket, too: not even whether it is JSON is looked at."""
    secret = asyncio.run(_spent(locked.url))
    with opened(locked.stage, x_api_key=secret) as connection:
        connection.sendall(frame(TEXT, b"[" * 50_000))
        received = b""
        while b"}" not in received:
            received += connection.recv(65536)
    assert b'"status":429' in received


@pytest.mark.parametrize("kind", SPENT)
def test_a_spent_key_is_refused_before_its_body_is_read(locked: Locked, kind: str) -> None:
    """The rest of a large or compressed body never arrives, and nobody waits for it."""
    secret = asyncio.run(_spent(locked.url))
    for headers in (
        [("content-length", "500000")],
        [("transfer-encoding", "chunked")],
        [("content-length", "1000"), ("content-encoding", "gzip")],
    ):
        head = request(SPENT[kind], b"", ("x-api-key", secret), *headers)
        with locked.stage.connect() as connection:
            connection.sendall(head)
            assert connection.recv(65536).startswith(b"HTTP/1.1 429 ")


def test_a_refusal_can_be_read_by_who_is_still_sending(locked: Locked) -> None:
    """The connection closes when the body has ended, not before: that could discard the refusal."""
    with locked.stage.connect() as connection:
        connection.sendall(request("/v1/messages", b"", ("content-length", "400000")))
        received = b""
        while piece := connection.recv(65536):  # until its side has ended
            received += piece
        assert received.startswith(b"HTTP/1.1 401 ")
        for _ in range(399):
            connection.sendall(b" " * 1000)
            select.select([], [], [], 0.001)
        connection.sendall(b" " * 1000)
    locked.stage.check_silence()
