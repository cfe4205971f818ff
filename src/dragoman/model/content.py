"""Reading and writing content as people and the seeds' systems shape it.

In: a text, a part, a list of either, OpenAI's content parts (`image_url`, `input_audio`, `file`,
with their payload nested, or flat as older code has it; where both are there, nested wins), and
the canonical form. Out: the nested shape. Unknown kinds of content are refused here: only a
dialect's decoder knows enough to carry them on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from dragoman.errors import InvalidInputError
from dragoman.model.jsontext import convert
from dragoman.model.media import Audio, File, Image, Media, Video, audio_mime
from dragoman.model.parts import (
    Opaque,
    Part,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    Text,
    Thinking,
)
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.model.value import expect

AnyPart = (
    Text
    | Thinking
    | Refusal
    | Image
    | Audio
    | Video
    | File
    | ToolCall
    | ToolResult
    | ServerToolCall
    | ServerToolResult
    | Opaque
)
"""Everything that a message may hold."""


def parts_from(content: Any) -> tuple[AnyPart, ...]:
    """Parts from whatever content people write: None is no parts, a keyed dict is one part."""
    if content is None:
        return ()
    if isinstance(content, (str, Part, Mapping)):
        return (part_from(content),)
    if isinstance(content, Iterable) and not isinstance(content, (bytes, bytearray)):
        return tuple(part_from(item) for item in content)
    return (part_from(content),)


def part_from(item: Any) -> AnyPart:
    """One part from a text, a part, a content-part dict, or an object that knows how to be one."""
    if isinstance(item, str):
        return Text(str.__str__(item))
    if isinstance(item, Part):
        return cast("AnyPart", item)
    if isinstance(item, Mapping):
        return _part_from_mapping(item)
    msg = f"content can't be made from a {type(item).__name__}; use text, parts or media"
    raise InvalidInputError(msg)


def _part_from_mapping(item: Mapping[str, Any]) -> AnyPart:
    kind = item.get("type")
    if kind is None:
        kind = next((name for name in ("text", *_READERS) if name in item), None)
    read = _READERS.get(kind) if isinstance(kind, str) else None
    if read is not None:
        return read(item)
    if kind in {"text", "input_text", "output_text"}:
        text = item.get("text", "")
        expect(text, str, "the text of a content part")
        return Text(text)
    if isinstance(kind, str) and kind in _CANONICAL:
        return _canonical(item)
    msg = "unknown type of content part; text, image_url, input_audio and file are known"
    raise InvalidInputError(msg)


def _payload(item: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The fields of a part, flat ones first so that nested ones win; empty ones are left out."""
    nested = item.get(key)
    if isinstance(nested, str):
        nested = {"url": nested} if key == "image_url" else {"data": nested}
    fields = {**item, **(nested if isinstance(nested, Mapping) else {})}
    return {
        name: value
        for name, value in fields.items()
        if name not in {"type", key} and value not in (None, "", [])
    }


def _image(item: Mapping[str, Any]) -> AnyPart:
    fields = _payload(item, "image_url")
    detail = fields.get("detail")
    if "url" in fields:
        return Image.from_url(fields["url"], fields.get("mime_type"), detail=detail)
    if "file_id" in fields:
        return Image.from_file_id(fields["file_id"], detail=detail)
    msg = "an image_url part needs a url"
    raise InvalidInputError(msg)


def _audio(item: Mapping[str, Any]) -> AnyPart:
    fields = _payload(item, "input_audio")
    data, audio_format = fields.get("data"), fields.get("format", "wav")
    expect(data, str, "the data of an input_audio part")
    expect(audio_format, str, "the format of an input_audio part")
    return Audio.from_base64(str(data), audio_mime(audio_format))


def _file(item: Mapping[str, Any]) -> AnyPart:
    fields = _payload(item, "file")
    name = fields.get("file_name") or fields.get("filename")
    if "file_id" in fields:
        return File.from_file_id(fields["file_id"], name=name)
    data = fields.get("file_data") or fields.get("data")
    if data is not None:
        return File.from_base64(data, name=name)
    if "file_url" in fields:
        return File.from_url(fields["file_url"], name=name)
    msg = "a file part needs file_data, file_id or file_url"
    raise InvalidInputError(msg)


def _read_file(item: Mapping[str, Any]) -> AnyPart:
    # The canonical form of a file has the same type name; its fields are flat and called otherwise.
    if "file" in item or "file_id" in item or "file_data" in item or "file_name" in item:
        nested = item.get("file")
        if isinstance(nested, Mapping) or not {"mime", "url", "data"} & item.keys():
            return _file(item)
    return _canonical(item)


def _canonical(item: Mapping[str, Any]) -> AnyPart:
    part: AnyPart = convert(dict(item), AnyPart)
    return part


_READERS: dict[str, Callable[[Mapping[str, Any]], AnyPart]] = {
    "image_url": _image,
    "input_audio": _audio,
    "file": _read_file,
}

_CANONICAL = frozenset(
    {"thinking", "refusal", "opaque", "image", "audio", "video", "tool_call", "tool_result",
     "server_tool_call", "server_tool_result"}
)  # fmt: skip


def part_to_dict(part: Part) -> dict[str, Any]:
    """A part in the seeds' nested shape; raises for what that shape can't say."""
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Refusal):
        return {"type": "refusal", "refusal": part.text}
    if isinstance(part, Image):
        return {"type": "image_url", "image_url": _filled(url=_address(part), detail=part.detail)}
    if isinstance(part, Audio) and part.data is not None:
        return {"type": "input_audio", "input_audio": {"data": part.data, "format": part.format}}
    if isinstance(part, File):
        data = part.data_url if part.data is not None else None
        fields = _filled(
            file_data=data, file_url=part.url, file_id=part.file_id, file_name=part.name
        )
        return {"type": "file", "file": fields}
    msg = f"the OpenAI shape can't hold a {type(part).__name__}; use shape='canonical'"
    raise InvalidInputError(msg)


def _address(part: Media) -> str:
    return part.file_id if part.file_id is not None else part.data_url


def _filled(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None and value != ""}
