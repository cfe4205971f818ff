"""The fast paths for plain messages give the same results as the general path."""

from __future__ import annotations

from itertools import product
from typing import Any

import msgspec
import pytest

from dragoman.model.media import Image
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import CacheHint, Citation, Origin, Text, Thinking
from dragoman.model.requests import Request
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult, make_result
from dragoman.wire.openai_chat import content_assistant, request_messages, tools
from dragoman.wire.openai_chat.request import decode_request, encode_request

_ELSEWHERE = Origin(dialect="anthropic", model="m")
_OURS = Origin(dialect="openai-chat")
_PICTURE = Image(data="iVBORw0KGgo=", mime="image/png")
_NULL = {"openai-chat": {"content": None}}
_TEXTS: tuple[Any, ...] = (
    Text("Hello."), Text(""), Text("So.", signature="s", origin=_ELSEWHERE),
    Text("So.", cache=CacheHint()), Text("So.", citations=(Citation(kind="url", url="https://a.ch"),)),
    Text("So.", extras={"openai-chat": {"odd": 1}}),
)  # fmt: skip
_CALLS: tuple[Any, ...] = (
    ToolCall("c1", "now", '{"a": 1}'), ToolCall("c1", "now", " "), ToolCall("c1", "now", None, {}),
    ToolCall("c1", "now", "x", kind="custom"), ToolCall("c1", "now", "{}", signature="s"),
    ToolCall("c1", "now", "{}", wire_id=None, origin=_OURS),
    ToolCall("c1", "now", "{}", wire_id="w", origin=_OURS),
    ToolCall("c1", "now", "{}", extras={"openai-chat spelling": {"words": ["-type"]}}),
)  # fmt: skip
_RESULTS: tuple[Any, ...] = (
    ToolResult("c1", "sunny"), ToolResult("c1", ""), make_result("", "sunny"),
    ToolResult("c1", "no", is_error=True), ToolResult("c1", (Text("a"), _PICTURE)),
)  # fmt: skip
_CONTENTS: tuple[tuple[Any, ...], ...] = (
    (),
    *((part,) for part in (*_TEXTS, *_CALLS, *_RESULTS, Thinking("hm"), _PICTURE)),
    *((_TEXTS[0], part) for part in (*_TEXTS, *_CALLS, *_RESULTS)),
    *((call, part) for call in _CALLS[:1] for part in (_TEXTS[0], ToolCall("c2", "now", "{}"))),
    (_RESULTS[0], ToolResult("c2", "cloudy")),
)  # fmt: skip


def _nothing(*_given: Any) -> None:
    """Replaces a fast path, so that it is never used."""


def _all_of(value: Any) -> bytes:
    """All fields, including those that equality ignores."""
    return msgspec.json.encode(value)


@pytest.fixture
def general(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Turns the fast paths off for assistant messages, calls and encoding."""
    monkeypatch.setattr(request_messages, "_encode_plain", _nothing)
    monkeypatch.setattr(content_assistant, "_decode_plain", _nothing)
    monkeypatch.setattr(tools, "_decode_plain_call", _nothing)
    return monkeypatch


@pytest.mark.parametrize("role", Role)
def test_fast_path_encodes_like_the_general_path(role: Role, general: pytest.MonkeyPatch) -> None:
    """Both paths agree for any content, name and origin, also after other messages."""
    ways: list[list[Any]] = []
    for _ in range(2):
        found: list[Any] = []
        for parts, name, extras, origin in product(
            _CONTENTS, (None, "Ann"), ({}, _NULL, content_assistant.NULL_CONTENT),
            (None, _OURS, _ELSEWHERE),
        ):  # fmt: skip
            message = make_message(role, parts, name, extras=extras, origin=origin)
            # Before it: a call with another id; an image that waits for the next message.
            earlier = Message("assistant", (_CALLS[6],), origin=_OURS)
            shown = Message("tool", (_RESULTS[4],))
            for messages in ((message,), (earlier, message), (shown, message)):
                written = encode_request(Request(messages=messages))
                found.append((str(written.body), written.losses, written.repairs))
        ways.append(found)
        general.undo()
    assert ways[0] == ways[1]


_FUNCTION = {"name": "now", "arguments": "{}"}
_CALL = {"id": "c1", "type": "function", "function": _FUNCTION}
_WIRE_CALLS: tuple[Any, ...] = (
    _CALL, {**_CALL, "id": ""}, {**_CALL, "id": None}, {**_CALL, "index": 0}, {**_CALL, "type": 1},
    {**_CALL, "function": {**_FUNCTION, "arguments": " "}},
    {**_CALL, "function": {**_FUNCTION, "arguments": {}}},
    {**_CALL, "function": {**_FUNCTION, "odd": 1}}, {**_CALL, "function": {"name": "now"}},
    {**_CALL, "function": None}, {**_CALL, "function": {"name": 1, "arguments": "{}"}},
    {"id": "c1", "function": _FUNCTION}, {"id": "c1", "type": "custom", "custom": _FUNCTION}, "odd",
)  # fmt: skip


def test_fast_path_decodes_like_the_general_path(general: pytest.MonkeyPatch) -> None:
    """Both paths agree for calls of all forms, with any content, and their results."""
    contents: tuple[Any, ...] = ({}, {"content": None}, {"content": "Hi."}, {"content": []})
    more: tuple[Any, ...] = ({}, {"name": "Ann"}, {"refusal": None}, {"reasoning": "hm"})
    called = [[], None, *([call] for call in _WIRE_CALLS), [_CALL, _CALL], [_CALL, _WIRE_CALLS[1]]]
    ways: list[list[bytes]] = []
    for _ in range(2):
        ways.append([
            _all_of(decode_request({"messages": [
                {"role": "assistant", **content, "tool_calls": calls, **rest},
                {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
            ]}))
            for content, calls, rest in product(contents, called, more)
        ])  # fmt: skip
        general.undo()
    assert ways[0] == ways[1]


@pytest.mark.parametrize("call_id", ["c1", "c2", ""])
def test_plain_result_is_decoded_like_one_with_extra_fields(call_id: str) -> None:
    """An unknown field forces the general path; apart from it, both results are equal."""
    plain = {"role": "tool", "tool_call_id": call_id, "content": "sunny"}
    calls = [_CALL, _CALL] if call_id == "c2" else [_CALL]
    asked = {"role": "assistant", "tool_calls": calls}
    read = [
        decode_request({"messages": [asked, wire]}).messages[1]
        for wire in (plain, {**plain, "odd": 1})
    ]
    assert _all_of(read[0].parts) == _all_of(read[1].parts)
    assert (read[0].name, read[1].extras["openai-chat"]["odd"]) == (None, 1)
