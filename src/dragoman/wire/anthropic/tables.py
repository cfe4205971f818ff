"""The blocks of messages as rows: which field of the wire is which field of the model."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Mapping
from functools import partial
from typing import Any

from msgspec import UNSET

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.jsontext import dumps
from dragoman.model.media import File, Image, Media, sniff_base64
from dragoman.model.parts import (
    CacheHint,
    Citation,
    Opaque,
    Part,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    Text,
    Thinking,
)
from dragoman.model.tools import ResultPart, ToolCall, ToolResult, make_call, make_result
from dragoman.wire.anthropic.dialect import NAME, Block
from dragoman.wire.cut_calls import is_left_out
from dragoman.wire.envelope import PREFIX
from dragoman.wire.overlay import fields_of, with_guesses
from dragoman.wire.reading import Reading
from dragoman.wire.rows import (
    ANY,
    FLAG,
    LIST,
    OBJECT,
    SILENT,
    TEXT,
    WHOLE,
    Row,
    Shape,
    Union,
    Value,
)
from dragoman.wire.shown_calls import MARK
from dragoman.wire.tolerance import Form, bare_text, readable_answer, with_original
from dragoman.wire.writing import Writing

_needed = partial(Row, is_required=True)

# --- values

_PLAIN_HINT = CacheHint()


def read_cache(control: Any) -> CacheHint | None:
    """Decode `cache_control`; None if it is unknown."""
    if not isinstance(control, dict) or control.get("type") != "ephemeral":
        return None
    ttl = control.get("ttl")
    return CacheHint(ttl) if type(ttl) is str else _PLAIN_HINT


def write_cache(hint: CacheHint) -> Block:
    """Encode a hint as `cache_control`."""
    return {"type": "ephemeral"} | ({} if hint.ttl is None else {"ttl": hint.ttl})


_HINT = Value(OBJECT.test, read_cache, write_cache, "an ephemeral cache control")
CACHE = Row("cache_control", "cache", _HINT)
"""The row of everything that may be cached."""


def _read_sealed(value: str, reading: Reading) -> str:
    """Decode an id, a signature or sealed data; other providers' are in an envelope or marked."""
    if value.startswith(PREFIX) or MARK in value:
        reading.has_envelopes = True
    return value


_SEALED = TEXT._replace(read=_read_sealed)
_sealed = partial(Row, value=_SEALED, is_required=True, deep=True)


# --- images and documents

_PDF = "application/pdf"
_TEXTUAL = ("text/", "application/json", "application/xml")
"""Types sent as plain text. All other documents must be PDF."""
_SOURCES = {"base64": {"data": "data", "media_type": "mime"}, "url": {"url": "url"},
            "file": {"file_id": "file_id"}}  # fmt: skip


def _may_send(media: Media, writing: Writing) -> str | None:
    if media.file_id is not None and writing.is_foreign(media):
        return "a file uploaded to another provider is left out"
    if isinstance(media, Image) and media.detail not in {None, "auto"}:
        writing.lose_field("detail", "image detail is not supported")
    return None


def _read_source(source: Block) -> dict[str, str] | None:
    """Decode a source to fields of `Media`; None if unknown."""
    form = _SOURCES.get(source["type"]) if type(source.get("type")) is str else None
    found = {ours: source.get(theirs) for theirs, ours in (form or {}).items()}
    return found if found and all(type(each) is str for each in found.values()) else None  # type: ignore[return-value]


def _write_source(media: Media, fallback: str = "image/png") -> Block:
    if media.data is not None:
        mime = media.mime
        if not mime or fallback != _PDF:
            found = sniff_base64(media.data) or ""
            if not mime or found.startswith("image/"):
                mime = found  # W65: the actual type of an image counts, not the declared one
        return {"type": "base64", "media_type": mime or fallback, "data": media.data}
    if media.url is not None:
        return {"type": "url", "url": media.url}
    return {"type": "file", "file_id": media.file_id}


