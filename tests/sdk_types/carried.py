"""Finds the fields of the SDKs' types that no typed field of the model holds.

Every body and every stream that the types allow is decoded. A value that is only in extras, in an
`Opaque`, in a tool without a kind, or in an event that is not part of the response is an `Entry`.
`docs/contributing/carried-as-is.md` has a row with a reason for each.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import dragoman
from dragoman import DragomanError
from dragoman.model.events import OpaqueEvent, ResponseStart, StreamError
from dragoman.model.frozen import thaw
from dragoman.model.parts import Opaque
from dragoman.model.provider_tools import ProviderTool
from dragoman.model.requests import Request
from dragoman.model.tools import ServerTool
from dragoman.model.value import Value
from dragoman.wire.dialect import description_of
from dragoman.wire.provider_tools import form_of, known_tool
from dragoman.wire.shared_settings import own_fields
from tests.sdk_types.bodies import SOURCES, Source
from tests.sdk_types.checks import read
from tests.sdk_types.streams import STREAMS, Stream, StreamSource

PAGE = Path(__file__).parents[2] / "docs" / "contributing" / "carried-as-is.md"
_SENTINEL = re.compile(r"s\d{5}|0?\.?7\d{4,5}")
_WORD = re.compile(r"(?!czA)[A-Za-z0-9_-]{1,48}")  # not base64 of a sentinel
_DEEPEST = 3  # levels of a field's path
_NOTHING: tuple[Any, ...] = (None, [], {}, "", [{}])
_SPELLING = " spelling"
_SNAKE = re.compile(r"_([a-z])")
_HOLDERS = {"ResponseStart": "Response", "ChoiceFinish": "Choice", "PartDelta": "Text"}
"""Events of a stream, by their equivalent in a non-streaming response."""


class Entry(NamedTuple):
    """A field, or a variant, that is carried as it is."""

    section: str
    """The SDK, the dialect, and requests or responses."""
    holder: str
    """The class that carries it: `Request`, `Text`, `Opaque`, or `tool` or `event`."""
    field: str
    """The field's path on the wire, or a variant's type."""

    def __str__(self) -> str:
        return f"{self.section}: {self.holder}: {self.field}"


# --- finding them


def carried(step: int = 1) -> Iterator[Entry]:
    """The entries of all installed SDKs; with `step`, of every `step`-th variant."""
    seen: set[Entry] = set()
    for source in SOURCES:
        if source.is_installed:
            seen.update(_of_bodies(source, step))
    for streams in STREAMS:
        if streams.source.is_installed:
            seen.update(_of_streams(streams, step))
    yield from sorted(seen)


def section_of(source: Source) -> str:
    """The heading of a type's bodies on the page: SDK, dialect and kind."""
    sdk = source.name.partition(".")[0]
    return f"{sdk}, {source.dialect}, {source.kind}s"


def _of_bodies(source: Source, step: int) -> Iterator[Entry]:
    section = section_of(source)
    for body in source.bodies(step):
        try:
            value = read(body).value
        except DragomanError:
            continue  # reported by `test_generated`
        for holder, field in _Walk(value).found():
            yield _entry(section, holder, field)


def _entry(section: str, holder: str, field: str) -> Entry:
    """An entry; Google's fields have their names in JSON, not those in its SDK."""
    if section.startswith("google"):
        field = _SNAKE.sub(lambda found: found[1].upper(), field)
    return Entry(section, _HOLDERS.get(holder, holder), field)


def _of_streams(streams: StreamSource, step: int) -> Iterator[Entry]:
    section = section_of(streams.source)
    for stream in streams.streams(step):
        for holder, field in _of_stream(stream):
            yield _entry(section, holder, field)


def _of_stream(stream: Stream) -> Iterator[tuple[str, str]]:
    decoder = dragoman.dialect(stream.body.dialect).stream_decoder()
    try:
        events = [*decoder.feed(stream.bytes), *decoder.close()]
    except DragomanError:
        return
    for event in events:
        if isinstance(event, OpaqueEvent):
            yield "event", _kind(event.payload)
        elif isinstance(event, (StreamError, ResponseStart)):
            yield from _Walk(event).found()
    yield from _Walk(decoder.response).found()


