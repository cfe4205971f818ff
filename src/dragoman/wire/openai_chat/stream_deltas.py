"""Contents of stream deltas: thinking, pieces of calls, and unknown fields."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from dragoman.model.events import PartDelta
from dragoman.model.frozen import FrozenDict
from dragoman.model.jsontext import dumps
from dragoman.model.parts import Opaque, Thinking
from dragoman.model.tools import ToolCallDelta
from dragoman.wire.json_values import is_integer, is_list, is_object
from dragoman.wire.lane.templates import Growth
from dragoman.wire.openai_chat.dialect import BLOCKS, DETAILS, NAME
from dragoman.wire.openai_chat.thinking import (
    CONTENT_OF,
    TEXT_FIELDS,
    decode_detail,
    text_words,
    with_copy_in,
)
from dragoman.wire.openai_chat.tools import ARGUMENTS, decode_signature, encode_signature
from dragoman.wire.overlay import extras_of, with_overlay, words_of
from dragoman.wire.rows import SILENT
from dragoman.wire.stream_decoding import PartEvents

THINKING = frozenset({*TEXT_FIELDS, DETAILS})
_KNOWN = frozenset({"index", "id", "type", "function", "custom"})
_NO_CALL = object()


# --- unknown fields


class UnknownFields:
    """Collects unknown fields, and known ones while they are null or empty.

    Chunks repeat fields, so the last value counts. Objects are merged (Groq sends `x_groq` in two
    halves), and null never overrides a value.
    """

    __slots__ = ("_extras", "_fields", "_filled")

    def __init__(self) -> None:
        self._fields: dict[str, Any] = {}
        self._filled: set[str] = set()
        self._extras: FrozenDict | None = None  # cached until something changes

    def keep(self, key: str, value: Any) -> None:
        """Keep a field of a chunk."""
        fields = self._fields
        if value is None:
            if key not in fields:
                self._extras = fields[key] = None
            return
        self._extras = None
        known = fields.get(key)
        if key == BLOCKS:
            fields[key] = _joined_blocks(known, value)
        elif type(value) is dict and type(known) is dict:
            known.update({**value, **_blocks_inside(known, value)})
        else:
            fields[key] = value

    def add(self, key: str, items: Iterable[Any]) -> None:
        """Keep more items of a list."""
        self._extras = None
        known = self._fields.get(key)
        if not is_list(known):
            known = self._fields[key] = []
        known.extend(items)

    def fill(self, key: str) -> None:
        """Mark a field as decoded: its earlier null or empty value is dropped."""
        if key not in self._filled:
            self._extras = None
            self._filled.add(key)

    def extras(self, words: Iterable[str] = ()) -> FrozenDict:
        """All fields as extras; the same object while there is nothing new."""
        if words:
            return extras_of(self._left(), NAME, words)
        if self._extras is None:
            self._extras = extras_of(self._left(), NAME)
        return self._extras

    def filled(self) -> dict[str, Any]:
        """The fields that are not empty."""
        return {key: value for key, value in self._fields.items() if not is_empty(value)}

    def _left(self) -> dict[str, Any]:
        filled = self._filled
        return {
            key: value
            for key, value in self._fields.items()
            if key not in filled or not (value is None or value in ("", []))
        }


def _blocks_inside(known: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """LiteLLM repeats its blocks in another of its fields."""
    return {BLOCKS: _joined_blocks(known.get(BLOCKS), more[BLOCKS])} if BLOCKS in more else {}


def _joined_blocks(known: Any, more: Any) -> Any:
    """LiteLLM's blocks with more pieces of them: a text ends with its signature."""
    if not is_list(more) or not all(map(is_object, more)) or not is_list(known):
        return more if more or not known else known
    made = list(known)
    for piece in more:
        last = made[-1] if made else {}
        text, rest = last.get("thinking"), piece.get("thinking")
        if _is_text(last.get("signature")) or type(text) is not str or type(rest) is not str:
            made.append(piece)
        else:
            made[-1] = {**last, **piece, "thinking": text + rest}
    return made


def is_empty(value: Any) -> bool:
    """Whether a value is null or empty."""
    return not value and (value is None or value in ("", []))


# --- thinking


