"""Items and their parts as rows: which field of the wire is which field of the model.

An item is a message or reasoning, which hold parts (`layout`), or a part itself: a call, a result,
or an item of a built-in tool (`tables_built_in`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Literal, TypeGuard

from msgspec import UNSET, UnsetType

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY, FrozenDict, freeze_mapping
from dragoman.model.media import Audio, File, Image, audio_mime
from dragoman.model.parts import (
    CacheHint,
    Citation,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
)
from dragoman.model.tools import ResultPart, ToolCall, ToolResult, make_call, make_result
from dragoman.wire.call_ids import CallIds
from dragoman.wire.fitting.tools import NO_ARGUMENTS, is_blank
from dragoman.wire.foreign_extras import foreign_fields
from dragoman.wire.openai_responses.dialect import NAME, ORIGIN
from dragoman.wire.openai_responses.forms import BARE, COMPLETED, Formed, form_of
from dragoman.wire.overlay import with_guesses
from dragoman.wire.reading import Reading
from dragoman.wire.rows import SILENT, TEXT, WHOLE, Row, Union, Value
from dragoman.wire.target import Target
from dragoman.wire.tolerance import with_original
from dragoman.wire.writing import Writing

NOT_SUPPORTED = "not supported by this dialect"
needed = partial(Row, is_required=True)
exactly = partial(Value, exact=True)


class ItemReading(Reading):
    """The state of a decoder, with the id of the item that it reads."""

    __slots__ = ("item_id",)

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.item_id: str | None = None


class ItemWriting(Writing):
    """The state of an encoder, with the id of the item that it writes."""

    __slots__ = ("item_id", "wire_id")

    item_id: str | None
    wire_id: str | None
    """The id of the call that it writes."""

    def is_ours(self, part: Part) -> bool:
        """Whether a part's opaque state may be sent back to the target."""
        origin = self.origin_of(part)
        return origin is not None and self.target.has_made(origin)


_OUTSIDE = ItemReading(None, CallIds())
"""For parts that no item holds."""


# --- citations: the annotations of a text

_TITLES = {
    "url_citation": "title",
    "file_citation": "filename",
    "container_file_citation": "filename",
    "file_path": "filename",
}


def _marked(extras: FrozenDict, **fields: Any) -> Citation:
    """A citation of a kind that only this dialect has: an overlay, even if empty, marks it."""
    return Citation(extras=extras or BARE, **fields)


def _cited(title: str, *rows: Row, **hooks: Any) -> Formed[Citation]:
    span = Row("start_index", "start", WHOLE), Row("end_index", "end", WHOLE)
    return Formed(hooks.pop("tag", None), Citation, *rows, Row("url", "url"), Row(title, "title"),
                  *span, **hooks)  # fmt: skip


_OTHER = _cited("title", needed("type", "kind"), make=_marked)
_CITATIONS = Union(
    NAME,
    *(_cited(title, tag=kind, given={"kind": repr(kind)}) for kind, title in _TITLES.items()),
    other=lambda _kind: _OTHER,
)


def read_citations(wire: list[Any]) -> tuple[Citation, ...] | None:
    """Decode annotations; None if any is unknown, so that all stay together."""
    found = tuple([_CITATIONS.read(each, SILENT) for each in wire])
    return found if found and all(type(each) is Citation for each in found) else None


def write_citation(citation: Citation) -> dict[str, Any] | None:
    """Encode a citation as an annotation; None if it is not supported."""
    shape = _CITATIONS.by_tag.get(citation.kind)
    if shape is not None or NAME in citation.extras:
        return (shape or _OTHER).write(citation, SILENT)  # type: ignore[no-any-return]  # an object
    if citation.url is None:
        return None
    return {
        "type": "url_citation",
        "url": citation.url,
        "title": citation.title or citation.url,
        "start_index": citation.start or 0,
        "end_index": citation.end or 0,
    }