def _read_document(source: Block) -> dict[str, str] | None:
    """Like `_read_source`; plain text becomes the bytes of a text file."""
    if source.get("type") != "text":
        return _read_source(source)
    written, mime = source.get("data"), source.get("media_type")
    if type(written) is not str or type(mime) is not str:
        return None
    data = b64encode(written.encode("utf-8", "surrogatepass")).decode("ascii")
    return {"data": data, "mime": mime}


def _write_document(file: File) -> Block:
    if file.data is not None and file.mime is not None and file.mime.startswith(_TEXTUAL):
        try:
            written = b64decode(file.data, validate=True).decode("utf-8", "surrogatepass")
        except (binascii.Error, ValueError):
            return _write_source(file, _PDF)
        return {"type": "text", "media_type": "text/plain", "data": written}
    return _write_source(file, _PDF)


_media = partial(Shape, NAME, keeps_origin=True, allows=_may_send)
_IMAGE_SOURCE = Value(OBJECT.test, _read_source, _write_source, "base64, a URL or a file")
_FILE_SOURCE = Value(OBJECT.test, _read_document, _write_document, "base64, a URL, a file or text")
IMAGE = _media("image", Image, _needed("source", "", _IMAGE_SOURCE), CACHE,
               fields=("data", "url", "file_id", "detail"))  # fmt: skip
DOCUMENT = _media("document", File, _needed("source", "", _FILE_SOURCE), Row("title", "name"),
                  CACHE, fields=("data", "url", "file_id"))  # fmt: skip
"""A document of blocks is opaque, since a file can't hold them."""


def _encode_file(file: File, writing: Writing) -> Any:
    """Encode a document block, or an image block if the file is an image."""
    mime = file.mime or _PDF
    is_binary = file.data is not None and mime != _PDF and not mime.startswith(_TEXTUAL)
    if not is_binary or writing.is_own(file):
        return DOCUMENT.write(file, writing)
    if mime.startswith("image/"):
        return IMAGE.body(file, writing)
    return writing.leave_out("only PDF and text documents can be sent inline")


# --- citations: locations in documents or web pages that a text refers to

Location = tuple[Shape[Citation], str | None]
"""One type of citation, and the anchor that makes it valid.

The anchor (an index into this very request, or an encrypted reference) means nothing in other
dialects and can't be made up (W71). It stays in the extras; a citation without it is left out.
"""


def _at(kind: str, anchor: str, *rows: Row) -> tuple[str, Location]:
    return kind, (Shape(NAME, kind, Citation, *rows, tag_field="kind"), anchor)


def _span(unit: str) -> tuple[Row, Row]:
    return Row(f"start_{unit}", "start", WHOLE), Row(f"end_{unit}", "end", WHOLE)


_TITLE, _QUOTE = Row("title", "title"), Row("cited_text", "quote")
_IN_DOCUMENT = "document_index", Row("document_title", "title"), _QUOTE
_SOURCE = "search_result_index", Row("source", "url"), _TITLE, _QUOTE
_FOUND, _SEAL = "web_search_result_location", "encrypted_index"
SHOWN = "dragoman"
"""Replaces the encrypted reference in another provider's citation shown to a client."""
LOCATIONS: dict[str, Location] = dict([
    _at("char_location", *_IN_DOCUMENT, *_span("char_index")),
    _at("page_location", *_IN_DOCUMENT, *_span("page_number")),
    _at("content_block_location", *_IN_DOCUMENT, *_span("block_index")),
    _at("search_result_location", *_SOURCE, *_span("block_index")),
    _at(_FOUND, _SEAL, Row("url", "url"), _TITLE, _QUOTE),
])  # fmt: skip
_UNKNOWN: Location = (Shape(NAME, None, Citation, _needed("type", "kind")), None)


def decode_citations(wire: list[Any]) -> tuple[Citation, ...] | None:
    """Decode the citations of a text; None unless there are some and all are well-formed."""
    if not wire or not all(map(_is_well_formed, wire)):
        return None
    return tuple([_decode_citation(item) for item in wire])


