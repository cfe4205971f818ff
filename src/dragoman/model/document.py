"""Versioned JSON documents, which every later version can read.

```json
{"dragoman": 2, "kind": "Message",
 "value": {"role": "user", "parts": [{"type": "text", "text": "hi"}]}}
```

Fields that hold their default are omitted. An unknown field or version is an error, never silently
dropped. Version 2 only adds fields to version 1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from dragoman.errors import InvalidInputError
from dragoman.model.jsontext import JsonText, check_readable, decoder_of, dumps, loads_as

OLDEST, VERSION = 1, 2
"""The oldest version that is read, and the version that is written."""


class _Kind(NamedTuple):
    """How a kind of value is read: its msgspec type, and a function that converts the result."""

    stored_as: Any
    make: Callable[[Any], Any]


class _Head(msgspec.Struct):
    dragoman: int
    kind: str


class _Document(_Head):
    value: Any


_kinds: dict[str, _Kind] = {}


def register(name: str, stored_as: Any, make: Callable[[Any], Any] | None = None) -> None:
    """Registers a kind of value that documents may hold."""
    _kinds[name] = _Kind(stored_as, make or _same)


def write(kind: str, value: Any) -> bytes:
    """Writes a document of this kind."""
    return dumps(_Document(VERSION, kind, value))


def write_checked(kind: str, value: Any) -> bytes:
    """Like `write`, but raises if a field has the wrong type and could not be read back."""
    _expect_known(kind)
    raw = write(kind, value)
    check_readable(raw, _decoder(kind))
    return raw


def _expect_known(kind: object) -> None:
    if not isinstance(kind, str) or kind not in _kinds:
        msg = "the document's kind is unknown to this version of dragoman"
        raise InvalidInputError(msg)


def read(raw: JsonText, kind: str | None = None) -> Any:
    """Reads the value of a document, of the given kind or of any registered one."""
    if kind is None:
        kind = loads_as(raw, _head_decoder()).kind
    _expect_known(kind)
    try:
        document = loads_as(raw, _decoder(kind))
    except InvalidInputError as error:
        # A wrong version or kind is the better explanation.
        problem: str | None = _header_problem_in(raw, kind) or str(error)
    else:
        problem = _header_problem(document, kind)
        if problem is None:
            return _kinds[kind].make(document.value)
    raise InvalidInputError(problem)


def _header_problem_in(raw: JsonText, kind: str) -> str | None:
    try:
        head = loads_as(raw, _head_decoder())
    except InvalidInputError:
        return None
    return _header_problem(head, kind)


def _header_problem(head: Any, kind: str) -> str | None:
    if not OLDEST <= head.dragoman <= VERSION:
        return (
            f"the document has format version {head.dragoman}; this version of dragoman reads"
            f" versions {OLDEST} to {VERSION}. A newer dragoman may be needed"
        )
    if head.kind != kind:
        return f"the document does not hold a value of kind {kind}"
    return None


@lru_cache
def _head_decoder() -> msgspec.json.Decoder[_Head]:
    return msgspec.json.Decoder(_Head)


@lru_cache
def _decoder(kind: str) -> msgspec.json.Decoder[Any]:
    fields = [("dragoman", int), ("kind", str), ("value", _kinds[kind].stored_as)]
    made = msgspec.defstruct(f"{kind}Document", fields, forbid_unknown_fields=True)
    return decoder_of(made)


def is_of_kind(raw: bytes, kind: str) -> bool:
    """Whether bytes start like a document of this kind, in any supported version."""
    return raw.startswith(_prefixes(kind))


@lru_cache
def _prefixes(kind: str) -> tuple[bytes, ...]:
    name = kind.encode(errors="surrogatepass")
    versions = range(OLDEST, VERSION + 1)
    return tuple(b'{"dragoman":%d,"kind":"%s",' % (version, name) for version in versions)


def _same(value: Any) -> Any:
    return value