def _write_citations(citations: tuple[Citation, ...], writing: Writing) -> list[Any]:
    written: list[Any] = []
    for number, citation in enumerate(citations):
        wire = write_citation(citation)
        if wire is None:
            writing.lose_field("citations", NOT_SUPPORTED)
            continue
        written.append(wire)
        if citation.quote is not None:
            writing.lose_field(f"citations[{number}].quote", NOT_SUPPORTED)
        for source, _ in foreign_fields(citation.extras, NAME):
            writing.lose_field(f"citations[{number}].extras", f"only supported by {source}")
    return written


# --- cache hints: breakpoints of the prompt cache

_TTLS = ("30m", "12h")


def _write_cache(hint: CacheHint, writing: Writing) -> dict[str, Any]:
    if hint.ttl is not None and hint.ttl not in _TTLS:
        writing.lose_field("cache.ttl", NOT_SUPPORTED)
    return {"mode": "explicit"} | ({"ttl": hint.ttl} if hint.ttl in _TTLS else {})


_HINT = exactly(
    "isinstance(v, dict) and v.keys() <= {'mode', 'ttl'} and v.get('mode') == 'explicit'"
    f" and v.get('ttl', '30m') in {_TTLS}",
    lambda wire: CacheHint(wire.get("ttl")), _write_cache, "an explicit breakpoint",
)  # fmt: skip
_CACHE = Row("prompt_cache_breakpoint", "cache", _HINT, reports=True)


# --- texts and refusals

ITEM: Final = "item"
"""The overlay key, in an item's first part, for the form of the item itself."""
CONTINUES: Final = False
"""The value of that key in later parts, if the item has no id that they share."""
ItemForm = Mapping[str, Any] | Literal[False] | None
_OF_ITEM = {"item_id": "r.item_id"}
_NOT_CITING: Mapping[str, Any] = {"annotations": []}
_ANNOTATIONS = Row("annotations", "citations", exactly(
    "isinstance(v, list)", read_citations, _write_citations, "a list of citations"), reports=True,
)  # fmt: skip
_INPUT_TEXT = Formed("input_text", Text, needed("text", "text"), _ANNOTATIONS, _CACHE,
                     given=_OF_ITEM, apart=ITEM)  # fmt: skip
_OUTPUT_TEXT = Formed(
    "output_text", Text, needed("text", "text", grows="response.output_text.delta"), _ANNOTATIONS,
    given=_OF_ITEM, apart=ITEM, usual=_NOT_CITING, reads_usual="r.item_id is not None",
    writes_usual=lambda _part, writing: writing.item_id is not None,
)  # fmt: skip
_REFUSAL = Formed(
    "refusal", Refusal, needed("refusal", "text", grows="response.refusal.delta"),
    given=_OF_ITEM, apart=ITEM, fields=("cache",),
)  # fmt: skip


def with_item(part: Any, item: ItemForm) -> Any:
    """The part with the form of the item that begins with it, if unusual; or `CONTINUES`."""
    if item is None:
        return part
    cites_nothing = type(part) is Text and part.item_id is not None and not part.citations
    form = form_of(part.extras, _NOT_CITING if cites_nothing else EMPTY)
    form = freeze_mapping({**form, ITEM: item}, "the wire")
    return part.replace_unchecked(extras=FrozenDict({**part.extras, NAME: form}))


def item_form(part: Part) -> Mapping[str, Any] | None:
    """The form of the item that begins with this part, if it is unusual."""
    form: Any = form_of(part.extras).get(ITEM) if part.extras else None
    return form if isinstance(form, dict) else None


def continues_item(part: Part) -> bool:
    """Whether a part is marked as belonging to the same item as the previous one."""
    return form_of(part.extras).get(ITEM) is CONTINUES


# --- images, files and audio: a data URL, a URL, or an uploaded file's id


def _split(url: str) -> dict[str, Any] | None:
    """MIME type and base64 of a data URL that we would encode the same way, else None."""
    header, comma, data = url.partition(",")
    mime = header.removeprefix("data:").removesuffix(";base64")
    is_data = header == f"data:{mime};base64" and comma and mime and ";" not in mime
    return {"data": data, "mime": mime} if is_data else None