def encode_citations(
    citations: tuple[Citation, ...], writing: Writing, first: int = 0
) -> list[Block] | None:
    """Encode citations; those that the provider would refuse are left out; None if all are.

    `first` is the index of the first one in its text.
    """
    encoded: list[Block] = []
    for index, citation in enumerate(citations, first):
        place = f"citations[{index}]"
        shape, anchor = LOCATIONS.get(citation.kind, _UNKNOWN)
        ours = fields_of(citation.extras, NAME)
        if anchor in ours if anchor is not None else ours:
            encoded.append(shape.write(citation, writing))
            for name in shape.unsupported:
                if getattr(citation, name) is not None:
                    reason = "this citation type does not have this field"
                    writing.lose_field(f"{place}.{name}", reason)
        elif writing.is_response and citation.url is not None:
            encoded.append(_shown(citation))
        else:
            reason = "a citation whose source is not in this request is left out"
            writing.lose_field(place, reason)
    return encoded or None


def _is_well_formed(wire: Any) -> bool:
    kind = wire.get("type") if isinstance(wire, dict) else None
    if type(kind) is not str:
        return False
    _, anchor = LOCATIONS.get(kind, _UNKNOWN)
    return len(wire) > 1 if anchor is None else anchor in wire


def _shown(citation: Citation) -> Block:
    """Another dialect's URL citation in a form that clients can read, with a fake anchor."""
    return {
        "type": _FOUND,
        "url": citation.url,
        "title": citation.title,
        "cited_text": citation.quote or "",
        _SEAL: SHOWN,
    }


def _decode_citation(wire: Block) -> Citation:
    shape, anchor = LOCATIONS.get(wire["type"], _UNKNOWN)
    made: Any = shape.read(wire, SILENT)
    if anchor != _SEAL or wire[_SEAL] != SHOWN:
        return made  # type: ignore[no-any-return]  # it has a type, so it can be read
    url, title, quote = made.url or None, made.title or None, made.quote or None
    return Citation(kind="url", url=url, title=title, quote=quote)  # made by a front


# --- texts


def _without_signature(part: Part, writing: Writing) -> str | None:
    """Report the signature, which texts and calls have in other dialects, as lost."""
    if part.signature is not None:
        writing.lose_here("another provider's signature is left out")
    return None


_CITATIONS = Value(LIST.test, decode_citations, encode_citations, "a list of citations", exact=True)
TEXT_BLOCK = Shape(
    NAME, "text", Text,
    _needed("text", "text", grows="text_delta.text"),
    Row("citations", "citations", _CITATIONS, grows="citations_delta.citation", reports=True),
    CACHE,
    keeps_origin="citations", allows=_without_signature, fields=("signature",),
)  # fmt: skip
"""Citations hold encrypted references, so a cited text keeps its origin (W71)."""


def _encode_refusal(part: Refusal, writing: Writing) -> Any:
    """Encode a refusal as text: requests have no refusals, and can't have empty turns (I15)."""
    writing.lose_here("a refusal is sent as text")
    return TEXT_BLOCK.write(Text(part.text, cache=part.cache, extras=part.extras), writing)


# --- thinking: signed or redacted

EITHER = "a block is readable or redacted"


def _may_send_thinking(part: Thinking, writing: Writing) -> str | None:
    """Whether thinking is signed by this provider; other thinking would be refused (W54)."""
    is_sealed = part.signature is not None or part.data is not None
    if not (writing.is_own(part) or (is_sealed and not writing.is_foreign(part))):
        return "thinking not signed by this provider is left out"
    if part.data is not None and (part.text or part.signature is not None):
        writing.lose_here(f"{EITHER}: the readable text of redacted thinking is left out")
    return None


_thinking = partial(Shape, NAME, keeps_origin=True, allows=_may_send_thinking)
THINKING = _thinking(
    "thinking", Thinking,
    _needed("thinking", "text", grows="thinking_delta.thinking"),
    Row("signature", "signature", _SEALED, deep=True, grows="signature_delta.signature",
        is_last=True),
    fields=("form", "data"), fits=lambda part: part.data is None,
)  # fmt: skip
"""Some servers omit the signature."""
REDACTED = _thinking(
    "redacted_thinking", Thinking, _sealed("data", "data"), given={"form": "'redacted'"},
    fields=("text", "signature"),
)  # fmt: skip
"""Only the provider can read it; it must still be sent back (W57)."""


