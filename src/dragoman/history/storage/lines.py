"""Reads rows from lines, for backends that store them so, as far as they are intact.

The fields before the message are read without the message, which may be large or damaged: then the
row is still known, and can be set aside.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec

from dragoman.errors import StoreError
from dragoman.history.records import StoredRow
from dragoman.model import document
from dragoman.model.jsontext import decoder_of

_MESSAGE = b',"message":'
_VERSION = re.compile(rb'\{"dragoman":(\d{1,9}),"kind":')
_SHORT = 1024  # bytes up to which decoding a whole line is faster than splitting it
_TRIES = 8  # how often to look for "message": a damaged line may be full of it


class _RowDocument(msgspec.Struct, forbid_unknown_fields=True):
    dragoman: Annotated[int, msgspec.Meta(ge=document.OLDEST, le=document.VERSION)]
    kind: Literal["Record"]
    value: StoredRow


_decoder: msgspec.json.Decoder[_RowDocument] = decoder_of(_RowDocument)


def parsed(line: bytes) -> StoredRow | None:
    """The row in a line; its message may be damaged. `None` if its position is unreadable."""
    short = _decoded(line) if len(line) <= _SHORT else None
    found = short or _head(line) or _decoded(line)
    if found is None:
        refuse_newer(line)
    return found


def _head(line: bytes) -> StoredRow | None:
    # Messages can be large, and most are skipped: they are cut out, not parsed. Fields of a usage
    # come before the message and may also be named "message"; then the cut would be inside them.
    if not line.endswith(b"}}"):
        return None
    cut = line.find(_MESSAGE)
    for _ in range(_TRIES):
        if cut < 0:
            break
        start = cut + len(_MESSAGE)
        found = _decoded(line[:start] + b"0}}")
        if found is not None:
            found.message = msgspec.Raw(line[start:-2])
            return found
        cut = line.find(_MESSAGE, start) if b'"usage":' in line[:cut] else -1
    return None


def _decoded(line: bytes) -> StoredRow | None:
    try:
        return _decoder.decode(line).value
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        return None


def refuse_newer(line: bytes) -> None:
    """Raises for records of a newer format, which must not be treated as damage."""
    version = _VERSION.match(line)
    if version is not None and int(version[1]) > document.VERSION:
        msg = (
            f"the store has records of format version {int(version[1])}; this version of dragoman"
            f" reads versions {document.OLDEST} to {document.VERSION}. It was written by a newer"
            " dragoman, which is needed to read it; nothing was changed"
        )
        raise StoreError(msg)