def _read_media(wire: dict[str, Any], reading: Reading) -> Any:
    """Decode an image or file, which has exactly one source."""
    found = [each for each in _MEDIA if each.tag == wire["type"]
             and wire.get(each.rows[0].wire) is not None]  # fmt: skip
    return found[0].read(wire, reading) if len(found) == 1 else Opaque(NAME, wire)


def _media(kind: type[Any], key: str, read: Any, write: Any, *rows: Row, **hooks: Any) -> Any:
    source = needed(key, "", exactly(TEXT.test, read, write, "a URL, base64 or an id"))
    return Formed(f"input_{kind.__name__.lower()}", kind, source, *rows, Row("detail", "detail"),
                  _CACHE, given=_OF_ITEM, reads=_read_media, fields=("data", "url", "file_id"),
                  **hooks)  # fmt: skip


_uploaded = {"read": lambda found: {"file_id": found, "origin": ORIGIN},
             "write": lambda media: media.file_id}  # fmt: skip
_image = partial(_media, Image, usual={"detail": "auto"})  # required by the types
_file = partial(_media, File)
_FILE_NAME = Row("filename", "name")
_MEDIA = (
    _image("file_id", _uploaded["read"], _uploaded["write"],
           fits=lambda image: image.file_id is not None),
    _image("image_url", lambda url: _split(url) or {"url": url}, lambda image: image.data_url),
    _file("file_id", _uploaded["read"], _uploaded["write"], _FILE_NAME,
          fits=lambda file: file.file_id is not None),
    _file("file_url", lambda url: {"url": url}, lambda file: file.url, _FILE_NAME,
          fits=lambda file: file.url is not None),
    _file("file_data", lambda data: _split(data) or (None if data.startswith("data:") else
          {"data": data}), lambda file: file.data if file.mime is None else file.data_url,
          _FILE_NAME, usual={"filename": "file"}),
)  # fmt: skip
"""Inline data of a file requires a file name."""


def _read_audio(wire: dict[str, Any]) -> dict[str, Any] | None:
    """Decode audio; None if its format is not one that we would encode the same way."""
    mime = audio_mime(wire["format"])
    is_known = Audio(data=wire["data"], mime=mime).format == wire["format"]
    return {"data": wire["data"], "mime": mime} if is_known else None


_SOUND = exactly(
    "isinstance(v, dict) and v.keys() == {'data', 'format'}"
    " and all(type(each) is str for each in v.values())",
    _read_audio, lambda audio: {"data": audio.data, "format": audio.format}, "data and a format",
)  # fmt: skip
_AUDIO = Formed(
    "input_audio", Audio, needed("input_audio", "", _SOUND), given=_OF_ITEM,
    fields=("data", "mime", "url", "file_id"),
    allows=lambda audio, _writing: NOT_SUPPORTED if audio.data is None else None,
)  # fmt: skip


# --- what may stand in a content


def _write_refusal(part: Refusal, writing: Writing) -> dict[str, Any]:
    if writing.item is None:  # a tool's output is never one
        writing.lose_here("a refusal is sent as text")
    return {"type": "input_text", "text": part.text}


INPUTS = Union(NAME, _INPUT_TEXT, *_MEDIA, _AUDIO, writers={Refusal: _write_refusal})
"""The parts of a user, system or developer message, or of a tool's output."""
INPUTS.by_tag |= {"text": _INPUT_TEXT, "output_text": _INPUT_TEXT}
OUTPUTS = Union(NAME, _OUTPUT_TEXT, _REFUSAL)
"""The parts of an assistant message (W30)."""
OUTPUTS.by_tag |= {"text": _OUTPUT_TEXT, "input_text": _OUTPUT_TEXT}
_TELLING = {"text": "output_text", "refusal": "refusal"}
"""Types of an assistant's parts by the field that only they have."""
_PART, _WHOLE = "part", "$item"


def decode_input(wire: Any, reading: ItemReading) -> AnyPart | None:
    """Decode a part of an input message; None if it is unknown."""
    part: Any = INPUTS.read(wire, reading)
    return None if type(part) is Opaque else part


def decode_outside(wire: Any) -> AnyPart | None:
    """Decode a part of a tool's output; None if it is unknown."""
    return decode_input(wire, _OUTSIDE)