# --- calls of client tools

TEXT_ARGUMENT = "input"
"""The argument that holds arguments that are not a JSON object (W45, I6)."""
NOT_AN_OBJECT = f"arguments that are not a JSON object are sent as text, in {TEXT_ARGUMENT!r}"
_NAME = _needed("name", "name")
_INPUT = _needed("input", "input", OBJECT, grows="input_json_delta.partial_json")


def _made_call(r: Reading, name: str, wire_id: str | None = None, **fields: Any) -> ToolCall:
    call_id, kept = r.calls.add_call(name, wire_id, fields["input"])
    origin = None if kept is UNSET else r.origin  # whose id it is must be known
    return make_call(call_id, name, wire_id=kept, origin=origin, **fields)


def _may_send_call(call: ToolCall, writing: Writing) -> str | None:
    """Whether a call was not cut off (I7)."""
    if writing.is_response and is_left_out(call, call.object_arguments(), writing):
        return ""
    return _without_signature(call, writing)


def _write_id(call: ToolCall, writing: Writing) -> str:
    if call.wire_id is UNSET or call.wire_id is None or not writing.is_own(call):
        return call.id
    writing.wire_ids[call.id] = call.wire_id
    return call.wire_id


def _write_arguments(call: ToolCall, writing: Writing) -> Mapping[str, Any]:
    arguments = call.object_arguments()
    if arguments is not None:
        return arguments
    writing.repair_here("I6", "retyped", NOT_AN_OBJECT)
    return {TEXT_ARGUMENT: call.raw_arguments}


_ARGUMENTS = OBJECT._replace(write=_write_arguments, exact=True)
_ID = _needed("id", "wire_id", TEXT._replace(write=_write_id, exact=True), reports=True,
              takes_owner=True)  # fmt: skip
_UNNUMBERED = (_NAME, _INPUT._replace(value=_ARGUMENTS, reports=True, takes_owner=True), CACHE)
_call = partial(Shape, NAME, "tool_use", ToolCall, make=_made_call, given={"r": "r"},
                allows=_may_send_call, fields=("id", "raw", "kind", "signature"))  # fmt: skip


def _decode_call(block: Block, reading: Reading) -> Any:
    if "input" not in block:
        return decode_with(block, "input", {}, reading)
    return (_NUMBERED if block.get("id") is not None else _CALL_WITHOUT_ID).read(block, reading)


def _encode_call(call: ToolCall, writing: Writing) -> Any:
    has_id = call.wire_id is not None or not writing.is_own(call)
    return (CALL if has_id else _CALL_WITHOUT_ID).write(call, writing)


CALL = _NUMBERED = _call(_ID, *_UNNUMBERED, reads=_decode_call)
_CALL_WITHOUT_ID = _call(*_UNNUMBERED)


# --- results of client tools

_FORM = Form(NAME, {})


def _made_result(
    call_id: str, content: str | tuple[ResultPart, ...] = (), **more: Any
) -> ToolResult:
    """Missing content is an empty tuple, which differs from an empty text."""
    return make_result(call_id, content, **more)


def _read_call_id(wire_id: str, reading: Reading) -> str:
    return reading.calls.answer(wire_id) or ""


def _write_call_id(call_id: str, writing: Writing) -> str | None:
    return writing.wire_ids.get(call_id, call_id) if writing.wire_ids else call_id


def _read_content(
    content: str | list[Any], reading: Reading
) -> str | tuple[ResultPart, ...] | None:
    """Decode the content; an empty list is not read, since it is written as nothing."""
    said = content if isinstance(content, str) else text_or_blocks(content)
    if isinstance(said, str):
        return said
    return tuple([_decode_inner(block, reading) for block in said]) or None


