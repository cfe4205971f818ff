"""Contents of errors: provider, host and model, and the provider's message on request."""

from __future__ import annotations

import asyncio
import copy
import io
import json
import logging
import pickle
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman import errors
from dragoman._reveal import everywhere, is_revealed
from dragoman.errors import ProviderError, StreamInterrupted
from dragoman.model.spelling import closest
from dragoman.transport.client import Client
from dragoman.transport.protocol import Timeouts
from dragoman.transport.replay import ReplayTransport
from dragoman.transport.retries import Retries
from dragoman.wire.key_masking import masked
from tests.environment import PATIENCE
from tests.transport.answers import DIALECTS, body, client
from tests.transport.servers import Fault, Step, chunk, plain, serving, streamed

_ONCE = Retries(attempts=1)
_KEY = "sk-proj-0123456789abcdefghij"
_MISSPELLED: dict[str, Any] = {"temprature": 1}  # so that type checkers don't find it
_SAID = "Ana's diagnosis is too long"


@pytest.fixture(autouse=True)
def _hidden() -> Iterator[None]:
    yield
    dragoman.reveal(False)


def refusal(text: str, status: int = 400) -> list[Step]:
    """An error in OpenAI's form."""
    return plain({"error": {"message": text, "type": "invalid_request_error"}}, status)


async def failure(url: str, *, stream: bool = False, model: str = "openai:gpt-5") -> ProviderError:
    """The error of one request."""
    async with Client(model, key=_KEY, base_url=url, retries=_ONCE) as made:
        with pytest.raises(ProviderError) as raised:
            await (made.stream("hi").collect() if stream else made.send("hi"))
    return raised.value


def _pickled(error: ProviderError) -> ProviderError:
    return pickle.loads(pickle.dumps(error))  # type: ignore[no-any-return]  # noqa: S301 - our own


# --- provider, host and model


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_errors_name_provider_and_host(dialect: str, *, stream: bool) -> None:
    """Plain and streamed, rejected, interrupted or never started, in every dialect."""
    for script in (plain({"error": {"message": "no"}}, 500), [Fault.CLOSE], [Fault.RESET]):
        async with serving(script) as server, client(dialect, server.url, retries=_ONCE) as made:
            with pytest.raises(errors.DragomanError) as raised:
                await (made.stream("hi").collect() if stream else made.send("hi"))
        error = raised.value
        assert isinstance(error, (errors.TransportError, ProviderError))
        assert (error.provider, error.host) == (made.provider.name, f"127.0.0.1:{server.port}")
        assert str(error).endswith(f"[{error.provider}:{error.model} at {error.host}]")
        assert error.reason in str(error)


async def test_errors_name_the_model() -> None:
    """As in the request; a name with blanks is not shown."""
    async with serving(refusal("no")) as server:
        assert "[openai:gpt-5 at 127.0.0.1:" in str(await failure(server.url))
        odd = await failure(server.url, model="openai:my password is 1234")
    assert odd.model == "my password is 1234"
    assert "password" not in str(odd)


async def test_an_interrupted_stream_names_them() -> None:
    """Once in the interruption, and in its cause."""
    frame = b'data: {"choices": [{"index": 0, "delta": {"content": "a"}}]}\n\n'
    bad = b'data: {"error": {"message": "down"}}\n\n'
    async with (
        serving(streamed(frame, bad)) as server,
        client("openai-chat", server.url, retries=_ONCE) as made,
    ):
        with pytest.raises(StreamInterrupted) as raised:
            await made.stream("hi").collect()
    assert str(raised.value).count(" at 127.0.0.1") == 1
    assert isinstance(raised.value.__cause__, ProviderError)
    assert raised.value.__cause__.detail == "down"
    assert " at 127.0.0.1" in str(raised.value.__cause__)


