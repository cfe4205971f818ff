"""The canonical form as text: versioned JSON documents that every version from now on can read.

```json
{"dragoman": 2, "kind": "Message",
 "value": {"role": "user", "parts": [{"type": "text", "text": "hi"}]}}
```

Fields that hold their default are left out. A field or a version that this library does not know
is an error, never a silent loss. Documents of version 1 are read as they were: version 2 only adds
fields to it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from dragoman.errors import InvalidInputError
from dragoman.model.frozen import frozen_hook
from dragoman.model.jsontext import JsonText, check_readable, dumps, loads_as

OLDEST, VERSION = 1, 2
"""What is read goes from the one to the other; what is written is of the latter."""


class _Kind(NamedTuple):
    """How one kind of value is read: as which msgspec type, and what is made of that."""

    stored_as: Any
    make: Callable[[Any], Any]


class _Head(msgspec.Struct):
    dragoman: int
    kind: str


class _Document(_Head):
    value: Any


_kinds: dict[str, _Kind] = {}


def register(name: str, stored_as: Any, make: Callable[[Any], Any] | None = None) -> None:
    """Let values of this kind be read from documents."""
    _kinds[name] = _Kind(stored_as, make or _same)


def write(kind: str, value: Any) -> bytes:
    """A document of that kind."""
    return dumps(_Document(VERSION, kind, value))


def write_checked(kind: str, value: Any) -> bytes:
    """As `write`, for values whose fields may be of the wrong type: they are not written."""
    _expect_known(kind)
    raw = write(kind, value)
    check_readable(raw, _decoder(kind))
    return raw


def _expect_known(kind: object) -> None:
    if not isinstance(kind, str) or kind not in _kinds:
        msg = "the document is of a kind that this version of dragoman does not know"
        raise InvalidInputError(msg)


def read(raw: JsonText, kind: str | None = None) -> Any:
    """The value in a document; of that kind, or of whichever kind it says."""
    if kind is None:
        kind = loads_as(raw, _head_decoder()).kind
    _expect_known(kind)
    try:
        document = loads_as(raw, _decoder(kind))
    except InvalidInputError as error:
        # The version or the kind, if it is that, is the better explanation.
        problem: str | None = _misfit_of(raw, kind) or str(error)
    else:
        problem = _misfit(document, kind)
        if problem is None:
            return _kinds[kind].make(document.value)
    raise InvalidInputError(problem)


def _misfit_of(raw: JsonText, kind: str) -> str | None:
    try:
        head = loads_as(raw, _head_decoder())
    except InvalidInputError:
        return None
    return _misfit(head, kind)


def _misfit(head: Any, kind: str) -> str | None:
    if not OLDEST <= head.dragoman <= VERSION:
        return (
            f"the document has format version {head.dragoman}, this dragoman reads versions"
            f" {OLDEST} to {VERSION}; a newer one may be needed"
        )
    if head.kind != kind:
        return f"the document holds another kind of value than {kind}"
    return None


@lru_cache
def _head_decoder() -> msgspec.json.Decoder[_Head]:
    return msgspec.json.Decoder(_Head)


@lru_cache
def _decoder(kind: str) -> msgspec.json.Decoder[Any]:
    fields = [("dragoman", int), ("kind", str), ("value", _kinds[kind].stored_as)]
    return msgspec.json.Decoder(
        msgspec.defstruct(f"{kind}Document", fields, forbid_unknown_fields=True),
        dec_hook=frozen_hook,
    )


def is_of_kind(raw: bytes, kind: str) -> bool:
    """Whether this begins as a document that we wrote of that kind, in any version we read."""
    return raw.startswith(_beginnings(kind))


@lru_cache
def _beginnings(kind: str) -> tuple[bytes, ...]:
    name = kind.encode(errors="surrogatepass")
    versions = range(OLDEST, VERSION + 1)
    return tuple(b'{"dragoman":%d,"kind":"%s",' % (version, name) for version in versions)


def _same(value: Any) -> Any:
    return value