def _write_content(result: ToolResult, writing: Writing) -> str | list[Any] | None:
    content = result.content
    if not content and result.data is not UNSET:
        return dumps(result.data).decode("utf-8")
    return content if isinstance(content, str) else encode_content(content, writing)


def _decode_inner(block: Any, reading: Reading) -> ResultPart:
    """Decode a block inside a tool result."""
    shape = IN_RESULTS.shape_of(block)
    return decode_unknown(block, reading) if shape is None else shape.read(block, reading)


def encode_content(parts: tuple[ResultPart, ...], writing: Writing) -> str | list[Any] | None:
    """Encode the content of a tool result; unsupported parts are left out."""
    if not parts:
        return None
    blocks: list[Any] = []
    for writing.item, part in enumerate(parts):
        block = IN_RESULTS.write(part, writing)
        if block is not UNSET:
            blocks.append(block)
    writing.item = None
    return text_or_blocks(blocks)


def _decode_result(block: Block, reading: Reading) -> Any:
    """Decode a result; one with content of another type is made readable."""
    content = block.get("content")
    is_fine = content is None or isinstance(content, (str, list))
    if is_fine or not isinstance(block.get("tool_use_id"), str):
        return RESULT.read(block, reading)
    made, guesses = readable_answer(block, _FORM)
    result: Any = RESULT.read(made, reading)
    return result.replace(extras=with_guesses(result.extras, NAME, guesses))


_CALL_ID = TEXT._replace(read=_read_call_id, write=_write_call_id, exact=True)
_CONTENT = Value("isinstance(v, (str, list))", _read_content, _write_content,
                 "a string or a list of blocks", exact=True)  # fmt: skip
RESULT = Shape(
    NAME, "tool_result", ToolResult,
    _needed("tool_use_id", "call_id", _CALL_ID, deep=True),
    Row("content", "content", _CONTENT, deep=True, takes_owner=True),
    Row("is_error", "is_error", FLAG), CACHE,
    make=_made_result, reads=_decode_result, fields=("data", "kind"),
)  # fmt: skip


# --- calls and results of server tools, including MCP servers

RESULT_SUFFIX = "_tool_result"
"""The ending of all result types: `web_search_tool_result`, `mcp_tool_result`, …"""
_MCP = "mcp"


def _may_send_server_call(call: ServerToolCall, writing: Writing) -> str | None:
    """Whether this provider made the call (W71)."""
    if writing.is_foreign(call) or call.call_id is None:
        return "a call of another provider's built-in tool is left out"
    return None


def _may_send_server_result(result: ServerToolResult, writing: Writing) -> str | None:
    if writing.is_foreign(result) or result.call_id is None:
        return "the result of another provider's built-in tool is left out"
    is_told = result.name == _MCP and result.is_error is not None
    if not is_told and bool(result.is_error) is not bool(_is_error(result.content)):
        reason = "the error flag is not supported; the content tells whether it failed"
        writing.lose_field("is_error", reason)
    return None


def _is_error(content: Any) -> bool | None:
    """Whether the content is an error object, recognised by the ending of its type."""
    kind = content.get("type") if isinstance(content, dict) else None
    return True if type(kind) is str and kind.endswith("_error") else None


def _made_server_result(
    name: str, call_id: str, content: Any = None, **more: Any
) -> ServerToolResult:
    return ServerToolResult(name, call_id, content, _is_error(content), **more)


