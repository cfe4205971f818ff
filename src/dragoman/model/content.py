"""Converts content between parts and dicts.

Reading accepts text, a part, a list of either, OpenAI's content parts (`image_url`, `input_audio`,
`file`; the payload nested or, as in older code, flat; nested wins where both are present), and the
canonical form. Writing produces the nested shape, or the canonical form for content that the nested
shape can't express. Unknown fields of a part are kept in its extras under `canonical` and written
back. Unknown content types are rejected, because they are usually typos; for a custom type use
`"type": "custom"` or `Opaque.custom`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, cast

import msgspec

from dragoman.errors import InvalidInputError
from dragoman.model.frozen import thaw
from dragoman.model.jsontext import convert, dumps
from dragoman.model.media import Audio, File, Image, Media, Video, audio_mime
from dragoman.model.parts import (
    Opaque,
    Part,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    Text,
    Thinking,
    own_extras,
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
"""Any part that a message may hold."""


def is_message(value: Mapping[str, Any]) -> bool:
    """Whether a dict describes a message rather than a part of one."""
    return "role" in value or "parts" in value or ("content" in value and "type" not in value)


def is_content(value: Any) -> bool:
    """Whether a value is valid content as is: a text, a part, a dict, or a list of those."""
    if isinstance(value, (str, Part, Mapping)):
        return True
    return isinstance(value, (list, tuple)) and all(
        isinstance(item, (str, Part, Mapping)) for item in value
    )


def text_of(value: Any) -> str:
    """Any object as text: its JSON if it can be serialised, otherwise `str`."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        msg = f"{type(value).__name__} is not text; use an Image, Audio, Video or File"
        raise InvalidInputError(msg)
    if isinstance(value, type):
        return str(value)  # a class has the methods and fields of its instances
    as_json = getattr(value, "model_dump_json", None)
    if callable(as_json):
        try:
            return str(as_json())
        except Exception as error:  # noqa: BLE001 - pydantic's errors may quote the values
            msg = f"{type(value).__name__} can't be written as JSON ({type(error).__name__})"
        raise InvalidInputError(msg)
    if isinstance(value, (list, tuple, msgspec.Struct)) or hasattr(value, "__dataclass_fields__"):
        return dumps(value).decode("utf-8")
    return str(value)


def parts_from(content: Any) -> tuple[AnyPart, ...]:
    """Converts content to parts: `None` gives no parts, a dict gives one part."""
    if content is None:
        return ()
    if isinstance(content, (str, Part, Mapping)):
        return (part_from(content),)
    if isinstance(content, Iterable) and not isinstance(content, (bytes, bytearray)):
        return tuple(part_from(item) for item in content)
    return (part_from(content),)


def part_from(item: Any) -> AnyPart:
    """Converts a text, a part or a content-part dict to a part."""
    if isinstance(item, str):
        return Text(str.__str__(item))
    if isinstance(item, Part):
        return cast("AnyPart", item)
    if isinstance(item, Mapping):
        return _part_from_mapping(item)
    msg = f"content can't be made from {type(item).__name__}; use text, parts or media"
    raise InvalidInputError(msg)


def _part_from_mapping(item: Mapping[str, Any]) -> AnyPart:
    kind = item.get("type")
    if kind is None:
        kind = next((name for name in ("text", *_READERS) if name in item), None)
    read = _READERS.get(kind) if isinstance(kind, str) else None
    if read is not None:
        return read(item)
    if kind in ("text", "input_text", "output_text"):  # a tuple: it may be unhashable
        return _text(item)
    fields = _CANONICAL.get(kind) if isinstance(kind, str) else None
    dialect = None if fields is not None and item.keys() <= fields else _dialect_of(item)
    if dialect is not None:
        msg = f"the content part is not canonical; dialect({dialect!r}).decode_request can read it"
        raise InvalidInputError(msg)
    if fields is not None:
        return _canonical(item)
    msg = (
        "unknown content part type; use text, image_url, input_audio or file, or custom for a"
        " custom part"
    )
    raise InvalidInputError(msg)


def _dialect_of(item: Mapping[str, Any]) -> str | None:
    """The dialect of a part, from the input reader (looked up lazily: it imports this module)."""
    found: str | None = import_module("dragoman").INPUT_READER.dialect_of_part(item)
    return found


def _text(item: Mapping[str, Any]) -> AnyPart:
    expect(item.get("text", ""), str, "the text of a content part")
    known = {"text": "", **{name: item[name] for name in item if name in Text.__struct_fields__}}
    text = Text(known["text"]) if len(known) == 1 else _canonical({**known, "type": "text"})
    return _keeping(text, {name: item[name] for name in item if name not in {*known, "type"}})


def _refusal(item: Mapping[str, Any]) -> AnyPart:
    if "refusal" not in item:
        return _canonical(item)
    expect(item["refusal"], str, "the text of a refusal part")
    unknown = {name: value for name, value in item.items() if name not in {"type", "refusal"}}
    return _keeping(Refusal(item["refusal"]), unknown)


class _Fields:
    """The fields of a part, flat or nested under `key`; nested wins, empty values are ignored."""

    def __init__(self, item: Mapping[str, Any], key: str, bare: str) -> None:
        nested = item.get(key)
        if not isinstance(nested, Mapping):
            nested = {} if nested is None else {bare: nested}
        self._key = key
        self._flat = {name: item[name] for name in item if name not in {"type", key}}
        self._nested = dict(nested)

    def take(self, *names: str) -> Any:
        """Removes these fields and returns the first non-empty value."""
        found = [fields.pop(name, None) for fields in (self._nested, self._flat) for name in names]
        return next((value for value in found if value not in (None, "", [])), None)

    def kept_by(self, part: AnyPart) -> AnyPart:
        """The part with the remaining fields as extras, where they were."""
        nested = {self._key: self._nested} if self._nested else {}
        return _keeping(part, {**self._flat, **nested})


