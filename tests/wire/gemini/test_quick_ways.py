"""The fast paths for common input give the same results as the general paths."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.model.content import AnyPart
from dragoman.model.events import Event
from dragoman.model.frozen import freeze_mapping
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Citation, Text
from dragoman.model.requests import Request
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult, make_call
from dragoman.wire.gemini.codec import DIALECT
from dragoman.wire.gemini.stream_chunks import ChunkReader

TEXT = {"text": "hi"}
CALL = {"functionCall": {"name": "add", "args": {"x": 1}}}
DETAIL = {"modality": "TEXT", "tokenCount": 9}


def _without(quick: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"dragoman.wire.gemini.{quick}", lambda *_: None)


def _are_identical(one: list[Event], other: list[Event]) -> bool:
    return len(one) == len(other) and all(a.identical(b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize(
    "pieces",
    [
        [b"data: {}\r\n\r\n", b"data: {}\r\n\r\ndata: []\r\n\r\n"],
        [b"data: {}\n\n", b"data: {}\r\n\r\n"],
        [b"data: {}\r\n\r\ndata: {", b"}\r\n\r\n", b"data: 3\r\n\r\n"],
        [b"data: {}\r\n\r", b"\ndata: {}\r\n\r\n"],
        [b"data: {\r\ndata: }\r\n\r\n", b"data: {}\r\n\r\n"],
        [b"data: {\rdata: }\r\n\r\n"],
        [b": hello\r\n\r\n", b"data:\r\n\r\n", b"data: \r\n\r\n", b"data:{}\r\n\r\n"],
        [b"event: x\r\ndata: {}\r\n\r\n", b"event: y\r\n", b"data: {}\r\n\r\n"],
        [b"data: {}\r\n\r\n", b"\r\n", b"data: [DONE]\r\n\r\n", b"", b"data: {}"],
        [b"\xef\xbb\xbf", b"\r\n", b"data: {}\r\n\r\n", b"\xef\xbb\xbfdata: 2\r\n\r\n"],
        [b"data: {}\r\n\r\n", b"\xef\xbb\xbfdata: 2\r\n\r\n", b"data: 3\r\n\r\n"],
        [b'data: "\xff\xc3"\r\n\r\n'],
    ],
)
def test_frames_fast_path(pieces: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """The fast path finds the same frames as the parser, however the bytes are split."""

    def chunks(pieces: list[bytes]) -> list[str | bytes]:
        reader = ChunkReader()
        return [*(chunk for piece in pieces for chunk in reader.feed(piece)), *reader.close()]

    whole = b"".join(pieces)
    ways = pieces, [whole], [whole[at : at + 1] for at in range(len(whole))]
    quick = [chunks(way) for way in ways]
    _without("stream_chunks._whole_events", monkeypatch)
    assert quick == [chunks(pieces)] * len(ways)


_CHAT = freeze_mapping({"openai-chat": {"content": None}})
_OWN = freeze_mapping({"gemini": {"odd": 1}})


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("fields", [{}, {"name": "Ann"}, {"extras": _CHAT}, {"extras": _OWN}])
@pytest.mark.parametrize(
    "part",
    [
        Text("hi"),
        Text(""),
        Text("hi", signature="c2ln"),
        Text("hi", citations=(Citation(kind="url", url="https://example.com"),)),
        Text("hi", extras=_OWN),
        ToolCall("c", "add", '{"x": 1}'),
        ToolCall("c", "add", " "),
        make_call("c", "add", "[1]"),
        ToolCall("c", "add", "text", kind="custom"),
        ToolCall("c", "add", "{}", wire_id=None),
        ToolCall("c", "add", "{}", signature="c2ln"),
        ToolResult("c", "3"),
        ToolResult("c", "", data={"$ref": "x"}),
        ToolResult("c", "failed", is_error=True),
        ToolResult("unknown", "3"),
        ToolResult("c", (Text("3"),), tool_name="add"),
    ],
)
def test_contents_fast_path(
    role: Role, fields: dict[str, Any], part: AnyPart, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message with one part is written the same on both paths, with the same notes."""
    calls = Message(Role.ASSISTANT, (Text("so"), ToolCall("c", "add", "{}")))
    request = Request(model="m", messages=(calls, make_message(role, (part,), **fields)))
    quick = [DIALECT.encode_request(request, repair=repair) for repair in (True, False)]
    _without("request._encode_plain", monkeypatch)
    long = [DIALECT.encode_request(request, repair=repair) for repair in (True, False)]
    assert [(one.body, one.losses, one.repairs) for one in quick] == [
        (one.body, one.losses, one.repairs) for one in long
    ]
