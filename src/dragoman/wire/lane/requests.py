"""Plain requests from bytes to bytes, at the speed of JSON.

The general path (decode, fit, encode) is the truth. The lane gives the same bytes, losses, repairs
and context for requests whose conversation is plain (`plain`, `survey`), and nothing for all
others, which then take the general path, whole. Each dialect has one reader and one writer of
plain conversations (its `lane` module); everything but the conversation is translated by the
general path once and then found by its bytes (`heads`).
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Raw

from dragoman.wire.encoded import Encoded
from dragoman.wire.envelope import PREFIX, is_signing
from dragoman.wire.lane.heads import Asked, Head, Heads, made_head, sample_of
from dragoman.wire.lane.plain import Lane, Marks, Names, NotPlain, Turns, arguments_of, encode
from dragoman.wire.lane.prefixes import Conversations, Known, conversations, growth
from dragoman.wire.lane.survey import ENDINGS, surveyed
from dragoman.wire.lane.switch import is_on
from dragoman.wire.shown_calls import MARK

HEADS = Heads()
"""Those of this process."""
LONG = 8 * 1024
"""From so many bytes on, a conversation takes the lane though its head is new."""
PASSING = -1
"""In the place of a shape: whatever it is."""
_split = msgspec.json.Decoder(dict[str, Raw]).decode
_ENVELOPE, _COUNTERPART = PREFIX.encode(), MARK.encode()
_ESCAPED = re.compile(rb"\\u00[2-7]")
"""A character of ASCII that nobody has to escape."""
_ODD = (NotPlain, msgspec.MsgspecError, UnicodeError, RecursionError)


def translated(body: Any, asked: Asked) -> Encoded | None:
    """The request in another dialect; None where it has to take the general path."""
    if type(body) is not bytes or not is_on():
        return None
    try:
        fields = _split(body)
        raw = fields.pop(asked.source.field, None)
        if raw is None:
            return None
        known = encode(fields)
        if not asked.repair and (passed := _passed(body, fields, known, raw, asked)) is not None:
            return passed
        return _translated(fields, known, raw, asked)
    except _ODD:
        return None


def _translated(fields: dict[str, Raw], known: bytes, raw: Raw, asked: Asked) -> Encoded | None:
    kept = conversations()
    if kept is not None and not asked.source.has_places:
        return _translated_growth(fields, known, bytes(raw).strip(), asked, kept)
    turns, marks = asked.source.read(raw)
    shape, names, leading = surveyed(turns)
    if marks:
        shape = _with_marks(shape, marks)
    head = _head(fields, known, leading, shape, names, asked, len(raw))
    if head is None or (names and not _are_taken(turns, names, head)):
        return None
    if head.lane is asked.source:
        return _encoded(memoryview(raw), head, marks)
    return _encoded(_written(turns, leading, names, head), head, marks)


def _translated_growth(
    fields: dict[str, Raw], known: bytes, raw: bytes, asked: Asked, kept: Conversations
) -> Encoded | None:
    """As `_translated`, of a conversation that is remembered, or of which the beginning is."""
    before = kept.find(asked.key, known, raw)
    grown = None if before is None else growth(raw, before, asked.source)
    if before is None or grown is None:
        turns, marks = asked.source.read(Raw(raw))
        shape, names, leading = surveyed(turns)
        fresh = names
    else:
        turns, marks, names, leading = grown.turns, grown.marks, grown.names, before.leading
        shape, fresh = grown.shape, grown.fresh
    head = _head(fields, known, leading, _with_marks(shape, marks), names, asked, len(raw))
    if head is None or (fresh and not _are_taken(turns, fresh, head)):
        return None
    if head.lane is asked.source:
        return _encoded(raw, head, marks)
    if head.is_text:
        return _encoded(_written(turns, leading, names, head), head, marks)
    if before is None or grown is None:
        items = _written(turns, leading, names, head)
        found = Known(raw[:-1].rstrip(), items, shape & ~ENDINGS, names, leading, marks, len(turns))
    else:
        more = encode(head.lane.write(turns, names))
        items = b"".join((memoryview(before.items)[:-1], b",", memoryview(more)[1:]))
        found = grown.known(raw[:-1].rstrip(), items)
    kept.keep(asked.key, known, found, before)
    return _encoded(items, head, marks)


def _with_marks(shape: int, marks: Marks) -> int:
    for kind, _, _ in marks:
        shape |= kind
    return shape


def _head(
    fields: dict[str, Raw],
    known: bytes,
    leading: Turns,
    shape: int,
    names: Names,
    asked: Asked,
    length: int,
) -> Head | None:
    """The head of a request whose conversation has this shape; None where it has no lane."""
    if leading:
        known += encode(leading)
    key = (sample_of(known), shape, asked.key)
    head, is_known = HEADS.find(key, known)
    if not is_known:
        if length < LONG and not HEADS.was_seen(key):
            return None
        head = made_head(fields, leading, shape, names, asked)
        HEADS.keep(key, known, head)
    return head


def _written(turns: Turns, leading: Turns, names: Names, head: Head) -> bytes:
    said = turns[len(leading) :] if leading else turns
    return encode(said[0].content if head.is_text else head.lane.write(said, names))


def _passed(
    body: bytes, fields: dict[str, Raw], known: bytes, raw: Raw, asked: Asked
) -> Encoded | None:
    """What stays in its dialect, for a host that nobody knows: the conversation as it came.

    Nothing of it is looked at: numbers that no float can hold, and values that nest deeper than the
    model allows, are passed on as well. So is an envelope that somebody has hidden by escapes,
    unless they are signed.
    """
    key = (sample_of(known), PASSING, asked.key)
    head, is_known = HEADS.find(key, known)
    if not is_known:
        head = made_head(fields, [], 0, {}, asked)
        HEADS.keep(key, known, head)
    if head is None or head.lane is not asked.source or head.is_named:
        return None
    opening = bytes(memoryview(raw)[:1])
    if opening != b"[" and not (opening == b'"' and asked.source.takes_text):
        return None
    if _is_ours(body, asked.source):
        return None
    if not body.isascii():
        body.decode()  # raises where it is no text
    return _encoded(memoryview(raw), head, ())


def _is_ours(body: bytes, lane: Lane) -> bool:
    """Whether there may be something in it that a front has written: that has to be opened."""
    if _ENVELOPE in body or (lane.shows_calls and _COUNTERPART in body):
        return True
    return is_signing() and _ESCAPED.search(body) is not None


def _are_taken(turns: Turns, names: Names, head: Head) -> bool:
    """Whether the target takes the ids, names and arguments of the calls as they are."""
    if not head.functions.issuperset(names.values()) or not head.takes_ids(names.keys()):
        return False
    if head.reads_arguments:
        for turn in turns:
            for call in getattr(turn, "tool_calls", None) or ():
                arguments_of(call)
    return True


def _encoded(items: bytes | memoryview, head: Head, marks: Marks) -> Encoded:
    """What is sent, with a head of its own: what is shared is never given away to be changed."""
    if head.is_begun:
        items = items[1:]
    headers = head.headers
    return Encoded.of_bytes(
        b"".join((head.before, items, head.after)),
        head.path,
        headers.copy() if type(headers) is dict else headers,
        head.losses.of(marks) if marks else head.losses.fixed,
        head.repairs.of(marks) if marks else head.repairs.fixed,
        head.context,
    )
