"""Provider state that travels through clients is signed: by keys that all workers share."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import AuthenticationError, ConfigError
from dragoman.gateway.config.settings import ServerSettings
from dragoman.gateway.envelopes import EnvelopeKeys, keys_in
from dragoman.gateway.keys import Keys
from dragoman.gateway.keys.urls import store_at
from dragoman.model.messages import Message
from dragoman.model.parts import Origin, Thinking
from dragoman.model.responses import Choice, Response
from dragoman.model.usage import FinishReason
from dragoman.wire.envelope import PREFIX, Seal, signed_with, unwrap, wrap
from tests.gateway.answers import Provider
from tests.gateway.client_requests import ask, path_for
from tests.gateway.keys.conftest import Clock
from tests.gateway.operations.workers import threaded
from tests.gateway.running import place, routed, upstream

_SEAL = Seal(Origin(dialect="gemini"), Thinking(signature="c2ln"))
_SIGNATURE = "c2lnbmF0dXJl"
_THOUGHT = Thinking("Hm.", signature=_SIGNATURE, origin=Origin(dialect="gemini"))
_ANSWER = Response(
    choices=(Choice(0, Message.assistant(_THOUGHT, "Yes."), FinishReason.STOP),),
    model="gemini-3-pro", id="r",
)  # fmt: skip


@contextmanager
def serving(**server: Any) -> Iterator[tuple[str, Provider]]:
    """A worker in front of a provider of Gemini's models."""
    provider = Provider("gemini", _ANSWER)
    with upstream(provider) as url:
        config = routed(place("google", "gemini", url, dialect="gemini"), **server)
        with threaded(config) as running:
            yield f"http://127.0.0.1:{running.port}", provider


def said(url: str, *messages: Any, stream: bool = False) -> Any:
    """The answer for an Anthropic client to these messages."""
    body = {
        "model": "gemini-3-pro", "max_tokens": 99, "stream": stream,
        "messages": [{"role": "user", "content": "Well?"}, *messages],
    }  # fmt: skip
    answer = ask(url, path_for("anthropic"), body)
    assert answer.status == 200, answer
    return answer


def continued(content: Any) -> list[Any]:
    """The messages of a client that sends back what it got."""
    return [{"role": "assistant", "content": content}, {"role": "user", "content": "Go on."}]


def is_signed(text: str) -> bool:
    """Whether an envelope has a signature."""
    return base64.b64decode(text)[9:15] == b"signed"


def test_state_is_signed_and_comes_back(tmp_path: Path) -> None:
    """In a response and in a stream, opened by another worker with the same store."""
    store = f"sqlite:///{tmp_path / 'keys.db'}"

    async def keyed() -> str:
        async with Keys(store_at(store)) as keys:
            return (await keys.create())[1]

    secret = asyncio.run(keyed())
    body = {
        "model": "gemini-3-pro", "max_tokens": 99,
        "messages": [{"role": "user", "content": "Well?"}],
    }  # fmt: skip
    with serving(keys=store) as (url, _):
        answer = ask(url, path_for("anthropic"), body, x_api_key=secret)
        streamed = ask(url, path_for("anthropic"), {**body, "stream": True}, x_api_key=secret)
    content = answer.json["content"]
    assert is_signed(content[0]["signature"])
    begin = streamed.body.index(PREFIX.encode())
    assert is_signed(streamed.body[begin:].partition(b'"')[0].decode())
    with serving(keys=store) as (url, provider):
        body["messages"] += continued(content)  # type: ignore[operator]  # a list
        answer = ask(url, path_for("anthropic"), body, x_api_key=secret)
        assert answer.status == 200
        assert _SIGNATURE in json.dumps(provider.asked[-1])
        assert "x-dragoman-losses" not in answer.headers


