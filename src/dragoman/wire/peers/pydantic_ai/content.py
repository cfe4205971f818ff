"""What users send and tools return: texts, files, cache points and JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from dragoman.model.content import AnyPart
from dragoman.model.frozen import thaw
from dragoman.model.jsontext import dumps
from dragoman.model.media import Audio, File, Image, Video
from dragoman.model.parts import CacheHint, Opaque, Origin, Refusal, Text
from dragoman.model.tools import ToolResult
from dragoman.wire.peers.keeping import Writing
from dragoman.wire.peers.pydantic_ai.files import (
    RECORDED,
    decode_file,
    digest,
    encode_file,
    is_file,
)
from dragoman.wire.peers.pydantic_ai.spelling import KEEPER, NAME, text_at

_MEDIA = (Image, Audio, Video, File)
_TEXTS = frozenset({"text-content", "structured-content"})
_CACHE = "cache-point"
_LIFETIMES = ("5m", "1h")


def decode_content(content: Any) -> list[AnyPart]:
    """The parts of what a user sent: a text, or a list of items."""
    if isinstance(content, str):
        return [Text(content)]
    parts: list[AnyPart] = []
    for item in content if isinstance(content, list) else [content]:
        if _is_cache_point(item) and parts and parts[-1].cache is None:
            ttl = text_at(item, "ttl")
            parts[-1] = replace(parts[-1], cache=CacheHint(ttl))
        else:
            parts += decode_item(item)
    return parts


def _is_cache_point(item: Any) -> bool:
    return isinstance(item, Mapping) and item.keys() == {"kind", "ttl"} and item["kind"] == _CACHE


def decode_item(item: Any) -> list[AnyPart]:
    """The part of an item of content."""
    if isinstance(item, str):
        return [Text(item)]
    media = decode_file(item)
    if media is not None:
        return [media]  # type: ignore[list-item]  # one of the four kinds
    read = _read_other(item)
    return read if isinstance(read[0], Opaque) else KEEPER.keep_whole(read, item)


def _read_other(item: Any) -> list[AnyPart]:
    is_object = isinstance(item, Mapping)
    text = text_at(item, "content") if is_object and item.get("kind") in _TEXTS else None
    return [Opaque(NAME, item) if text is None else Text(text)]


def encode_content(
    parts: Sequence[AnyPart], origin: Origin | None, writing: Writing
) -> str | list[Any]:
    """The content for these parts: a text where that is all."""
    items: list[Any] = []
    for at, part in enumerate(parts):
        writing.part = at
        items += encode_item(parts, at, origin, writing)
        if part.cache is not None:
            items.append({"kind": _CACHE, "ttl": _lifetime(part.cache, writing)})
    if len(items) == 1 and isinstance(items[0], str):
        return items[0]
    return items


def _lifetime(cache: CacheHint, writing: Writing) -> str:
    """How long to cache: there are two times to choose from."""
    ttl = cache.ttl or _LIFETIMES[0]
    if ttl in _LIFETIMES:
        return ttl
    writing.lose("a prompt is cached for 5m or 1h there", ".cache")
    return _LIFETIMES[0]


def encode_item(
    parts: Sequence[AnyPart], at: int, origin: Origin | None, writing: Writing
) -> list[Any]:
    """The items for the part at that place."""
    part = parts[at]
    whole = KEEPER.whole([replace(part, cache=None)], 0, _read_other)
    if whole is not None:
        return [whole[0]]
    if isinstance(part, Text):
        if part.citations:
            writing.lose("texts of users and tools cite nothing there", ".citations")
        return [part.text]
    if isinstance(part, _MEDIA):
        item = encode_file(part, origin, writing)
        return [] if item is None else [item]
    if isinstance(part, Opaque) and part.dialect == NAME:
        return [thaw(part.payload)]
    if isinstance(part, Refusal):
        writing.lose("a refusal is written as text there", ".type")
        return [part.text]
    writing.lose("this kind of content has no place in a message there")
    return []


# --- results of tools


def decode_result_content(content: Any, record: Any) -> dict[str, Any]:
    """The fields of a result for what a tool returned: text, text and files, or JSON.

    `record` are the digests of the files in it: data that only looks like a file is data.
    """
    if isinstance(content, str):
        return {"content": content}
    items = content if isinstance(content, list) else [content]
    if any(_is_recorded(item, record) for item in items):
        return {"content": tuple(_result_part(item) for item in items)}
    return {"data": content}


def _is_recorded(item: Any, record: Any) -> bool:
    if not is_file(item):
        return False
    return item["kind"] not in RECORDED or not isinstance(record, list) or digest(item) in record


def _result_part(item: Any) -> Any:
    if isinstance(item, str):
        return Text(item)
    file = decode_file(item)
    if file is not None:
        return file
    text = Text(dumps(item).decode("utf-8"))  # what any other model can be shown
    return KEEPER.keep_whole([text], item)[0]


def encode_result_content(result: ToolResult, origin: Origin | None, writing: Writing) -> Any:
    """What the tool returned."""
    if isinstance(result.content, str):
        is_data = result.data is not UNSET and not result.content
        return thaw(result.data) if is_data else result.content
    items: list[Any] = []
    for part in result.content:
        again = KEEPER.whole([part], 0, lambda item: [_result_part(item)])
        items += encode_item((part,), 0, origin, writing) if again is None else [again[0]]
    return items[0] if len(items) == 1 and isinstance(items[0], (str, dict)) else items