_OBJECT_ONLY = OBJECT._replace(write=lambda v: v if isinstance(v, dict) else {}, exact=True)
_KIND = TEXT._replace(
    read=lambda kind: kind.removesuffix(RESULT_SUFFIX),
    write=lambda name: name + RESULT_SUFFIX,
    exact=True,
)
_SERVER_CALL = (_sealed("id", "call_id"), _NAME, _INPUT._replace(value=_OBJECT_ONLY))
_SERVER_RESULT = (_sealed("tool_use_id", "call_id"), Row("content", "content", ANY))
_server_call = partial(Shape, NAME, keeps_origin=True, allows=_may_send_server_call)
_server_result = partial(Shape, NAME, keeps_origin=True, allows=_may_send_server_result)
SERVER_CALL = _server_call(
    "server_tool_use", ServerToolCall, *_SERVER_CALL, CACHE, fields=("server",),
    fits=lambda call: call.server is None,
)  # fmt: skip
MCP_CALL = _server_call(
    "mcp_tool_use", ServerToolCall, *_SERVER_CALL, _needed("server_name", "server"), CACHE
)
MCP_RESULT = _server_result(
    _MCP + RESULT_SUFFIX, ServerToolResult,
    *_SERVER_RESULT, Row("is_error", "is_error", FLAG), CACHE,
    given={"name": f"{_MCP!r}"}, fits=lambda result: result.name == _MCP,
)  # fmt: skip
SERVER_RESULT = _server_result(
    None, ServerToolResult, _needed("type", "name", _KIND), *_SERVER_RESULT, CACHE,
    make=_made_server_result, fields=("is_error",),
)  # fmt: skip
"""The result of a server tool, kept whole because much of it is encrypted."""


# --- what may stand where

IN_RESULTS = Union(
    NAME, TEXT_BLOCK, IMAGE, DOCUMENT, writers={File: _encode_file, Refusal: _encode_refusal}
)
BLOCKS = Union(
    NAME,
    TEXT_BLOCK, IMAGE, DOCUMENT, THINKING, REDACTED, CALL, RESULT, SERVER_CALL, MCP_CALL,
    MCP_RESULT, SERVER_RESULT,
    writers={File: _encode_file, Refusal: _encode_refusal, ToolCall: _encode_call},
    other=lambda tag: SERVER_RESULT if tag.endswith(RESULT_SUFFIX) else None,
)  # fmt: skip
_TELLING = {"text": "text", "thinking": "thinking", "tool_use": "input"}
"""Types of blocks by the field that only they have."""
_BARE = 2  # fields of a text block: its type and its text


def decode_part(block: Any, reading: Reading) -> AnyPart:
    """Decode a content block of any type; unknown types become opaque parts."""
    shape = BLOCKS.shape_of(block)
    if shape is not None:
        part: AnyPart = (shape.reads or shape.read)(block, reading)
        return part
    if isinstance(block, dict) and "type" not in block:
        for kind, field in _TELLING.items():  # if its other fields tell what it is
            if isinstance(block.get(field), (str, dict)):
                return decode_with(block, "type", kind, reading)
    return decode_unknown(block, reading)


def decode_with(block: Block, key: str, value: Any, reading: Reading) -> AnyPart:
    """Decode a block that lacks a field, as if it had this value."""
    part = decode_part({**block, key: value}, reading)
    if type(part) is Opaque:
        return Opaque(NAME, block, origin=reading.origin)
    return with_original(part, NAME, [[[key], value]])


def decode_unknown(block: Any, reading: Reading) -> Text | Opaque:
    """Decode a bare string among the blocks, or a block of unknown type."""
    if type(block) is str:
        return bare_text(block, {"type": "text", "text": block}, NAME)
    return Opaque(NAME, block, origin=reading.origin)


def encode_parts(parts: tuple[AnyPart, ...], writing: Writing, first: int = 0) -> list[Any]:
    """Encode parts as content blocks; unsupported parts are left out."""
    blocks: list[Any] = []
    for writing.part, part in enumerate(parts, first):
        block = BLOCKS.write(part, writing)
        if block is not UNSET:
            blocks.append(block)
    return blocks


def text_or_blocks(blocks: list[Any]) -> str | list[Any]:
    """A single plain text block as a string, else the blocks: the normal form of content."""
    if len(blocks) != 1 or not isinstance(block := blocks[0], dict):
        return blocks
    if len(block) != _BARE or block.get("type") != "text":
        return blocks
    value = block.get("text")
    return value if type(value) is str else blocks


def is_plain(part: Part) -> bool:
    """Whether a part is a text without any other fields."""
    return (
        type(part) is Text
        and part.extras is EMPTY
        and part.cache is None
        and part.signature is None
        and not part.citations
    )