def decode_output(wire: Any, reading: ItemReading) -> AnyPart | None:
    """Decode a part of an assistant message; None if it is unknown."""
    if isinstance(wire, dict) and "type" not in wire:
        made = next((_TELLING[key] for key in _TELLING if type(wire.get(key)) is str), None)
        part = None if made is None else decode_output({**wire, "type": made}, reading)
        return None if part is None else with_original(part, NAME, [[["type"], made]])
    found: Any = OUTPUTS.read(wire, reading)
    return None if type(found) is Opaque else found


def unknown_part(wire: Any, item_id: str | None) -> Opaque:
    """Wrap an unknown part: a bare payload would be a separate item."""
    return Opaque(NAME, {_PART: wire}, item_id=item_id, origin=ORIGIN)


def is_unknown_part(payload: Any) -> bool:
    """Whether an opaque payload is a content part."""
    return isinstance(payload, Mapping) and payload.keys() == {_PART}


def opaque_item(item: Any) -> Any:
    """The payload of an unknown item; wrapped if it looks like a part."""
    return {_WHOLE: item} if is_unknown_part(item) else item


def payload_of(part: Opaque) -> Any:
    """The original of an unknown part or item."""
    payload = part.payload
    for key in (_PART, _WHOLE) if isinstance(payload, Mapping) and len(payload) == 1 else ():
        if key in payload:
            return payload[key]
    return payload


def is_plain(part: Part) -> TypeGuard[Text]:
    """Whether a part is a text without any other fields, which may be sent as a string."""
    return (
        type(part) is Text
        and not part.extras
        and not part.citations
        and part.cache is None
        and part.item_id is None
    )


# --- reasoning: each summary and each reasoning text of an item is a part


def _thought(form: str, tag: str, grows: str) -> Formed[Thinking]:
    given = {**_OF_ITEM, "form": repr(form), "origin": "r.origin"}
    return Formed(tag, Thinking, needed("text", "text", grows=grows), given=given, apart=ITEM,
                  fields=("data", "signature"))  # fmt: skip


THOUGHTS = {
    "summary": _thought("summary", "summary_text", "response.reasoning_summary_text.delta"),
    "full": _thought("full", "reasoning_text", "response.reasoning_text.delta"),
}


# --- calls of the developer's tools (W20), and their results

_ITS_ID = exactly(TEXT.test, None, lambda _part, writing: writing.item_id, "an id")
_ID = Row("id", "item_id", _ITS_ID, reports=True, takes_owner=True)


def _made_call(
    r: Reading, name: str, raw: str, wire_id: str | None = None, **more: Any
) -> ToolCall:
    call_id, kept = r.calls.add_call(name, wire_id, raw)
    origin = None
    if kept is not UNSET:
        origin = ORIGIN  # the original id is only for this dialect
    elif more["kind"] == "function" and is_blank(raw):
        origin = r.origin  # so that missing arguments are restored unchanged
    return make_call(call_id, name, raw, wire_id=kept, origin=origin, **more)


def _write_arguments(call: ToolCall, writing: ItemWriting) -> str:
    raw = call.raw_arguments
    # Other dialects' calls without arguments get an empty object, unless truncated (I7).
    may_fill = call.kind == "function" and not writing.is_ours(call) and not writing.is_cut_off
    return NO_ARGUMENTS if may_fill and is_blank(raw) else raw


def _decode_without(key: str) -> Callable[[dict[str, Any], Reading], Any]:
    """A reader for calls, which some servers send without arguments."""

    def decode(wire: dict[str, Any], reading: Reading) -> Any:
        shape = ITEMS.by_tag[wire["type"]]
        if key in wire:
            return shape.read(wire, reading)
        call: Any = shape.read({**wire, key: ""}, reading)
        if type(call) is Opaque:
            return shape.unread(wire, reading)
        extras = with_guesses(call.extras, NAME, [[[key], ""]])
        return call.replace_unchecked(origin=ORIGIN, extras=extras)

    return decode


def _wire_id(part: Any, writing: ItemWriting) -> str | None:
    if type(part) is ToolCall:
        return writing.wire_id
    return writing.wire_ids.get(part.call_id, part.call_id)