async def test_clients_of_a_gateway_do_not_see_the_provider() -> None:
    """Its name and address; they read what it says about their request."""
    async with serving(refusal(_SAID)) as server:
        error = await failure(server.url)
    for name in DIALECTS:
        _, told = dragoman.dialect(name).encode_error(error)
        assert "127.0.0.1" not in json.dumps(told)
        assert json.dumps(told, ensure_ascii=False).count(_SAID) == 1
        with dragoman.reveal():
            assert dragoman.dialect(name).encode_error(error) == (_, told)


# --- the provider's message


@pytest.mark.parametrize("stream", [False, True])
async def test_the_providers_message_is_kept_and_not_shown(*, stream: bool) -> None:
    """Not in the text, the repr, the fields, a traceback or a log."""
    async with serving(refusal(_SAID)) as server:
        error = await failure(server.url, stream=stream)
    assert error.detail == _SAID
    log = io.StringIO()
    logging.getLogger("told").addHandler(logging.StreamHandler(log))
    logging.getLogger("told").error("failed: %s %r", error, error, exc_info=error)
    shown = [str(error), repr(error), repr(vars(error)), log.getvalue()]
    shown += traceback.format_exception(error)
    assert not [text for text in shown if "Ana" in text]


async def test_it_survives_copying() -> None:
    """Pickled or copied."""
    async with serving(refusal(_SAID)) as server:
        error = await failure(server.url)
    for other in (_pickled(error), copy.copy(error), copy.deepcopy(error)):
        assert (other.detail, str(other)) == (_SAID, str(error))


async def test_reveal_shows_it() -> None:
    """In the text, within a block or permanently."""
    async with serving(refusal(_SAID)) as server:
        error = await failure(server.url)
    with dragoman.reveal():
        assert str(error).endswith(f": {_SAID}")
    assert _SAID not in str(error)
    dragoman.reveal()
    assert _SAID in str(error)
    dragoman.reveal(False)
    assert _SAID not in str(error)


def test_reveal_is_for_a_block_a_process_or_by_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The innermost setting counts; a block in one task doesn't affect others."""
    assert not is_revealed()
    for value, shown in (("1", True), ("0", False), ("", False), ("false", False), ("yes", True)):
        monkeypatch.setenv("DRAGOMAN_REVEAL", value)
        everywhere[0] = None
        assert is_revealed() is shown
    dragoman.reveal(False)
    assert not is_revealed()

    async def look(block: asyncio.Event, seen: list[bool]) -> None:
        await block.wait()
        seen.append(is_revealed())

    async def both() -> list[bool]:
        block, seen = asyncio.Event(), list[bool]()
        other = asyncio.create_task(look(block, seen))
        with dragoman.reveal():
            seen.append(is_revealed())
            block.set()
            await other
        return seen

    assert asyncio.run(both()) == [True, False]
    with dragoman.reveal(), dragoman.reveal(False):
        assert not is_revealed()


@pytest.mark.parametrize("odd", [None, 1, "yes", [True]])
def test_reveal_takes_true_or_false(odd: Any) -> None:
    """Anything else is an error, and reveals nothing."""
    with pytest.raises(errors.InvalidInputError):
        dragoman.reveal(odd)
    assert not is_revealed()


@pytest.mark.parametrize("stream", [False, True])
async def test_keys_that_a_provider_repeats_are_masked(*, stream: bool) -> None:
    """Our own key in any form, and anything that looks like a key."""
    said = f"Incorrect API key provided: {_KEY}; tried gsk_abcdefgh1234 and zzzz-secret"
    async with serving(refusal(said, 401)) as server:
        made = Client(
            "openai:gpt-5",
            key=_KEY,
            base_url=server.url,
            retries=_ONCE,
            headers={"X-Other": "zzzz-secret"},
        )
        async with made:
            with pytest.raises(ProviderError) as raised:
                await (made.stream("hi").collect() if stream else made.send("hi"))
    message = raised.value.detail or ""
    assert not [key for key in (_KEY, "gsk_", "zzzz-secret") if key in message]
    assert message.startswith("Incorrect API key provided: ***")


