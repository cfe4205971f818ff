"""Each field of a response is left out, one at a time: what was visible stays visible, or is lost.

Lost means that the front of another dialect reports it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

import dragoman
from dragoman.errors import DragomanError
from dragoman.model.media import Image
from dragoman.model.parts import Refusal, ServerToolCall, Text
from dragoman.model.responses import Response
from dragoman.model.tools import ToolCall
from tests.corpus import Recording
from tests.wire.front_types import request_to
from tests.wire.recorded import SPOKEN_BY
from tests.wire.stream_table import EVERY, Case

_SPOKEN = {api: name for name, apis in SPOKEN_BY.items() for api in apis}
_CONTENT = {
    "candidates", "choices", "content", "custom", "data", "executableCode", "executed_tools",
    "explanation", "function", "functionCall", "function_call", "images", "inlineData", "message",
    "output", "parts", "refusal", "result", "stop_details", "text", "toolCall", "tool_calls",
}  # fmt: skip
"""Fields that hold what is visible: without them, there is nothing to see."""


def _visible(response: Response) -> Counter[str]:
    """What a user sees: text, refusals, calls and pictures."""
    found: Counter[str] = Counter()
    for choice in response.choices:
        for part in choice.message.parts:
            if isinstance(part, (Text, Refusal)):
                found["text"] += len(part.text)
            elif isinstance(part, (ToolCall, ServerToolCall, Image)):
                found["picture" if isinstance(part, Image) else "call"] += 1
    return found


def _places(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all fields."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        place = (*before, key)
        if isinstance(value, dict):
            yield place
        if isinstance(inner, (dict, list)):
            yield from _places(inner, place)


def _without(body: Any, place: tuple[Any, ...]) -> Any:
    left = at = deepcopy(body)
    for key in place[:-1]:
        at = at[key]
    del at[place[-1]]
    return left


def check(name: str, body: Any) -> None:
    """Whatever field is missing, what was visible is visible, or its loss is reported."""
    speaker = dragoman.dialect(name)
    front = "anthropic" if name != "anthropic" else "openai-chat"
    before = _visible(speaker.decode_response(body))
    for place in _places(body):
        if place[-1] in _CONTENT:
            continue
        try:
            read = speaker.decode_response(_without(body, place))
        except DragomanError:
            continue
        if before - _visible(read):
            losses = dragoman.Front(front, request_to(front)).response(read).losses
            assert any(".message" in loss.path for loss in losses), place


def _paths(value: Any, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all fields, whatever their place in a list."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*before, key)
            yield from _paths(inner, (*before, key))
    elif isinstance(value, list):
        for inner in value:
            yield from _paths(inner, before)


def _drop(value: Any, path: tuple[str, ...]) -> Any:
    """The value without all fields at a path."""
    if isinstance(value, list):
        return [_drop(inner, path) for inner in value]
    if not isinstance(value, dict):
        return value
    first, *rest = path
    if not rest:
        return {key: inner for key, inner in value.items() if key != first}
    return {key: _drop(v, tuple(rest)) if key == first else v for key, v in value.items()}


_PIECES = _CONTENT | {
    "arguments", "content_block", "delta", "input", "item", "name", "part", "partial_json",
    "response", "thinking",
}  # fmt: skip
"""Fields of events that hold what is visible, or all that an event has."""


_TELLING = {"executed_tools", "thought"}
"""Fields without which something else is said: a text instead of a thought."""


def _type_of(frame: Any) -> Any:
    return frame.get("type") if isinstance(frame, dict) else None


@pytest.mark.thorough
@EVERY
def test_made_streams(case: Case) -> None:
    """No event of a kind has the field: what was visible is there once, or its loss is reported."""
    if case.name == "unknown kind of call":
        pytest.skip("a call of no kind is a function")
    name = case.its.dialect.name
    front = "anthropic" if name != "anthropic" else "openai-chat"
    before = _visible(case.its.decoded(case.stream)[0].response)
    kinds = {(_type_of(frame), path) for frame in case.frames for path in _paths(frame)}
    for kind, path in sorted(kinds, key=str):
        if path[-1] in _PIECES or path == ("type",) or _TELLING.intersection(path):
            continue
        frames = [_drop(each, path) if _type_of(each) == kind else each for each in case.frames]
        try:
            decoder, events = case.its.decoded(case.its.written(frames))
        except DragomanError:
            continue
        after = _visible(decoder.response)
        if not decoder.is_complete or before == after:
            continue
        encoder = dragoman.Front(front, request_to(front)).stream()
        for event in events:
            encoder.feed(event)
        encoder.close()
        assert any(".message" in loss.path for loss in encoder.losses), (kind, path)


@EVERY
def test_made_responses(case: Case) -> None:
    """Bodies of our own making, in every dialect."""
    check(case.its.dialect.name, case.body)


@pytest.mark.thorough
@pytest.mark.corpus(status=200, provider_api=tuple(_SPOKEN))
def test_recorded_responses(recording: Recording) -> None:
    """Recorded whole responses."""
    body = recording.response_body
    name = _SPOKEN[recording.row.provider_api]
    if not isinstance(body, dict) or recording.row.size > 50_000:
        pytest.skip("no small whole response")
    try:
        dragoman.dialect(name).decode_response(body)
    except DragomanError:
        pytest.skip("no response")
    check(name, body)