class ThinkingDecoder:
    """Assigns pieces of thinking to parts.

    Each text field is one part. Details of the same type and index are also one part; encrypted
    details are complete, and a signature comes after its text (OpenRouter).
    """

    __slots__ = ("_details", "_parts", "_texts", "_unknown")

    def __init__(self, parts: PartEvents, unknown: UnknownFields) -> None:
        self._parts = parts
        self._unknown = unknown
        self._texts: dict[str, int] = {}
        self._details: dict[tuple[str, int | None], tuple[int, set[str]]] = {}

    def take(self, delta: dict[str, Any]) -> None:
        """Decode the thinking of a delta."""
        texts = {key: delta[key] for key in TEXT_FIELDS if _is_text(delta.get(key))}
        details = delta.get(DETAILS)
        for key in THINKING:
            if key in delta and key not in texts and (key != DETAILS or not details):
                self._unknown.keep(key, delta[key])
        if details:
            pieces = _checked(details)
            if pieces:
                self._take_details(pieces, texts)
            elif is_list(details):
                self._unknown.add(DETAILS, details)
            else:
                self._unknown.keep(DETAILS, details)
        mirror = None
        if len(texts) > 1 and len(set(texts.values())) == 1:  # some servers send both
            mirror, _ = texts.popitem()
            self._unknown.fill(mirror)
        for field, text in texts.items():
            self._take_text(field, text, mirror)

    def growth(self, delta: dict[str, Any], fields: list[str], choice: int) -> Growth | None:
        """The growth caused by a delta, if its thinking, in these fields, was one text."""
        texts = [key for key in TEXT_FIELDS if key in fields]
        text = delta[texts[0]] if texts else None
        if type(text) is not str or any(delta[key] != text for key in texts):
            return None
        field, *mirrors = texts
        if DETAILS not in fields:
            grown = PartDelta(self._texts[field], text, choice=choice)
            return Growth(grown, (field,), tuple([(mirror,) for mirror in mirrors]))
        at = None if mirrors else self._detail_of(delta, text)
        if at is None:
            return None
        content = CONTENT_OF[delta[DETAILS][0]["type"]]
        grown = PartDelta(at, text, choice=choice)
        return Growth(grown, (field,), ((DETAILS, 0, content),))

    def _detail_of(self, delta: dict[str, Any], text: str) -> int | None:
        """The part of a detail that has only a text, repeated in a field."""
        pieces = _checked(delta[DETAILS])
        known = self._details.get(_place(pieces[0])) if len(pieces) == 1 else None
        if known is None or _is_sealed(pieces[0]) or _content(pieces[0]) != text:
            return None
        return None if _is_text(pieces[0].get("signature")) else known[0]

    def _take_text(self, field: str, text: str, mirror: str | None) -> None:
        self._unknown.fill(field)
        if field in self._texts:
            self._parts.grow(self._texts[field], text=text)
        else:
            part = Thinking(text, extras=extras_of({}, NAME, text_words(field)))
            part = part if mirror is None else with_copy_in(part, mirror)
            self._texts[field] = self._parts.start(part)

    def _take_details(self, pieces: list[dict[str, Any]], texts: dict[str, Any]) -> None:
        """With `reasoning_details`, OpenRouter repeats their text in `reasoning`."""
        self._unknown.fill(DETAILS)
        joined = "".join(_content(piece) for piece in pieces if not _is_sealed(piece))
        mirror = next((key for key, text in texts.items() if text in (joined, f"\n{joined}")), None)
        if mirror is not None:
            del texts[mirror]
            self._unknown.fill(mirror)
        for piece in pieces:
            self._take_detail(piece, mirror)

    def _take_detail(self, piece: dict[str, Any], mirror: str | None) -> None:
        kind, place = piece["type"], _place(piece)
        known = None if _is_sealed(piece) else self._details.get(place)
        if known is None:
            part = decode_detail({**piece, CONTENT_OF[kind]: _content(piece)}, SILENT)
            if part is not None:
                started = self._parts.start(part if mirror is None else with_copy_in(part, mirror))
                self._details[place] = (started, set(piece))
            return
        at, fields = known
        signature = piece.get("signature")
        late = {
            key: value
            for key, value in piece.items()
            if key not in fields and key not in (CONTENT_OF[kind], "signature")
        }
        fields.update(late)
        self._parts.grow(
            at,
            text=_content(piece) or None,
            signature=signature if _is_text(signature) else None,
            extras=extras_of(late, NAME),
        )


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_sealed(piece: dict[str, Any]) -> bool:
    return bool(piece["type"] == "reasoning.encrypted")


def _place(piece: dict[str, Any]) -> tuple[str, int | None]:
    index = piece.get("index")
    return piece["type"], index if is_integer(index) else None


def _content(piece: dict[str, Any]) -> str:
    content = piece.get(CONTENT_OF[piece["type"]])
    return content if isinstance(content, str) else ""