@pytest.mark.parametrize(
    "text",
    [
        "sk-ant-api03-abcdef0123456789", "AIzaSyA-1234567890abcdefg", "Bearer abcdefgh12345678",
        "x-api-key: 0123456789abcdef", "eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJ", "hf_abcd1234efgh",
        "sk-****************abcd", "AKIA0123456789ABCDEF", "api_key=abcd1234efgh5678",
    ],
)  # fmt: skip
def test_text_that_looks_like_a_key_is_masked(text: str) -> None:
    """Anywhere; the text around it stays."""
    found = masked(f"before {text} after")
    assert "***" in found
    assert found.startswith("before ")
    assert found.endswith(" after")
    assert not [word for word in ("abcd", "0123", "1234", "eyJ", "Sfl") if word in found]


@pytest.mark.parametrize(
    "text",
    [
        "Unsupported parameter: 'max_tokens' is not supported with this model.",
        "api-version is not supported", "key_not_found", "model gpt-5-2025-08-07 does not exist",
        "messages.0.content.1.text: Field required", "claude-sonnet-4-5-20250929 is overloaded",
    ],
)  # fmt: skip
def test_text_that_is_no_key_stays(text: str) -> None:
    """Model names, paths and codes are useful."""
    assert masked(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("key team-key-2024abcd is disabled", "key *** is disabled"),
        ('unknown key "prod.team_key-2024abcd"!', 'unknown key "***"!'),
        ("(my-sk-abcdefgh1234/x), see below", "(***), see below"),
        ("sent api_key=my-key-abcdefgh1234.", "sent api_key=***."),
    ],
)
def test_a_key_is_masked_with_what_its_owner_put_around_it(text: str, shown: str) -> None:
    """As far as the next whitespace, quote or bracket."""
    assert masked(text) == shown


@pytest.mark.parametrize(
    ("secrets", "text", "shown"),
    [
        (("my key-12345678 (old)",), "no my key-12345678 (old) here", "no *** here"),
        (("abcdefgh1", "abcdefgh1-long"), "no abcdefgh1-long", "no ***"),
        (("abc12",), "no abc12, but xabc12 and abc12-b", "no ***, but xabc12 and abc12-b"),
        (("ollama", ""), "ollama has no such model", "ollama has no such model"),
    ],
)
def test_known_secrets_are_masked_whole(secrets: tuple[str, ...], text: str, shown: str) -> None:
    """Exactly, the longest first; short ones only as words that look like keys."""
    assert masked(text, secrets) == shown


async def test_our_key_is_masked_before_what_looks_like_one() -> None:
    """A key with spaces in it would leave a part behind otherwise."""
    key = "our key-12345678 rest"
    async with serving(refusal(f"bad: {key}!", 400)) as server:
        made = Client("openai:gpt-5", key="sk-x", base_url=server.url, headers={"X-Key": key})
        async with made:
            with pytest.raises(ProviderError) as raised:
                await made.send("hi")
    assert raised.value.detail == "bad: ***!"
    assert key not in repr(vars(raised.value))


async def test_recordings_hold_no_key_that_a_provider_repeats(tmp_path: Path) -> None:
    """Not even split over two chunks."""
    path = tmp_path / "made.jsonl"
    whole = json.dumps({"error": {"message": f"bad key {_KEY}"}}).encode()
    cut = whole.index(_KEY.encode()) + 9
    steps = [b"HTTP/1.1 401 No\r\nTransfer-Encoding: chunked\r\n\r\n", chunk(whole[:cut])]
    pause = asyncio.Event()
    async with serving([*steps, pause, chunk(whole[cut:]), b"0\r\n\r\n", Fault.KEEP]) as server:
        asyncio.get_running_loop().call_later(0.05, pause.set)
        transport = ReplayTransport(path, mode="record")
        async with Client(
            "openai:gpt-5", key=_KEY, base_url=server.url, retries=_ONCE, transport=transport
        ) as made:
            with pytest.raises(errors.AuthenticationError):
                await made.send("hi")
    assert _KEY[8:] not in path.read_text()
    assert "bad key ***" in path.read_text()


