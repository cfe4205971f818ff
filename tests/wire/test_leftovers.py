"""What translations leave behind in memory: nothing, without the garbage collector.

A gateway would otherwise hold the content of finished streams until the collector runs.
"""

from __future__ import annotations

from contextlib import suppress

import pytest

import dragoman
from benchmarks import recordings
from benchmarks.stream_translation import chat, translated
from dragoman import DragomanError
from tests.leftovers import leftovers

KINDS = ("text", "tool", "thinking")


@pytest.mark.parametrize("source", recordings.DIALECTS)
def test_a_stream_is_freed_when_it_is_dropped(source: str) -> None:
    """No object of a decoder or encoder is in a cycle, whether the stream ended or broke off."""
    streams = [translated("openai-chat", source, chat(3, kind)) for kind in KINDS]
    streams += [stream[: len(stream) // 2] for stream in streams]

    def translate() -> None:
        for target in recordings.DIALECTS:
            for stream in streams:
                translated(source, target, recordings.pieces(source, stream))

    translate()  # imports and caches
    with leftovers() as left:
        translate()
    assert not left


@pytest.mark.parametrize("source", recordings.DIALECTS)
def test_a_stream_that_is_not_one_is_freed_when_it_is_dropped(source: str) -> None:
    """The error does not keep the decoder."""

    def read() -> bool:
        decoder = dragoman.dialect(source).stream_decoder()
        try:
            decoder.feed(b"data: {]\n\n{]\n[}]")
        except DragomanError:
            return True
        return False

    assert read()
    with leftovers() as left:
        read()
    assert not left


@pytest.mark.parametrize("target", recordings.DIALECTS)
def test_a_request_is_freed_when_it_is_dropped(target: str) -> None:
    """Neither a strict schema, nor results with images, nor an error leaves anything behind."""
    picture = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    content = [{"type": "image", "source": picture}]
    result = {"type": "tool_result", "tool_use_id": "t1", "content": content}
    call = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [call]},
             {"role": "user", "content": [result]}]  # fmt: skip

    def translate(number: int) -> None:
        schema = {"type": "object", "properties": {f"p{number}": {"$ref": "#/$defs/a"}},
                  "$defs": {"a": {"type": ["string", "null"], "maxLength": number}}}  # fmt: skip
        tool = {"name": "f", "input_schema": schema, "strict": True}
        for messages in (turns, turns[:2], "nothing"):
            body = {"model": "m", "max_tokens": 9, "tools": [tool], "messages": messages}
            with suppress(DragomanError):
                dragoman.translate(body, source="anthropic", target=target)

    translate(1)
    with leftovers() as left:
        translate(2)
    assert not left