_CALL_ID = Row("call_id", "wire_id", exactly(TEXT.test, None, _wire_id, "an id"), reports=True,
               takes_owner=True)  # fmt: skip


def _call(kind: str, tag: str, key: str, grows: str) -> Formed[ToolCall]:
    arguments = exactly(TEXT.test, None, _write_arguments, TEXT.about)
    return Formed(
        tag, ToolCall, needed("name", "name"),
        needed(key, "raw", arguments, reports=True, takes_owner=True, grows=grows), _CALL_ID, _ID,
        make=_made_call, given={"r": "r", "kind": repr(kind)}, reads=_decode_without(key),
        fields=("id", "input", "cache"),
        usual=COMPLETED, reads_usual="'item_id' in f",
        writes_usual=lambda _call, writing: writing.item_id is not None,
    )  # fmt: skip


CALL_SHAPES = {
    "function": _call("function", "function_call", "arguments",
                      "response.function_call_arguments.delta"),
    "custom": _call("custom", "custom_tool_call", "input",
                    "response.custom_tool_call_input.delta"),
}  # fmt: skip


def wire_id_of(call: ToolCall, target: Target) -> str | None:
    """The original wire id, if this target created it and would accept it (W22)."""
    had = call.wire_id
    if isinstance(had, UnsetType) or (had and not target.ids.accepts(had)):
        return call.id
    return call.id if had is None and target.state.verifies_items else had


def _made_result(
    r: Reading, content: Any, wire_id: str | None = None, **more: Any
) -> ToolResult | None:
    call_id = r.calls.answer(wire_id)
    return None if call_id is None else make_result(call_id, content, **more)


def _read_content(wire: Any) -> str | tuple[ResultPart, ...]:
    if isinstance(wire, str):
        return wire
    parts: Any = [decode_outside(part) or Opaque(NAME, part, origin=ORIGIN) for part in wire]
    return parts[0].text if len(parts) == 1 and is_plain(parts[0]) else tuple(parts)


def _write_content(result: ToolResult, writing: Writing) -> str | list[Any]:
    content = result.content
    if isinstance(content, str) or (len(content) == 1 and is_plain(content[0])):
        return result.text
    written: list[Any] = []
    part: Any
    for writing.item, part in enumerate(content):
        is_unknown = isinstance(part, Opaque) and part.dialect == NAME
        body = part.payload if is_unknown else write_part(INPUTS, part, writing)
        if body is not UNSET:
            written.append(body)
    writing.item = None
    return written


def write_part(union: Union, part: Part, writing: Writing) -> Any:
    """Encode a part of a content; `UNSET` if it is not supported."""
    if isinstance(part, Opaque) and part.dialect == NAME:
        return payload_of(part)
    if type(part) not in union.by_kind:
        return writing.leave_out(NOT_SUPPORTED)
    return union.write(part, writing)


def failed(word: str) -> Row:
    """A status that tells that a call failed."""
    value = exactly(TEXT.test, lambda found: True if found == word else None,
                    lambda has, _writing: word if has else None, "a status")  # fmt: skip
    return Row("status", "is_error", value, reports=True)


def _result(kind: str, tag: str, *rows: Row, **given: str) -> Formed[ToolResult]:
    content = exactly("isinstance(v, (str, list))", _read_content, _write_content,
                     "a string or a list of parts")  # fmt: skip
    return Formed(
        tag, ToolResult, needed("output", "content", content, reports=True, takes_owner=True),
        _CALL_ID, _ID, *rows, make=_made_result, given={"r": "r", "kind": repr(kind), **given},
        fields=("call_id", "data", "cache"),
    )  # fmt: skip


RESULT_SHAPES = {
    "function": _result("function", "function_call_output", failed("incomplete")),
    # W31: outputs have no error field, and those of custom tools not even a status.
    "custom": _result("custom", "custom_tool_call_output",
                      is_error="True if w.get('status') == 'incomplete' else None"),
}  # fmt: skip


ITEMS = Union(NAME, *CALL_SHAPES.values(), *RESULT_SHAPES.values())
"""The items of the developer's tools."""