# --- misspelled names


async def test_a_misspelled_model_gets_a_suggestion() -> None:
    """Only if the provider doesn't know it: names unknown to us may be new."""
    missing = {
        "error": {"message": "The model `gpt-5-mni` does not exist", "code": "model_not_found"}
    }
    async with serving(plain(missing, 404)) as server:
        error = await failure(server.url, model="openai:gpt-5-mni")
        assert "did you mean gpt-5-mini?" in str(error)
        assert "did you mean" not in str(await failure(server.url, model="openai:zzzzzzzzzz"))


@pytest.mark.parametrize(
    ("ask", "near"),
    [
        (lambda: dragoman.transport.Client("opnai:gpt-5"), "openai"),
        (lambda: dragoman.Agent("Antropic:claude"), "anthropic"),
        (lambda: dragoman.dialect("openai-chta"), "openai-chat"),
        (lambda: dragoman.translate("{}", source="gemni", target="anthropic"), "gemini"),
        (lambda: dragoman.Agent("openai:gpt-5", **_MISSPELLED), "temperature"),
    ],
)
def test_other_names_get_suggestions_too(ask: Callable[[], object], near: str) -> None:
    """Providers, dialects and settings."""
    with pytest.raises(errors.DragomanError, match=rf"did you mean {near}\?"):
        ask()


@pytest.mark.parametrize("odd", ["", "x" * 10_000, "\0", None, 3])
def test_invalid_names_get_no_suggestion(odd: object) -> None:
    """Also for other types, and quickly for long ones."""
    assert closest(odd, ["openai", "anthropic"]) is None


# --- timeouts


async def test_a_slow_head_times_out() -> None:
    """Each byte comes in time; the head does not."""
    pieces = [bytes([byte]) for byte in b"HTTP/1.1 200 OK\r\nX-Slow: yes\r\n" * 40]

    def drip(_seen: object) -> Iterator[bytes | asyncio.Event]:
        for piece in pieces:
            pause = asyncio.Event()
            asyncio.get_running_loop().call_later(0.02, pause.set)
            yield piece
            yield pause

    timeouts = Timeouts(connect=0.1, first_byte=0.2, between_chunks=PATIENCE)
    async with (
        serving(drip) as server,
        client("openai-chat", server.url, retries=_ONCE, timeouts=timeouts) as made,
    ):
        for asking in (made.send("hi"), made.stream("hi").collect()):
            with pytest.raises(errors.TimeoutError, match="did not respond in time"):
                await asking


async def test_an_attempt_has_its_own_timeout() -> None:
    """After it the next attempt is made; the total covers all of them."""
    ok = plain(body("openai-chat"))
    slow: list[Step] = [b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{", Fault.HANG]
    timeouts = Timeouts(attempt=0.2)
    async with (
        serving(slow, ok) as server,
        client("openai-chat", server.url, timeouts=timeouts) as made,
    ):
        assert (await made.send("hi")).text
        assert len(server.seen) == 2
    async with (
        serving(slow) as server,
        client("openai-chat", server.url, timeouts=timeouts, retries=_ONCE) as made,
    ):
        with pytest.raises(errors.TimeoutError, match=r"after 0.2 seconds, the limit for one"):
            await made.send("hi")


def test_plain_answers_have_a_default_total_and_streams_have_none() -> None:
    """`total` sets both."""
    usual = Timeouts()
    assert usual.answer_total is not None
    assert usual.stream_total is None
    assert usual.attempt is not None
    assert usual.attempt < usual.answer_total
    said = Timeouts(total=5.0)
    assert (said.answer_total, said.stream_total) == (5.0, 5.0)
    never = Timeouts(total=None)
    assert (never.answer_total, never.stream_total) == (None, None)
