"""Message views for the page: plain JSON, with media as URLs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import UNSET

from dragoman.interop.text_files import (
    INTERRUPTED,
    attached_names,
    content_of,
    is_interrupted,
)
from dragoman.model.content import AnyPart
from dragoman.model.jsontext import dumps
from dragoman.model.media import Audio, File, Image, Media, Video
from dragoman.model.messages import Message
from dragoman.model.parts import (
    Citation,
    Opaque,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    Text,
    Thinking,
)
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.model.usage import FinishReason, Usage
from dragoman.providers.prices import LISTED

_KINDS: dict[type, str] = {Image: "image", Audio: "audio", Video: "video", File: "file"}
_FINISH_NAMES = {FinishReason.CANCELLED: "stopped"}
"""Finish reasons that the page names differently."""
_MAX_CITATIONS = 200


def view_of(message: Message, id: str) -> dict[str, Any]:
    """Returns the view of a message; `id` is the conversation's."""
    origin = message.origin
    made: dict[str, Any] = {
        "id": message.id,
        "role": message.role.value,
        "created_at": message.created_at,
        "model": None if origin is None else origin.model,
        "provider": None if origin is None else origin.provider,
        "usage": None if message.usage is None else usage_view(message.usage),
        "cost": cost_of(message),
        "finish": INTERRUPTED if is_interrupted(message) else finish_view(message.finish),
        "parts": list(_parts(message, id)),
    }
    if message.name:
        made["name"] = message.name
    return made


def finish_view(finish: FinishReason | None) -> str | None:
    """Returns the finish reason as the page shows it."""
    return None if finish is None else _FINISH_NAMES.get(finish, finish.value)


def usage_view(usage: Usage) -> dict[str, int]:
    """Returns the view of a token usage."""
    return {
        "input": usage.input,
        "output": usage.output,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
        "thinking": usage.thinking,
        "total": usage.total,
    }


def cost_of(message: Message) -> str | None:
    """Returns the cost of a response in US dollars, if known."""
    cost = LISTED.cost_of_message(message)
    return None if cost is None else f"{cost:f}"


# --- parts


def _parts(message: Message, id: str) -> Iterator[dict[str, Any]]:
    files = attached_names(message)
    for place, part in enumerate(message.parts):
        address = f"media/{id}/{message.id}/{place}"
        name = files.get(str(place))
        if name is not None and isinstance(part, Text):
            yield _file(part.text, name, address)
        else:
            yield part_view(part, address)


def _file(text: str, name: str, address: str) -> dict[str, Any]:
    """Returns the view of an attached file that is sent to models as text."""
    size = len(content_of(text, name).encode("utf-8", "replace"))
    return {"kind": "file", "name": name, "mime": "text/plain", "size": size, "url": address}


def part_view(part: AnyPart, address: str) -> dict[str, Any]:
    """Returns the view of a part; `address` is the URL for media."""
    match part:
        case Text():
            made = {"kind": "text", "text": part.text}
            return made | ({"citations": _citations(part.citations)} if part.citations else {})
        case Thinking():
            return {"kind": "thinking", "text": part.text, "form": part.form}
        case Refusal():
            return {"kind": "refusal", "text": part.text}
        case ToolCall():
            return {"kind": "call", **call_view(part)}
        case _:
            return _bulky(part, address)


def _bulky(part: AnyPart, address: str) -> dict[str, Any]:
    if isinstance(part, ToolResult):
        return _result(part, address)
    return _media(part, address) if isinstance(part, Media) else _other(part)


def call_view(call: ToolCall) -> dict[str, Any]:
    """Returns the view of a tool call; the arguments are verbatim."""
    return {"call_id": call.id, "name": call.name, "arguments": call.raw_arguments}


def _result(part: ToolResult, address: str) -> dict[str, Any]:
    made: dict[str, Any] = {
        "kind": "result",
        "call_id": part.call_id,
        "name": part.tool_name,
        "text": part.text,
        "is_error": bool(part.is_error),
    }
    if part.data is not UNSET and not part.text:
        made["text"] = dumps(part.data).decode()
    if not isinstance(part.content, str):
        media = [
            part_view(each, f"{address}.{place}")
            for place, each in enumerate(part.content)
            if isinstance(each, Media)
        ]
        if media:
            made["parts"] = media
    return made


def _media(part: Media, address: str) -> dict[str, Any]:
    made: dict[str, Any] = {"kind": _KINDS.get(type(part), "file"), "mime": part.mime}
    if part.name:
        made["name"] = part.name
    if part.data is not None:
        made |= {"url": address, "size": len(part.data) * 3 // 4}
    elif part.url is not None:
        made["source"] = part.url  # an external URL: the page's policy doesn't load it
    if isinstance(part, Audio) and part.transcript:
        made["text"] = part.transcript
    return made


def _other(part: AnyPart) -> dict[str, Any]:
    match part:
        case ServerToolCall():
            return {
                "kind": "call", "name": part.name, "call_id": part.call_id,
                "arguments": _json(part.input), "is_server": True,
            }  # fmt: skip
        case ServerToolResult():
            return {
                "kind": "result", "name": part.name, "call_id": part.call_id,
                "text": _json(part.content), "is_error": bool(part.is_error), "is_server": True,
            }  # fmt: skip
        case Opaque():
            return {"kind": "opaque", "name": part.dialect, "text": _json(part.payload)}
        case _:
            return {"kind": "opaque", "name": type(part).__name__}


def _json(value: Any) -> str:
    return value if isinstance(value, str) else dumps(value).decode()


def _citations(given: tuple[Citation, ...]) -> list[dict[str, Any]]:
    fields = ("kind", "url", "title", "quote", "start", "end")
    some = given[:_MAX_CITATIONS]
    return [
        {name: value for name in fields if (value := getattr(each, name)) is not None}
        for each in some
    ]
