"""Turns: who speaks, the pieces of what is said, and calls of tools with their replies.

Each decoder stands beside its encoder. A decoder takes what it understands, then writes that back
and keeps the difference (`overlay.overlay_of`): fields that nobody knows, nulls, other spellings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.errors import WireError
from dragoman.model.content import AnyPart
from dragoman.model.media import Image
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Opaque, Origin, Refusal, Text, Thinking
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult, make_call, make_result
from dragoman.wire import json_values, overlay
from dragoman.wire.losses import Loss, Repair
from dragoman_courier.description import NAME, OWN

_SPEAKERS = {"user": Role.USER, "agent": Role.ASSISTANT, "office": Role.SYSTEM}
_WORDS = {**{role: word for word, role in _SPEAKERS.items()}, Role.TOOL: "user"}
_WRAPPED = "input"


class Report:
    """What could not be said, and what had to be changed."""

    def __init__(self) -> None:
        self.losses: list[Loss] = []
        self.repairs: list[Repair] = []

    def lose(self, path: str, reason: str) -> None:
        """Note what could not be said."""
        self.losses.append(Loss(path, reason))


# --- turns


def decode_turn(wire: Any, path: str) -> Message:
    """The message in a turn."""
    word = wire.get("from") if isinstance(wire, dict) else None
    role = _SPEAKERS.get(word) if isinstance(word, str) else None
    if role is None:
        msg = "a turn is from the user, the agent or the office"
        raise WireError(msg, dialect=NAME, path=path)
    pieces = json_values.want(wire, "pieces", list, NAME, path)
    parts = tuple(decode_piece(piece, f"{path}.pieces[{i}]") for i, piece in enumerate(pieces))
    is_replies = bool(parts) and all(isinstance(part, ToolResult) for part in parts)
    message = make_message(Role.TOOL if is_replies else role, parts)
    written = encode_turn(message, path, Report()) or {}
    return message.replace_unchecked(extras=overlay.overlay_of(wire, (), NAME, written))


def encode_turn(message: Message, path: str, report: Report) -> dict[str, Any] | None:
    """The turn of a message; None where nothing of it can be said."""
    pieces: list[Any] = []
    for index, part in enumerate(message.parts):
        place = f"{path}.parts[{index}]"
        if isinstance(part, Thinking) and not _is_own(message.origin_of(part)):
            report.lose(place, "another provider's thinking can't be replayed")
        elif (piece := encode_piece(part, place, report)) is not None:
            pieces.append(piece)
    if message.name is not None:
        report.lose(f"{path}.name", "turns carry no names")
    if message.parts and not pieces:
        return None
    body = {"from": _WORDS.get(message.role, "office"), "pieces": pieces}
    return overlay.with_overlay(body, message.extras, NAME)


def _is_own(origin: Origin | None) -> bool:
    return origin is None or origin.dialect == NAME


# --- pieces


def decode_piece(wire: Any, path: str) -> AnyPart:
    """One piece of a turn; one of a kind that nobody knows is carried whole."""
    kind = wire.get("kind") if isinstance(wire, dict) else None
    if kind == "text":
        return Text(json_values.want(wire, "text", str, NAME, path))
    if kind == "image":
        return Image(
            data=json_values.want(wire, "data", str, NAME, path),
            mime=json_values.want(wire, "mime", str, NAME, path),
        )
    if kind == "call":
        ref, tool = (json_values.want(wire, key, str, NAME, path) for key in ("ref", "tool"))
        return make_call(ref, tool, None, json_values.want(wire, "with", dict, NAME, path))
    if kind == "thought":
        return Thinking(json_values.want(wire, "text", str, NAME, path), origin=OWN)
    if kind == "reply":
        return _decode_reply(wire, path)
    return Opaque(NAME, wire, origin=OWN)


def encode_piece(part: AnyPart, path: str, report: Report) -> Any:
    """The piece of a part; None, and a loss, where there is none for it."""
    if isinstance(part, Opaque) and part.dialect == NAME:
        return part.payload
    body: dict[str, Any] | None = None
    if isinstance(part, (Text, Refusal)):
        body = {"kind": "text", "text": part.text}
        if isinstance(part, Refusal):
            report.lose(path, "a refusal is sent as text")
    elif isinstance(part, Thinking) and part.text:
        body = {"kind": "thought", "text": part.text}
        if part.signature is not None or part.data is not None:
            report.lose(f"{path}.signature", "thoughts are plain text")
    elif isinstance(part, Image) and part.data is not None:
        body = {"kind": "image", "mime": part.mime or "image/png", "data": part.data}
    elif isinstance(part, ToolCall):
        given = _given(part, path, report)
        body = {"kind": "call", "ref": part.id, "tool": part.name, "with": given}
    elif isinstance(part, ToolResult):
        body = _encode_reply(part, path, report)
    else:
        report.lose(path, "a courier carries texts, thoughts, images, calls and replies")
    return body


def _decode_reply(wire: dict[str, Any], path: str) -> ToolResult:
    """A result: a text, or pieces of text and images."""
    ref = json_values.want(wire, "ref", str, NAME, path)
    is_error = wire.get("failed") is True
    if not isinstance(wire.get("said"), list):
        return make_result(ref, json_values.want(wire, "said", str, NAME, path), is_error=is_error)
    pieces = [decode_piece(piece, f"{path}.said[{i}]") for i, piece in enumerate(wire["said"])]
    content = tuple(piece for piece in pieces if isinstance(piece, (Text, Image)))
    if len(content) != len(pieces):
        msg = "a reply has texts and images"
        raise WireError(msg, dialect=NAME, path=path)
    return make_result(ref, content, is_error=is_error)


def _encode_reply(result: ToolResult, path: str, report: Report) -> dict[str, Any]:
    said: Any = result.text
    if not isinstance(result.content, str):
        found = (
            encode_piece(part, f"{path}.content[{i}]", report)
            for i, part in enumerate(result.content)
        )
        said = [piece for piece in found if piece is not None]
    body = {"kind": "reply", "ref": result.call_id, "said": said}
    return {**body, "failed": True} if result.is_error else body


def _given(call: ToolCall, path: str, report: Report) -> Mapping[str, Any]:
    """What a tool is called with, which must be an object (I6)."""
    given = call.object_arguments()
    if given is None:
        reason = "arguments that are not a JSON object are wrapped in one"
        report.repairs.append(Repair(path, "I6", "retyped", reason))
        return {_WRAPPED: call.raw_arguments}
    return given
