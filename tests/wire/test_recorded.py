"""Recorded traffic: what providers sent and accepted passes through the model unchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import msgspec
import pytest

import dragoman
from dragoman import Request, Response
from dragoman.errors import WireError
from dragoman.model.media import Media
from dragoman.model.parts import Part, Text, Thinking
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.model.value import Value
from dragoman.wire.fitting import fitted
from tests.corpus import Corpus
from tests.wire.recorded import (
    Body,
    bodies,
    normal,
    rewritten,
    streams,
    without_extras,
)

pytestmark = pytest.mark.corpus

DIALECTS = dragoman.dialects()
KINDS = ("request", "response")


def _failures(
    corpus: Corpus, dialect: str, kind: str, holds: Callable[[Body], bool]
) -> tuple[list[str], int]:
    chosen = [body for body in bodies(corpus, dialect) if body.kind == kind]
    return [body.recording.row.file for body in chosen if not holds(body)], len(chosen)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_body_round_trips(corpus: Corpus, dialect: str, kind: str) -> None:
    """Decoded and encoded, every recorded body is unchanged."""
    failures, total = _failures(
        corpus, dialect, kind, lambda body: normal(body.encode(body.decode())) == normal(body.wire)
    )
    assert total > 0
    assert failures == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stored_body_round_trips(corpus: Corpus, dialect: str, kind: str) -> None:
    """A body that was stored in our canonical JSON is encoded unchanged."""

    def holds(body: Body) -> bool:
        value = body.decode()
        reloaded = type(value).from_json(value.to_json())
        return value.identical(reloaded) and normal(body.encode(reloaded)) == normal(body.wire)

    failures, _ = _failures(corpus, dialect, kind, holds)
    assert failures == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_editing_a_text_changes_only_that_text(corpus: Corpus, dialect: str, kind: str) -> None:
    """The new text is in its place, and nothing else is different."""

    def holds(body: Body) -> bool:
        value = body.decode()
        before = normal(body.encode(value))
        for text in sorted(
            {part.text for part in _parts(value) if type(part) is Text and part.text}
        ):
            if _count(before, text) != 1:
                continue  # it occurs twice: which one was edited can't be seen from outside
            changed = rewritten(value, _say_instead(text))
            after = normal(body.encode(changed))
            if after != _replaced(before, text, _OTHER_WORDS):
                return False
        return True

    failures, _ = _failures(corpus, dialect, kind, holds)
    assert failures == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_content_is_not_in_extras(corpus: Corpus, dialect: str, kind: str) -> None:
    """Text, calls, results, media and instructions are in the model's own fields."""

    def holds(body: Body) -> bool:
        value = body.decode()
        again = _read_back(body, body.encode(without_extras(value)))
        return _content(value) == _content(again)

    failures, _ = _failures(corpus, dialect, kind, holds)
    assert failures == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_encoding_twice_gives_the_same_bytes(corpus: Corpus, dialect: str, kind: str) -> None:
    """The same value always has the same bytes, which prompt caches compare (I12)."""

    def holds(body: Body) -> bool:
        value = body.decode()
        return msgspec.json.encode(body.encode(value)) == msgspec.json.encode(body.encode(value))

    failures, _ = _failures(corpus, dialect, kind, holds)
    assert failures == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_decoding_twice_gives_equal_values(corpus: Corpus, dialect: str, kind: str) -> None:
    """Derived call ids are deterministic, and unique within a request."""

    def holds(body: Body) -> bool:
        one, other = body.decode(), body.decode()
        ids = [part.id for part in _parts(one) if isinstance(part, ToolCall)]
        is_unique = kind == "response" or len(set(ids)) == len(ids)
        return one == other and hash(one) == hash(other) and all(ids) and is_unique

    failures, _ = _failures(corpus, dialect, kind, holds)
    assert failures == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_decoding_a_stream_twice_gives_equal_responses(corpus: Corpus, dialect: str) -> None:
    """Chunk boundaries make no difference; a broken stream fails both times."""
    failures: list[str] = []
    total = 0
    for file, stream in streams(corpus, dialect):
        total += 1
        one, other = _streamed(dialect, stream, len(stream)), _streamed(dialect, stream, 777)
        if one != other or hash(one) != hash(other):
            failures.append(file)
    assert total > 0
    assert failures == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_accepted_request_is_never_repaired(corpus: Corpus, dialect: str) -> None:
    """Fitting does not change requests that a provider accepted."""

    def holds(body: Body) -> bool:
        request = body.decode()
        assert isinstance(request, Request)
        return fitted(request, body.target).request is request

    failures, _ = _failures(corpus, dialect, "request", holds)
    assert failures == []


# --- looking into values and bodies


def _streamed(dialect: str, stream: bytes, size: int) -> Response:
    decoder = dragoman.dialect(dialect).stream_decoder()
    with suppress(WireError):
        for start in range(0, len(stream), size):
            decoder.feed(stream[start : start + size])
        decoder.close()
    return decoder.response


_OTHER_WORDS = "something else entirely"


def _say_instead(text: str) -> Callable[[Value], Value]:
    def rewrite(value: Value) -> Value:
        if type(value) is Text and value.text == text:
            return value.replace(text=_OTHER_WORDS)
        return value

    return rewrite


def _parts(value: Any) -> Iterator[Part]:
    if isinstance(value, tuple):
        for item in value:
            yield from _parts(item)
    elif isinstance(value, Value):
        if isinstance(value, Part):
            yield value
        for name in value.__struct_fields__:
            yield from _parts(getattr(value, name))


def _content(value: Any) -> list[Any]:
    """The content, part by part, without ids."""
    said: list[Any] = []
    for part in _parts(value):
        if isinstance(part, Text):
            said.append(("text", part.text))
        elif isinstance(part, Thinking) and part.text:
            said.append(("thinking", part.text))
        elif isinstance(part, ToolCall):
            said.append(("call", part.name, part.raw_arguments))
        elif isinstance(part, ToolResult):
            said.append(("result", part.text, len(part.parts)))
        elif isinstance(part, Media):
            said.append((type(part).__name__, part.data, part.url, part.file_id))
    return said


def _read_back(body: Body, wire: Mapping[str, Any]) -> Value:
    return Body(body.dialect, body.kind, wire, body.path, body.recording).decode()


def _count(wire: Any, text: str) -> int:
    if isinstance(wire, dict):
        return sum(_count(value, text) for value in wire.values())
    if isinstance(wire, list):
        return sum(_count(item, text) for item in wire)
    return int(wire == text)


def _replaced(wire: Any, old: str, new: str) -> Any:
    if isinstance(wire, dict):
        return {key: _replaced(value, old, new) for key, value in wire.items()}
    if isinstance(wire, list):
        return [_replaced(item, old, new) for item in wire]
    return new if wire == old else wire
