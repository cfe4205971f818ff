"""The parts of a message item and of a tool's output: text, refusals, images, files, sound."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.media import Audio, File, Image
from dragoman.model.parts import Opaque, Part, Refusal, Text
from dragoman.wire.openai_responses.caching import decode_cache, encode_cache
from dragoman.wire.openai_responses.citations import decode_annotations, encode_citation
from dragoman.wire.openai_responses.forms import (
    GOES_ON,
    ITEM,
    NAME,
    ORIGIN,
    Item,
    decode_form,
    encode_form,
)
from dragoman.wire.openai_responses.media import (
    decode_audio,
    decode_file,
    decode_image,
    encode_audio,
    encode_file,
    encode_image,
)
from dragoman.wire.overlay import reshaped
from dragoman.wire.tolerance import bare_text

_TEXT_TYPES = frozenset({"input_text", "output_text", "text"})
_NOTHING: Mapping[str, Any] = EMPTY
_NOT_CITING: Mapping[str, Any] = {"annotations": []}
_PART = "part"
_WHOLE = "$item"


def is_plain(part: Part) -> bool:
    """Whether a part is a text and nothing else: such a one may be written as a bare string."""
    return (
        type(part) is Text
        and not part.extras
        and not part.citations
        and part.cache is None
        and part.item_id is None
    )


# --- what is said to the model


def decode_inputs(content: list[Any], item_id: str | None) -> tuple[AnyPart, ...]:
    """The parts of a user's, system's or developer's message; the first carries the item's id."""
    parts: list[AnyPart] = []
    for wire in content:
        parts.append(
            _decode_bare(wire, item_id)
            if type(wire) is str
            else decode_input(wire, item_id) or unknown_part(wire, item_id)
        )
        item_id = None
    return tuple(parts)


def _decode_bare(text: str, item_id: str | None) -> Text:
    """A bare text among the parts."""
    part = bare_text(text, {"type": "input_text", "text": text}, NAME)
    return part if item_id is None else part.replace(item_id=item_id)


def decode_input(wire: Any, item_id: str | None = None) -> Text | Image | File | Audio | None:
    """A part that is said to the model, or that a tool returned; None if not understood."""
    if not isinstance(wire, dict):
        return None
    kind = wire.get("type")
    if kind == "input_text" and len(wire) == 2 and type(text := wire.get("text")) is str:  # noqa: PLR2004 - type and text
        return Text(text) if item_id is None else Text(text, item_id=item_id)
    if type(kind) is not str:
        return None
    if kind in _TEXT_TYPES:
        return _decode_text(wire, "input_text", item_id)
    decode = _INPUT_MEDIA.get(kind)
    return None if decode is None else decode(wire, item_id)


def encode_input(part: Part) -> dict[str, Any] | None:
    """A part that is said to the model, or that a tool returned; None where it has no place."""
    if isinstance(part, Text):
        body = encode_cache(part, _encode_text(part, "input_text", _NOTHING))
        return reshaped(body, part.extras, NAME)
    if isinstance(part, Image):
        return encode_image(part)
    if isinstance(part, File):
        return encode_file(part)
    if isinstance(part, Audio) and part.data is not None:
        return encode_audio(part)
    if isinstance(part, Refusal):
        return {"type": "input_text", "text": part.text}
    return None


_INPUT_MEDIA: dict[str, Callable[[dict[str, Any], str | None], Image | File | Audio | None]] = {
    "input_image": decode_image,
    "input_file": decode_file,
    "input_audio": decode_audio,
}


# --- what the model says


def decode_answer_parts(content: list[Any], item_id: str | None, item: Item) -> list[AnyPart]:
    """The parts of an assistant's message; the first carries the form of its item."""
    usual = _NOTHING if item_id is None else _NOT_CITING
    parts: list[AnyPart] = []
    for wire in content:
        part = _decode_answer_part(wire, item_id, usual, item)
        parts.append(part or unknown_part(wire, item_id, item))
        item = GOES_ON if item_id is None else None
    return parts


def _decode_answer_part(
    wire: Any, item_id: str | None, usual: Mapping[str, Any], item: Item
) -> AnyPart | None:
    if not isinstance(wire, dict) or type(kind := wire.get("type")) is not str or ITEM in wire:
        return None
    if kind in _TEXT_TYPES:
        return _decode_text(wire, "output_text", item_id, usual, item)
    if kind == "refusal" and type(words := wire.get("refusal")) is str:
        optional = {key: wire[key] for key in wire if key not in {"type", "refusal"}}
        return Refusal(words, item_id=item_id, extras=decode_form(optional, _NOTHING, item))
    return None


def encode_answer_part(part: Part, *, has_id: bool) -> dict[str, Any] | None:
    """A part that the model said; None where it has no place (W30)."""
    if isinstance(part, Text):
        return _encode_text(part, "output_text", _NOT_CITING if has_id else _NOTHING)
    if isinstance(part, Refusal):
        body = {"type": "refusal", "refusal": part.text, **encode_form(part.extras, _NOTHING)}
        body.pop(ITEM, None)
        return body
    return None


# --- text


def _decode_text(
    wire: dict[str, Any],
    own_type: str,
    item_id: str | None,
    usual: Mapping[str, Any] = _NOTHING,
    item: Item = None,
) -> Text | None:
    optional = dict(wire)
    text = optional.pop("text", None)
    if type(text) is not str or ITEM in wire:
        return None
    if wire["type"] == own_type:
        del optional["type"]
    citations = decode_annotations(optional.get("annotations"))
    if citations:
        del optional["annotations"]
        usual = _NOTHING
    cache = decode_cache(optional) if own_type == "input_text" else None
    extras = decode_form(optional, usual, item)
    return Text(text, citations, item_id=item_id, cache=cache, extras=extras)


def _encode_text(part: Text, own_type: str, usual: Mapping[str, Any]) -> dict[str, Any]:
    body = {"type": own_type, "text": part.text, **encode_form(part.extras, usual)}
    body.pop(ITEM, None)
    if part.citations:
        annotations = [encode_citation(citation) for citation in part.citations]
        body["annotations"] = [found for found in annotations if found is not None]
    return body


# --- what nobody knows yet


def unknown_part(wire: Any, item_id: str | None = None, item: Item = None) -> Opaque:
    """A part that is not understood, wrapped: a bare payload is an item of its own."""
    extras = EMPTY if item is None else decode_form(_NOTHING, _NOTHING, item)
    return Opaque(NAME, {_PART: wire}, item_id=item_id, origin=ORIGIN, extras=extras)


def is_unknown_part(payload: Any) -> bool:
    """Whether an opaque payload belongs into a message's content."""
    return isinstance(payload, Mapping) and payload.keys() == {_PART}


def opaque_item(item: Any) -> Any:
    """The payload of an item that is not understood; one that looks like a part is wrapped."""
    return {_WHOLE: item} if is_unknown_part(item) else item


def encode_opaque_item(payload: Any) -> Any:
    """The item as it came."""
    is_wrapped = isinstance(payload, Mapping) and payload.keys() == {_WHOLE}
    return payload[_WHOLE] if is_wrapped else payload


def encode_unknown_part(part: Opaque) -> Any:
    """The part as it came."""
    return part.payload[_PART]