@pytest.mark.parametrize("kind", ["unsigned", "foreign", "altered"])
def test_state_of_others_is_not_opened(tmp_path: Path, kind: str) -> None:
    """Forged or of another gateway: the provider never gets it, and the loss is reported."""
    file = tmp_path / "envelopes"
    file.write_bytes(b"k" * 32 + b"\n")
    with serving(envelope_keys=str(file)) as (url, provider):
        content = said(url).json["content"]
        own = content[0]["signature"]
        with signed_with(b"another gateway's"):
            made = {"unsigned": None, "foreign": wrap(_SEAL), "altered": own[:-8] + "AAAAAAA="}
        content[0]["signature"] = made[kind] or wrap(unsealed(own))
        answer = said(url, *continued(content))
        assert "c2ln" not in json.dumps(provider.asked[-1])
        assert PREFIX not in json.dumps(provider.asked[-1])
        assert "another provider's thinking" in answer.headers["x-dragoman-losses"]


def unsealed(text: str) -> Seal:
    """What is in an envelope."""
    with signed_with(b"k" * 32):
        found = unwrap(text)
    assert found is not None
    return found


def test_a_file_of_keys_is_rotated_with_overlap(tmp_path: Path) -> None:
    """The first key signs, the others are accepted until they are removed."""
    file = tmp_path / "envelopes"
    file.write_bytes(b"old" * 10)
    with serving(envelope_keys=str(file)) as (url, _):
        content = said(url).json["content"]
    file.write_bytes(b"new" * 10 + b"\r\n\n" + b"old" * 10 + b"\n")
    with serving(envelope_keys=str(file)) as (url, provider):
        answer = said(url, *continued(content))
        assert _SIGNATURE in json.dumps(provider.asked[-1])
        with signed_with(b"new" * 10):
            assert unwrap(answer.json["content"][0]["signature"]) is not None


@pytest.mark.parametrize("content", [b"", b"\n\n", b"short\n", b"x" * 65, b"k" * 16 + b"\nshort"])
def test_an_unusable_file_is_refused(tmp_path: Path, content: bytes) -> None:
    """As is one that is missing: a mistyped path must not make a gateway sign with another key."""
    file = tmp_path / "envelopes"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match="16 to 64 bytes"):
        keys_in(file)
    with pytest.raises(ConfigError, match="can't be read"):
        keys_in(tmp_path / "missing")


def keys_of(server: ServerSettings, keys: Keys | None = None) -> tuple[bytes, ...]:
    """The keys that a worker with these settings reads."""
    found = EnvelopeKeys()
    asyncio.run(found.read(server, keys))
    return found._keys


def test_a_gateway_without_a_store_has_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers that start at once agree on one key, which only their user can read."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    code = (
        "import asyncio; from dragoman.gateway.envelopes import EnvelopeKeys;"
        " from dragoman.gateway.config.settings import ServerSettings; found = EnvelopeKeys();"
        " asyncio.run(found.read(ServerSettings(), None)); print(found._keys)"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(6)
    ]
    found = {each.communicate()[0] for each in running}
    assert found == {f"{keys_of(ServerSettings())}\n".encode()}
    [file] = tmp_path.rglob("envelopes.key*")
    assert os.name == "nt" or stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_folder_that_nobody_can_write_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Then the key is lost with the process, which says so."""
    (tmp_path / "dragoman").write_text("a file where the folder would be")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    if sys.platform != "linux":
        pytest.skip("other systems have other folders")
    assert keys_of(ServerSettings()) != keys_of(ServerSettings())
    assert "envelope_keys" in caplog.text


async def test_a_lost_store_leaves_the_keys(tmp_path: Path) -> None:
    """A worker keeps what it has read."""
    found = EnvelopeKeys()
    keys = Keys(store_at(f"sqlite:///{tmp_path / 'keys.db'}"))
    await keys.start()
    await found.read(ServerSettings(), keys)
    before = found._keys
    await keys.close()
    await found.refresh(ServerSettings(), keys)
    assert found._keys == before
    assert len(before) == 1


def test_no_secret_is_a_key_of_envelopes(tmp_path: Path) -> None:
    """What is stored under such an id authenticates nobody, and isn't listed or revoked."""

    async def work() -> None:
        async with Keys(store_at(f"sqlite:///{tmp_path / 'keys.db'}"), clock=Clock()) as keys:
            [key] = await keys.envelope_keys()
            assert await keys.list() == []
            for shown in ("envelope-1", f"drg_envelope-1_{'x' * 49}", key.hex()):
                with pytest.raises(AuthenticationError):
                    await keys.authenticate(shown)

    asyncio.run(work())
