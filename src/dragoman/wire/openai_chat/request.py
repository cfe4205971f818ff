"""Requests to `/chat/completions`."""

from __future__ import annotations

from typing import Any

from dragoman.model.requests import BLANK, Request
from dragoman.wire.encoded import Encoded
from dragoman.wire.json_values import is_object, want
from dragoman.wire.openai_chat.dialect import NAME, TARGET, ChatWriting
from dragoman.wire.openai_chat.layout import decode_messages, encode_messages
from dragoman.wire.openai_chat.settings import (
    PLACES,
    SETTINGS,
    decode_thinking_config,
    encode_thinking_config,
    without_refused_fields,
    words_in,
)
from dragoman.wire.openai_chat.tools import decode_choice, decode_tools, encode_choice, encode_tools
from dragoman.wire.overlay import fields_of, has_overlay, overlay_of, with_overlay, words_of
from dragoman.wire.overlay_edits import with_digests, without_edited
from dragoman.wire.target import Target

PATH = "/v1/chat/completions"


def decode_request(wire: dict[str, Any], _path: str | None = None) -> Request:
    """Decode a request body."""
    messages = want(wire, "messages", list, NAME, "$")
    used = {"messages"}
    tools = decode_tools(wire, used)
    choice, thinking = decode_choice(wire, used), decode_thinking_config(wire, used)
    request = BLANK.replace_trusted(
        messages=decode_messages(messages), tools=tools, tool_choice=choice, thinking=thinking,
        **SETTINGS.read(wire),
    )  # fmt: skip
    if len(used) == len(wire):
        return request
    writing = ChatWriting(TARGET)
    writing.words = words = words_in(wire)
    extras = overlay_of(wire, used, NAME, SETTINGS.write(request, writing), words)
    return with_digests(request.replace_trusted(extras=extras), NAME, PLACES) if extras else request


def encode_request(request: Request, target: Target = TARGET) -> Encoded:
    """Encode a request."""
    writing = ChatWriting(target)
    writing.words = words_of(request.extras, NAME)
    messages = encode_messages(request.system, request.messages, writing)
    if target.turns.alternates_roles and all(map(is_object, messages)):
        messages = _with_merged_neighbours(messages)
    body: dict[str, Any] = {"messages": messages}
    if request.tools:
        encode_tools(request.tools, body, writing)
    if request.tool_choice is not None:
        encode_choice(request.tool_choice, request.tools, body, target)
    body = SETTINGS.write(request, writing) | body
    if request.thinking is not None:
        encode_thinking_config(request.thinking, body, writing)
    if has_overlay(request.extras, NAME):
        body = with_overlay(body, without_edited(request, NAME, PLACES), NAME)
    if target.fields.in_request is not None or target.fields.refused:
        body = without_refused_fields(body, writing)
    return Encoded(body, path=PATH, losses=tuple(writing.losses), repairs=tuple(writing.repairs),
                   context=writing.context)  # fmt: skip


def _with_merged_neighbours(written: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Merge consecutive messages of one role, since messages may have been left out (W117)."""
    done: list[dict[str, Any]] = []
    for body in written:
        before, role = done[-1] if done else {}, body.get("role")
        if role in (None, "tool") or before.get("role") != role:
            done.append(body)
        elif body.get("content"):
            content = [*_listed(before.get("content")), *_listed(body["content"])]
            done[-1] = {**body, **before, "content": content}
        else:
            done[-1] = {**body, **before}
    return done


def _listed(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content or []


def asks_for_usage(request: Request) -> bool:
    """Whether a client requests the usage in a stream."""
    options = fields_of(request.extras, NAME).get("stream_options")
    return is_object(options) and options.get("include_usage") is True