def _keeping(part: AnyPart, unknown: Mapping[str, Any]) -> AnyPart:
    if not unknown:
        return part
    known = own_extras(part.extras)
    return part.replace(extras={**part.extras, "canonical": {**known, **unknown}})


def _image(item: Mapping[str, Any]) -> AnyPart:
    fields = _Fields(item, "image_url", "url")
    url, file_id = fields.take("url"), fields.take("file_id")
    mime, detail = fields.take("mime_type"), fields.take("detail")
    if url is not None:
        return fields.kept_by(Image.from_url(url, mime, detail=detail))
    if file_id is not None:
        return fields.kept_by(Image.from_file_id(file_id, mime, detail=detail))
    msg = "an image_url part needs a url"
    raise InvalidInputError(msg)


def _audio(item: Mapping[str, Any]) -> AnyPart:
    fields = _Fields(item, "input_audio", "data")
    data, audio_format = fields.take("data"), fields.take("format") or "wav"
    return fields.kept_by(Audio.from_base64(data, audio_mime(audio_format)))


def _file(item: Mapping[str, Any]) -> AnyPart:
    fields = _Fields(item, "file", "file_data")
    name = fields.take("file_name", "filename")
    file_id, url = fields.take("file_id"), fields.take("file_url")
    data = fields.take("file_data", "data")
    if file_id is not None:
        return fields.kept_by(File.from_file_id(file_id, name=name))
    if data is not None:
        return fields.kept_by(File.from_base64(data, name=name))
    if url is not None:
        return fields.kept_by(File.from_url(url, name=name))
    msg = "a file part needs file_data, file_id or file_url"
    raise InvalidInputError(msg)


def _custom(item: Mapping[str, Any]) -> AnyPart:
    return Opaque.custom("custom", item)


def _read_file(item: Mapping[str, Any]) -> AnyPart:
    # The canonical form of a file has the same type name, with flat fields of different names.
    is_canonical = item.keys() <= {*File.__struct_fields__, "type"}
    return _canonical(item) if is_canonical else _file(item)


def _canonical(item: Mapping[str, Any]) -> AnyPart:
    part: AnyPart = convert(dict(item), AnyPart)
    return part


_READERS: dict[str, Callable[[Mapping[str, Any]], AnyPart]] = {
    "image_url": _image,
    "input_audio": _audio,
    "file": _read_file,
    "refusal": _refusal,
    "custom": _custom,
}

_CANONICAL: dict[str, frozenset[str]] = {
    name: frozenset({*kind.__struct_fields__, "type"})
    for name, kind in (
        ("thinking", Thinking), ("opaque", Opaque), ("image", Image), ("audio", Audio),
        ("video", Video), ("tool_call", ToolCall), ("tool_result", ToolResult),
        ("server_tool_call", ServerToolCall), ("server_tool_result", ServerToolResult),
    )
}  # fmt: skip
"""The fields of each canonical part type."""


def part_to_dict(part: Part) -> dict[str, Any]:
    """A part as a dict in the nested shape, or in the canonical form if it has no nested shape.

    Extra fields that are empty or start with an underscore are not written.
    """
    written = _written(part)
    if written is None:
        return cast("dict[str, Any]", thaw(msgspec.to_builtins(part)))
    for name, value in thaw(own_extras(part.extras)).items():
        if name.startswith("_") or value in (None, "", [], {}):
            continue
        # Unknown fields go back to where they were, in the part or in its payload.
        inner = written.get(name)
        if isinstance(inner, dict) and isinstance(value, dict):
            written[name] = {**value, **inner}
        else:
            written.setdefault(name, value)
    return written


def _written(part: Part) -> dict[str, Any] | None:
    if isinstance(part, Text):
        citations = (
            {"citations": thaw(msgspec.to_builtins(part.citations))} if part.citations else {}
        )
        return {"type": "text", "text": part.text, **citations}
    if isinstance(part, Refusal):
        return {"type": "refusal", "refusal": part.text}
    if isinstance(part, Media):
        return _written_media(part)
    if isinstance(part, Opaque) and _is_custom(part):
        return cast("dict[str, Any]", thaw(part.payload))
    return None


def _written_media(part: Media) -> dict[str, Any] | None:
    if part.data == "":
        return None  # an empty payload counts as none in this shape
    if isinstance(part, Image):
        url = part.data_url if part.file_id is None else None
        fields = _filled(url=url, file_id=part.file_id, detail=part.detail)
        return {"type": "image_url", "image_url": fields}
    if isinstance(part, Audio) and part.data is not None:
        return {"type": "input_audio", "input_audio": {"data": part.data, "format": part.format}}
    if isinstance(part, File):
        data = part.data_url if part.data is not None else None
        fields = _filled(
            file_data=data, file_url=part.url, file_id=part.file_id, file_name=part.name
        )
        return {"type": "file", "file": fields}
    return None


def _is_custom(part: Opaque) -> bool:
    """Whether a part is as `_custom` creates it: no dialect, and nothing but its payload."""
    payload = part.payload if part.dialect == "canonical" and not part.extras else None
    return isinstance(payload, Mapping) and payload.get("type") == "custom"


def _filled(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None and value != ""}
