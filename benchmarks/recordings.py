"""The streams to measure with: recorded ones, or, where no corpus is, some of our own making."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec

import dragoman
from dragoman import DragomanError, FinishReason, Response, Text, ToolCall, Usage
from dragoman.model.events import (
    ChoiceFinish,
    Event,
    PartDelta,
    PartStart,
    PartStop,
    ResponseEnd,
    ResponseStart,
    UsageUpdate,
)
from dragoman.wire.framing import NdjsonParser, SseParser
from tests.corpus import Corpus, CorpusNotFoundError
from tests.wire.recorded import ENDPOINTS, SPOKEN_BY

DIALECTS = ("openai-chat", "anthropic", "openai-responses", "gemini", "ollama")

_MADE = 20
_ENDS = re.compile(rb"(?<=\n\n)|(?<=\r\n\r\n)"), re.compile(rb"(?<=\n)")  # of events, of lines


def recorded(dialect: str) -> list[bytes]:
    """The recorded streams of a dialect that can be read; none without the corpus."""
    try:
        corpus = Corpus.open()
    except CorpusNotFoundError:
        return []
    exchanges = corpus.select(provider_api=SPOKEN_BY[dialect], status=200, tier="extended")
    return [
        stream
        for exchange in exchanges
        if (stream := exchange.response_stream)
        and ENDPOINTS[dialect].search(exchange.request_path.partition("?")[0])
        and _is_readable(dialect, stream)
    ]


def recorded_answers() -> tuple[list[int], list[int]]:
    """The sizes of all recorded answers: events of streams, and characters of texts."""
    events: list[int] = []
    characters: list[int] = []
    for dialect in DIALECTS:
        for stream in recorded(dialect):
            decoder = speaker(dialect).stream_decoder()
            events.append(len([*decoder.feed(stream), *decoder.close()]))
            characters.append(len(decoder.response.text))
        characters += [len(answer.text) for answer in _whole(dialect)]
    return events, [length for length in characters if length]


def _whole(dialect: str) -> Iterator[Response]:
    try:
        corpus = Corpus.open()
    except CorpusNotFoundError:
        return
    chosen = corpus.select(provider_api=SPOKEN_BY[dialect], status=200, tier="extended")
    for exchange in chosen:
        path = exchange.request_path.partition("?")[0]
        if exchange.response_stream or not ENDPOINTS[dialect].search(path):
            continue
        with suppress(DragomanError):
            yield speaker(dialect).decode_response(exchange.response_body)


def made(dialect: str) -> list[bytes]:
    """Streams that our own encoder writes: a long text, then a call."""
    return [encoded(dialect, answer(300 + 20 * n, arguments(40))) for n in range(_MADE)]


def arguments(count: int) -> list[str]:
    """A call's arguments in so many pieces of about ten bytes."""
    return ["{", *['"key": 12,'] * (count - 2), '"end": 1}']


def answer(texts: int, words: Sequence[str]) -> list[Event]:
    """The events of an answer: so many pieces of text, then a call with these of arguments."""
    events: list[Event] = [ResponseStart(id="r1", model="m", created_at=1e9)]
    if texts:
        grown = [PartDelta(0, f"word {n} ") for n in range(texts)]
        events += [PartStart(0, Text("")), *grown, PartStop(0)]
    if words:
        index = 1 if texts else 0
        call = ToolCall("call_1", "weather", "")
        grown = [PartDelta(index, word) for word in words]
        events += [PartStart(index, call), *grown, PartStop(index)]
    finish = FinishReason.TOOL_CALLS if words else FinishReason.STOP
    usage = Usage(input=9, output=99)
    return [*events, ChoiceFinish(finish), UsageUpdate(usage), ResponseEnd()]


def encoded(dialect: str, events: list[Event]) -> bytes:
    """The stream that says these events."""
    encoder = speaker(dialect).stream_encoder()
    return b"".join([*(encoder.feed(event) for event in events), encoder.close()])


def events_of(dialect: str, stream: bytes) -> list[Event]:
    """The events in a stream."""
    decoder = speaker(dialect).stream_decoder()
    return [*decoder.feed(stream), *decoder.close()]


def pieces(dialect: str, stream: bytes) -> list[bytes]:
    """A stream as servers send it: a piece for each event."""
    return [piece for piece in _ENDS[dialect == "ollama"].split(stream) if piece]


def documents(dialect: str, stream: bytes) -> list[bytes]:
    """The JSON of each event in a stream, and nothing else of it."""
    return [data for data in _data(dialect, stream) if _is_json(data)]


def speaker(dialect: str) -> Any:
    """The dialect, with its streams."""
    return dragoman.dialect(dialect)


def _data(dialect: str, stream: bytes) -> Iterator[bytes]:
    if dialect == "ollama":
        lines = NdjsonParser()
        yield from [*lines.feed(stream), *lines.close()]
    else:
        frames = SseParser()
        for frame in [*frames.feed(stream), *frames.close()]:
            yield frame.data.encode()


def _is_json(data: bytes) -> bool:
    try:
        msgspec.json.decode(data)
    except msgspec.DecodeError:
        return False
    return True


def _is_readable(dialect: str, stream: bytes) -> bool:
    try:
        events_of(dialect, stream)
    except DragomanError:
        return False
    return True