def _checked(details: Any) -> list[dict[str, Any]]:
    """The details, if all of them are of a known type."""
    pieces: list[dict[str, Any]] = []
    for piece in details if is_list(details) else ():
        kind = piece.get("type") if is_object(piece) else None
        if not is_object(piece) or not isinstance(kind, str) or kind not in CONTENT_OF:
            return []
        content = piece.get(CONTENT_OF[kind], "")
        if not isinstance(content, str) or (kind == "reasoning.encrypted" and not content):
            return []
        pieces.append(piece)
    return pieces


# --- calls, including the legacy `function_call`


def decode_call_delta(wire: Any, choice: int) -> ToolCallDelta | Opaque:
    """Decode a piece of a call; unknown and malformed ones become opaque parts."""
    given = wire.get("type") if is_object(wire) else _NO_CALL
    if given not in (None, "", "function", "custom"):
        return _unknown(wire)
    kind: Literal["function", "custom"] = "custom" if given == "custom" else "function"
    if not given and is_object(wire.get("custom")) and not is_object(wire.get("function")):
        kind = "custom"
    inner = wire.get(kind)
    fields = inner if is_object(inner) else {}
    name, text = fields.get("name"), fields.get(ARGUMENTS[kind])
    if is_object(text):
        text = dumps(text).decode("utf-8")  # some servers send the object itself
    if not isinstance(name, str | None) or not isinstance(text, str | None):
        return _unknown(wire)
    if inner is not None and not is_object(inner):
        return _unknown(wire)
    index, call_id, signature = wire.get("index"), wire.get("id"), None
    left = {key: value for key, value in wire.items() if key not in _KNOWN}
    if left and (signature := decode_signature(wire.get("extra_content"))) is not None:
        del left["extra_content"]
    other = "custom" if kind == "function" else "function"
    if other in wire:  # Snowflake sends both, one of them empty
        left[other] = wire[other]
    if len(fields) > (name is not None) + (text is not None):
        odd = {k: v for k, v in fields.items() if k not in ("name", ARGUMENTS[kind])}
        if odd:
            left[kind] = odd
    return ToolCallDelta(
        index if _is_index(index) else None,
        call_id if isinstance(call_id, str) and call_id else None,
        name or None,
        text,
        choice,
        kind,
        signature,
        extras_of(left, NAME),
    )


def _is_index(value: Any) -> bool:
    """Whether a value is a valid index of a call; a negative number counts as missing."""
    return is_integer(value) and value >= 0


def _unknown(wire: Any) -> Opaque:
    payload = {k: v for k, v in wire.items() if k != "index"} if is_object(wire) else wire
    return Opaque(NAME, payload, extras=extras_of({}, NAME, ("tool_calls",)))


def encode_call_delta(
    piece: ToolCallDelta, index: int, call_id: str | None, *, is_first: bool, is_ours: bool
) -> dict[str, Any]:
    """Encode a piece of a call; the first one has id, type and name (W8)."""
    inner: dict[str, Any] = {}
    if piece.name is not None:
        inner["name"] = piece.name
    elif is_first:
        inner["name"] = ""
    if piece.arguments_delta is not None or is_first:
        inner[ARGUMENTS[piece.kind]] = piece.arguments_delta or ""
    body: dict[str, Any] = {"index": index}
    if call_id is not None:
        body["id"] = call_id
    if is_first:
        body["type"] = piece.kind
    body[piece.kind] = inner
    if is_ours and piece.signature is not None:
        body["extra_content"] = encode_signature(piece.signature)
    return with_overlay(body, piece.extras, NAME) if is_ours else body


def decode_function_delta(wire: Any, choice: int) -> ToolCallDelta | None:
    """Decode a piece of a legacy `function_call`; None if it is malformed."""
    if not is_object(wire):
        return None
    name, arguments = wire.get("name"), wire.get("arguments")
    if not isinstance(name, str | None) or not isinstance(arguments, str | None):
        return None
    left = {key: value for key, value in wire.items() if key not in ("name", "arguments")}
    return ToolCallDelta(None, None, name or None, arguments, choice, extras=extras_of(left, NAME))


def encode_function_delta(piece: ToolCallDelta) -> dict[str, Any]:
    """Encode a piece of a legacy `function_call`."""
    fields = {"name": piece.name, "arguments": piece.arguments_delta}
    body: dict[str, Any] = {key: value for key, value in fields.items() if value is not None}
    return with_overlay(body, piece.extras, NAME)


def is_legacy_delta(piece: ToolCallDelta) -> bool:
    """Whether the first piece of a call was a `function_call`: it has neither id nor word."""
    return (
        piece.id is None
        and piece.kind == "function"
        and "tool_calls" not in words_of(piece.extras, NAME)
    )