class _Walk:
    """Walks through a value of the model."""

    def __init__(self, value: Value) -> None:
        self._value = value
        self._typed: list[str] = []
        self._fields: list[tuple[str, str, Any]] = []

    def found(self) -> Iterator[tuple[str, str]]:
        """The holders and fields, without values that a typed field has as well."""
        self._look(self._value)
        typed = " ".join(self._typed)
        for holder, field, value in self._fields:
            tokens = _SENTINEL.findall(json.dumps(value))
            if not tokens or any(token not in typed for token in tokens):
                yield holder, field

    def _look(self, value: Any) -> None:
        if isinstance(value, Opaque):
            self._look_at_opaque(value)
        elif isinstance(value, ServerTool):
            self._look_at_tool(value)
        elif isinstance(value, Value):
            for name in value.__struct_fields__:
                if name in ("extras", "message_extras"):
                    self._look_at_extras(type(value).__name__, getattr(value, name))
                elif name != "origin":
                    self._look(getattr(value, name))
        elif isinstance(value, (tuple, list)):
            for each in value:
                self._look(each)
        elif value is not None:
            self._typed.append(json.dumps(thaw(value), default=str))

    def _look_at_extras(self, holder: str, extras: Mapping[str, Any]) -> None:
        for dialect, fields in extras.items():
            if dialect.endswith(_SPELLING):
                guesses = fields.get("guesses", ())
                for path, _ours, *theirs in guesses:
                    if theirs and theirs[0] not in _NOTHING:
                        name = ".".join(str(step) for step in path if type(step) is str)
                        self._note(holder, f"{name}={_constant(theirs[0])}", thaw(theirs[0]))
            elif isinstance(fields, Mapping):
                self._look_at_fields(holder, fields)

    def _look_at_fields(self, holder: str, fields: Mapping[str, Any]) -> None:
        for path, value in _leaves(thaw(fields), ()):
            is_word = isinstance(value, str) and _WORD.fullmatch(value)
            word = f"={value}" if is_word and not _SENTINEL.search(value) else ""
            self._note(holder, ".".join(path) + word, value)

    def _note(self, holder: str, field: str, value: Any) -> None:
        self._fields.append((holder, field, value))

    def _look_at_opaque(self, part: Opaque) -> None:
        described = description_of(part.dialect)
        payload = part.payload if isinstance(part.payload, Mapping) else {}
        told = described.readable(payload) if described and described.readable else None
        if told is None or not told.is_whole:
            kind = _kind(payload) + ("" if told is None else " (only its text is read)")
            self._note("Opaque", kind, None)

    def _look_at_tool(self, tool: ServerTool) -> None:
        if isinstance(tool, ProviderTool):
            known: ProviderTool | None = tool
        else:
            described = description_of(tool.dialect)
            form = form_of(tool, described.provider_tools) if described else None
            own = self._value.extras if isinstance(self._value, Request) else {}
            known = known_tool(tool, form, own_fields(own, tool.dialect)) if form else None
        if known is None:
            is_named = bool(tool.name) and not _SENTINEL.fullmatch(tool.name)
            self._note("tool", tool.name if is_named else "unnamed", None)
        else:
            self._look_at_extras(type(known).__name__, known.extras)


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The fields in an object, down to a maximum depth, without empty ones."""
    if isinstance(value, dict) and len(path) < _DEEPEST and not _is_free(value):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    elif value not in _NOTHING and path:
        yield path, value


def _is_free(value: dict[str, Any]) -> bool:
    """Whether the keys of an object are chosen by the caller."""
    return any(_SENTINEL.fullmatch(key) for key in value)


def _kind(payload: Any) -> str:
    """The name of a variant: its type, or the names of its fields."""
    if not isinstance(payload, Mapping):
        return type(payload).__name__
    kind = payload.get("type")
    if isinstance(kind, str) and not _SENTINEL.fullmatch(kind):
        return kind
    said = [key for key in payload if payload[key] is not None and not _SENTINEL.fullmatch(key)]
    return "several" if len(said) > 1 else said[0] if said else "empty"


def _constant(value: Any) -> str:
    if isinstance(value, str) and not _SENTINEL.fullmatch(value):
        return value
    return type(value).__name__


# --- the page


@dataclass(frozen=True)
class Row:
    """An entry of the page: some fields of one holder, and why they are carried as they are."""

    section: str
    holder: str
    fields: tuple[str, ...]
    reason: str

    def covers(self, entry: Entry) -> bool:
        """Whether the row covers an entry; a field includes the fields inside it."""
        return (
            entry.section == self.section
            and entry.holder == self.holder
            and any(
                entry.field == field or entry.field.startswith((f"{field}.", f"{field}="))
                for field in self.fields
            )
        )


_HEADING = re.compile(r"^## `(.+)`$")
_ROW = re.compile(r"^- `([^`]+)`: (`.+?`): ([^`].*|`[^`]+`[^:,].*)$")


def rows(page: str | None = None) -> list[Row]:
    """The entries of the page."""
    section, found = "", []
    text = PAGE.read_text("utf-8") if page is None else page
    for line in text.replace("\n  ", " ").splitlines():
        if heading := _HEADING.match(line):
            section = heading[1]
        elif row := _ROW.match(line):
            found.append(Row(section, row[1], tuple(re.findall(r"`([^`]+)`", row[2])), row[3]))
    return found


def unexplained(entries: Iterable[Entry], known: Iterable[Row]) -> list[Entry]:
    """The entries that no row covers."""
    known = list(known)
    return [entry for entry in entries if not any(row.covers(entry) for row in known)]


def stale(entries: Iterable[Entry], known: Iterable[Row]) -> list[str]:
    """The fields on the page that are no longer carried as they are, for the installed SDKs."""
    entries = list(entries)
    sections = {entry.section for entry in entries}
    return [
        f"{row.section}: {row.holder}: {field}"
        for row in known
        if row.section in sections
        for field in row.fields
        if not any(Row(row.section, row.holder, (field,), "").covers(each) for each in entries)
    ]
