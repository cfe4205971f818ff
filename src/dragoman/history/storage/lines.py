"""Rows in lines, for backends that keep them so: read as far as they can be.

What stands in front of a message is read without the message, which may be large, or broken: then
its row is still there, and can be set aside.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec

from dragoman.errors import StoreError
from dragoman.history.records import StoredRow
from dragoman.model import document
from dragoman.model.frozen import frozen_hook

_MESSAGE = b',"message":'
_VERSION = re.compile(rb'\{"dragoman":(\d{1,9}),"kind":')
_SHORT = 1024  # bytes, up to which reading a line as a whole is quicker than cutting it up
_TRIES = 8  # how often "message" is looked for: a line that is damaged may be full of it


class _RowDocument(msgspec.Struct, forbid_unknown_fields=True):
    dragoman: Annotated[int, msgspec.Meta(ge=document.OLDEST, le=document.VERSION)]
    kind: Literal["Record"]
    value: StoredRow


_decoder = msgspec.json.Decoder(_RowDocument, dec_hook=frozen_hook)


def parsed(line: bytes) -> StoredRow | None:
    """The row in a line; its message may be broken. None where not even its place can be read."""
    short = _decoded(line) if len(line) <= _SHORT else None
    found = short or _head(line) or _decoded(line)
    if found is None:
        refuse_newer(line)
    return found


def _head(line: bytes) -> StoredRow | None:
    # Messages can be large, and most are passed over: they are cut out, not read. A usage's own
    # fields come before it and may be called "message" too, but the cut is inside of them then.
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
    """An unknown format is not damage: what a newer dragoman wrote must not be set aside."""
    version = _VERSION.match(line)
    if version is not None and int(version[1]) > document.VERSION:
        msg = (
            f"the store has records of format version {int(version[1])}, this dragoman"
            f" reads versions {document.OLDEST} to {document.VERSION}: a newer dragoman wrote it,"
            " and is needed to read it; nothing was changed"
        )
        raise StoreError(msg)
